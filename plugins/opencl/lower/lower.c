/* A kernel as OpenCL C: pragmas, the structure of arguments and the head of the kernel; the kit
 * writes the statements. */
#include "lower/lower.h"

#include "lower/declare.h"
#include "lower/narrow.h"
#include "lower/warp.h"
#include "quirks.h"
#include "status.h"

#include <kit/c_text.h>

static const kit_c_dialect dialect = {
    .value_types = {KIT_C_VALUE_TYPES, [HAL_TYPE_F64] = "double"},
    .memory_types = {KIT_C_MEMORY_TYPES, [HAL_TYPE_F16] = "ushort", [HAL_TYPE_F64] = "double"},
    .global = "__global",
    .shared = "__local",
    .bit_cast = {"as_", "("},
    .vector = {"(", ")("},
    .convert = "convert_",
    .elements = {".s0", ".s1", ".s2", ".s3", ".s4", ".s5", ".s6", ".s7"},
    .shared_array = {"__local ", " __attribute__((aligned(16)))"},
    .local_id = "(uint)get_local_id(@i)",
    .group_id = "(uint)get_group_id(@i)",
    .group_count = "(uint)get_num_groups(@i)",
    .barrier = {"barrier(CLK_LOCAL_MEM_FENCE);",
                "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"},
    .fma = "fma(@a, @b, @c)",
    .multiply_high = "mul_hi(@a, @b)",
    .remainder = "fmod(@a, @b)",
    .narrow_f16 = "narrow_half(@a)",
    .load_f16 = "vload_half@N(0, (@S half *)(@P))",
    .store_f16 = "vstore_half@N_rte(@X, 0, (@S half *)(@P))",
    .atomic = {"atomic_@o((volatile @S @T *)(@P), @c)", "atom_@o((volatile @S @T *)(@P), @c)"},
    .compare_exchange = {"atomic_cmpxchg((volatile @S @T *)(@P), @d, @c)",
                         "atom_cmpxchg((volatile @S @T *)(@P), @d, @c)"},
    .atomic_names = {[HAL_IR_ATOMIC_ADD] = "add",
                     [HAL_IR_ATOMIC_MIN] = "min",
                     [HAL_IR_ATOMIC_MAX] = "max",
                     [HAL_IR_ATOMIC_AND] = "and",
                     [HAL_IR_ATOMIC_OR] = "or",
                     [HAL_IR_ATOMIC_XOR] = "xor",
                     [HAL_IR_ATOMIC_EXCHANGE] = "xchg",
                     [HAL_IR_ATOMIC_COMPARE_EXCHANGE] = "cmpxchg"},
};

/* Parameters and arguments of the function for a work-item: its ids. */
#define ITEM_PARAMETERS \
    ", uint l0, uint l1, uint l2, uint g0, uint g1, uint g2, uint n0, uint n1, uint n2"
#define ITEM_ARGUMENTS                                    \
    ", get_local_id(0), get_local_id(1), get_local_id(2)" \
    ", get_group_id(0), get_group_id(1), get_group_id(2)" \
    ", get_num_groups(0), get_num_groups(1), get_num_groups(2)"

static bool uses_subgroups(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const uint32_t opcode = ir->records[i].opcode;
        if (opcode == HAL_IR_LANE_ID || opcode == HAL_IR_MATRIX_MULTIPLY ||
            (opcode >= HAL_IR_SHUFFLE && opcode <= HAL_IR_SUBGROUP_REDUCE)) {
            return true;
        }
    }
    return false;
}

static bool has_memory(const hal_ir_kernel *ir, hal_type type)
{
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        if (ir->memories[i].type == type) {
            return true;
        }
    }
    return false;
}

/* Whether the statements are a function that the kernel calls: the kernel has no barriers and
 * shared memory, and a row of the group has too few work-items to be vectorised. */
static bool calls_items(const opencl_card *card, const hal_ir_kernel *ir)
{
    if (!(card->quirks & OPENCL_QUIRK_CALLED_ITEMS) || ir->group_size[0] >= 4 ||
        ir->binding_count == 0 || ir->memory_count > ir->binding_count || uses_subgroups(ir) ||
        !(has_memory(ir, HAL_TYPE_F16) || has_memory(ir, HAL_TYPE_BF16))) {
        return false;
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].opcode == HAL_IR_BARRIER) {
            return false;
        }
    }
    return true;
}

static bool uses_type(const hal_ir_kernel *ir, hal_type type)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].type == type) {
            return true;
        }
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        if (ir->scalars[i].type == type) {
            return true;
        }
    }
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        if (ir->memories[i].type == type) {
            return true;
        }
    }
    return false;
}

static bool has_wide_atomics(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if (record->opcode == HAL_IR_ATOMIC && hal_type_size(record->type) == 8) {
            return true;
        }
    }
    return false;
}

static bool copies_async(const hal_ir_kernel *ir)
{
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (ir->records[i].opcode >= HAL_IR_ASYNC_COPY &&
            ir->records[i].opcode <= HAL_IR_ASYNC_WAIT) {
            return true;
        }
    }
    return false;
}

/* KIT_C_HIDE_*: where not 0, the kernel has a variable `hidden`: the highest bit of an offset, of
 * which the compiler does not know that it is 0. */
static uint32_t hides(const opencl_card *card, const hal_ir_kernel *ir)
{
    static const struct {
        uint32_t quirk, hides;
    } rows[] = {{OPENCL_QUIRK_WRONG_INTEGRAL, KIT_C_HIDE_INTEGRAL},
                {OPENCL_QUIRK_WRONG_WIDENING, KIT_C_HIDE_WIDENED},
                {OPENCL_QUIRK_WRONG_ZEROS, KIT_C_HIDE_ZEROS},
                {OPENCL_QUIRK_WRONG_EXTREMA, KIT_C_HIDE_EXTREMA},
                {OPENCL_QUIRK_WRONG_ABS, KIT_C_HIDE_NEGATIVE}};
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wrong |= card->quirks & rows[i].quirk ? rows[i].hides : 0;
    }
    return ir->binding_count > 0 ? kit_c_hides(ir) & wrong : 0;
}

/* OpenCL does not define which work-items are a subgroup. So the ids of work-items are computed
 * from subgroup and lane; all subgroups but the last are full. */
static void use_subgroups(const opencl_card *card, const hal_ir_kernel *ir, kit_c_dialect *words,
                          kit_text *text)
{
    words->subgroup_width = card->info.subgroup_width;
    if (card->quirks & OPENCL_QUIRK_WARPS) {
        opencl_lower_warps(ir, words, text);
        return;
    }
    kit_text_add(text, "#pragma OPENCL EXTENSION cl_intel_subgroups : enable\n");
    words->local_id = "i@i";
    words->lane_id = "(uint)get_sub_group_local_id()";
    words->lane_count = "(uint)get_sub_group_size()";
    words->shuffle = "intel_sub_group_shuffle(@a, @b & 15u)";
    words->shuffle_xor = "intel_sub_group_shuffle_xor(@a, @ku & 15u)";
}

/* The structure of arguments: offsets of the bindings in bytes, then the scalars. */
static void write_block(const hal_ir_kernel *ir, kit_text *text)
{
    uint32_t at = 0;
    kit_text_add(text, "typedef struct arguments {\n");
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        kit_text_add(text, "    ulong o%u;\n", i);
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const hal_ir_scalar *scalar = &ir->scalars[i];
        if (scalar->offset > at) {
            kit_text_add(text, "    uchar gap%u[%u];\n", i, scalar->offset - at);
        }
        kit_text_add(text, "    %s s%u;\n", dialect.memory_types[scalar->type], i);
        at = scalar->offset + hal_type_size(scalar->type);
    }
    kit_text_add(text, "} arguments;\n");
}

static void write_head(const opencl_card *card, const hal_ir_kernel *ir, kit_text *text)
{
    size_t group[3];
    opencl_group_size(ir, group);
    kit_text_add(text, "__kernel __attribute__((reqd_work_group_size(%zu, %zu, %zu)))\n", group[0],
                 group[1], group[2]);
    if (uses_subgroups(ir) && !(card->quirks & OPENCL_QUIRK_WARPS)) {
        kit_text_add(text, "__attribute__((intel_reqd_sub_group_size(%d)))\n",
                     (int)OPENCL_SUBGROUP_WIDTH);
    }
    kit_text_add(text, "void hal_%s(", ir->names + ir->name);
}

static void write_parameters(const hal_ir_kernel *ir, bool in_buffer, kit_text *text)
{
    const char *comma = ir->binding_count > 0 ? ", " : "";
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const bool read = ir->memories[i].access == HAL_ACCESS_READ;
        kit_text_add(text, "%s%s__global uchar *restrict b%u", i > 0 ? ", " : "",
                     read ? "const " : "", i);
    }
    if (opencl_argument_bytes(ir) > 0) {
        kit_text_add(text,
                     in_buffer ? "%sconst __global uchar *restrict block, const ulong place"
                               : "%sconst arguments a",
                     comma);
    }
}

/* The local id: from subgroup and lane, or the number of the work-item, of which warps are filled
 * in order. */
static void write_items(const opencl_card *card, const hal_ir_kernel *ir, kit_text *text)
{
    const uint32_t *size = ir->group_size;
    if (card->quirks & OPENCL_QUIRK_WARPS) {
        opencl_lower_lanes(ir, text);
    } else {
        kit_text_add(text,
                     "    const uint item = (uint)get_sub_group_id() * %du + "
                     "(uint)get_sub_group_local_id();\n",
                     (int)OPENCL_SUBGROUP_WIDTH);
    }
    kit_text_add(text,
                 "    const uint i0 = item %% %uu, i1 = item / %uu %% %uu, i2 = item / %uu;\n",
                 size[0], size[0], size[1], size[0] * size[1]);
}

/* Variables for the bindings, and for the scalars of a buffer, with the names of the statements. */
static void write_places(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                         kit_text *text)
{
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const char *type = dialect.memory_types[ir->memories[i].type];
        const char *access = ir->memories[i].access == HAL_ACCESS_READ ? "const " : "";
        kit_text_add(text, "    %s__global %s *const m%u = (%s__global %s *)(b%u + ", access, type,
                     i, access, type, i);
        if (in_buffer) {
            kit_text_add(text, "*(const __global ulong *)(block + place + %u));\n", 8 * i);
        } else {
            kit_text_add(text, "a.o%u);\n", i);
        }
    }
    if (hides(card, ir) != 0) {
        kit_text_add(text, "    const uint hidden = (uint)(%s >> 63);\n",
                     in_buffer ? "*(const __global ulong *)(block + place)" : "a.o0");
    }
    if (uses_subgroups(ir)) {
        write_items(card, ir, text);
    }
    for (uint32_t i = 0; i < ir->scalar_count && in_buffer; i++) {
        const char *type = dialect.memory_types[ir->scalars[i].type];
        kit_text_add(text, "    const %s s%u = *(const __global %s *)(block + place + %u);\n", type,
                     i, type, 8 * ir->binding_count + ir->scalars[i].offset);
    }
}

/* The kernel that calls the function with its statements. */
static void write_call(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                       kit_text *text)
{
    write_head(card, ir, text);
    write_parameters(ir, in_buffer, text);
    kit_text_add(text, ")\n{\n    work_item(");
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        kit_text_add(text, "b%u, ", i);
    }
    kit_text_add(text, in_buffer ? "block, place" : "a");
    kit_text_add(text, ITEM_ARGUMENTS ");\n}\n");
}

hal_status opencl_lower(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                        kit_text *text)
{
    const bool called = calls_items(card, ir);
    if (card->quirks & OPENCL_QUIRK_OWN_DECLARATIONS) {
        opencl_lower_declarations(text);
    }
    kit_text_add(text, "#pragma OPENCL FP_CONTRACT OFF\n");
    if (uses_type(ir, HAL_TYPE_F64)) {
        kit_text_add(text, "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    if (has_wide_atomics(ir)) {
        kit_text_add(text, "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"
                           "#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable\n");
    }
    kit_c_dialect words = dialect;
    if (uses_subgroups(ir) && card->info.subgroup_width > 0) {
        use_subgroups(card, ir, &words, text);
    }
    if (copies_async(ir) && card->info.features & HAL_FEATURE_ASYNC_COPY) {
        opencl_lower_copies(&words, text);
    }
    words.scalar = in_buffer ? "s@i" : "a.s@i";
    if (card->quirks & OPENCL_QUIRK_FMA_OF_ZERO) {
        words.fma = "(@a == 0) | (@b == 0) ? @a * @b + @c : fma(@a, @b, @c)";
    }
    words.hides = hides(card, ir);
    opencl_lower_narrow(card, ir, &words, text);
    if (opencl_argument_bytes(ir) > 0 && !in_buffer) {
        write_block(ir, text);
    }
    if (called) {
        words.local_id = "l@i", words.group_id = "g@i", words.group_count = "n@i";
        kit_text_add(text, "__attribute__((noinline)) void work_item(");
    } else {
        write_head(card, ir, text);
    }
    write_parameters(ir, in_buffer, text);
    kit_text_add(text, called ? ITEM_PARAMETERS ")\n{\n" : ")\n{\n");
    write_places(card, ir, in_buffer, text);
    const hal_status status = kit_c_lower(kit_host(), &words, ir, text);
    kit_text_add(text, "}\n");
    if (called) {
        write_call(card, ir, in_buffer, text);
    }
    if (status == HAL_OK && text->failed) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory for its source",
                        ir->names + ir->name);
    }
    return status;
}

uint32_t opencl_lower_storage_types(void)
{
    uint32_t types = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        types |= dialect.memory_types[type] ? HAL_TYPE_BIT(type) : 0;
    }
    return types;
}

uint32_t opencl_argument_bytes(const hal_ir_kernel *ir)
{
    uint32_t bytes = 8 * ir->binding_count, largest = ir->binding_count > 0 ? 8 : 1;
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const hal_ir_scalar *scalar = &ir->scalars[i];
        const uint32_t size = hal_type_size(scalar->type);
        bytes = 8 * ir->binding_count + scalar->offset + size;
        largest = size > largest ? size : largest;
    }
    return (bytes + largest - 1) / largest * largest;
}

void opencl_group_size(const hal_ir_kernel *ir, size_t group[3])
{
    const bool flat = uses_subgroups(ir);
    for (uint32_t i = 0; i < 3; i++) {
        group[i] = !flat ? ir->group_size[i] : i > 0 ? 1 : hal_ir_group_items(ir);
    }
}

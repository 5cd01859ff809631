/* A kernel as Metal Shading Language 3.0: the structure of scalars and the head of the kernel; the
 * kit writes the statements, lower/functions.c what they call. */
#include "lower/lower.h"

#include "card.h"
#include "lower/functions.h"
#include "quirks.h"
#include "status.h"

#include <kit/c_text.h>

static const kit_c_dialect dialect = {
    .value_types = {KIT_C_VALUE_TYPES},
    .memory_types = {KIT_C_MEMORY_TYPES, [HAL_TYPE_F16] = "half"},
    .global = "device",
    .shared = "threadgroup",
    .bit_cast = {"as_type<", ">("},
    .vector = {"", "("},
    .convert = "",
    .elements = {".x", ".y", ".z", ".w", ".s4", ".s5", ".s6", ".s7"},
    .shared_array = {"threadgroup ", " __attribute__((aligned(16)))"},
    .scalar = "a.s@i",
    .local_id = "l[@i]",
    .group_id = "g[@i]",
    .group_count = "n[@i]",
    .barrier = {"threadgroup_barrier(mem_flags::mem_threadgroup);",
                "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);"},
    .fma = "fma(@a, @b, @c)",
    .multiply_high = "multiply_high(@a, @b)",
    .remainder = "remainder_of(@a, @b)",
    .narrow_f16 = "float(half(@a))",
    .load_f16 = "float@N(*(@S half@N *)(@P))",
    .store_f16 = "*(@S half@N *)(@P) = half@N(@X)",
    .load_bf16 = "from_bf16(*(@S ushort@N *)(@P))",
    .atomic = {"atomic_@o_explicit((volatile @S atomic_@T *)(@P), @c, memory_order_relaxed)"},
    .compare_exchange = {"exchange_equal((volatile @S atomic_@T *)(@P), @d, @c)"},
    .atomic_names = {[HAL_IR_ATOMIC_ADD] = "fetch_add",
                     [HAL_IR_ATOMIC_MIN] = "fetch_min",
                     [HAL_IR_ATOMIC_MAX] = "fetch_max",
                     [HAL_IR_ATOMIC_AND] = "fetch_and",
                     [HAL_IR_ATOMIC_OR] = "fetch_or",
                     [HAL_IR_ATOMIC_XOR] = "fetch_xor",
                     [HAL_IR_ATOMIC_EXCHANGE] = "exchange",
                     [HAL_IR_ATOMIC_COMPARE_EXCHANGE] = "compare_exchange"},
    .lane_id = "lane",
    .lane_count = "lanes",
    .shuffle = "from_lane(@a, @b & 31u)",
    .shuffle_xor = "from_lane(@a, lane ^ (@ku & 31u))",
    .subgroup_width = METAL_SUBGROUP_WIDTH,
    .matrix_multiply = "multiply_matrices<@i>(@a, @b, @c, lane)",
};

/* What the functions of lower/functions.c are written for. */
static uint32_t functions_used(const hal_ir_kernel *ir)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        used |= record->width == 8 ? METAL_WIDE_VECTORS : 0;
        switch (record->opcode) {
        case HAL_IR_MULHI:
            used |= METAL_MULTIPLY_HIGH;
            break;
        case HAL_IR_REM:
            used |= record->type == HAL_TYPE_F32 ? METAL_REMAINDER : 0;
            break;
        case HAL_IR_LOAD:
            used |= record->width > 1 && ir->memories[record->aux].type == HAL_TYPE_BF16
                        ? METAL_BF16_VECTORS
                        : 0;
            break;
        case HAL_IR_ATOMIC:
            used |= record->flags == HAL_IR_ATOMIC_COMPARE_EXCHANGE ? METAL_EXCHANGE_EQUAL : 0;
            break;
        case HAL_IR_LANE_ID:
        case HAL_IR_SHUFFLE:
        case HAL_IR_SHUFFLE_XOR:
        case HAL_IR_SUBGROUP_REDUCE:
            used |= METAL_SUBGROUPS;
            break;
        case HAL_IR_MATRIX_MULTIPLY:
            used |= METAL_SUBGROUPS | METAL_MATRICES;
            break;
        default:
            break;
        }
    }
    return used;
}

/* The first F64 value, memory or scalar. */
static bool uses_f64(const hal_ir_kernel *ir)
{
    bool found = false;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        found |= ir->records[i].type == HAL_TYPE_F64;
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        found |= ir->scalars[i].type == HAL_TYPE_F64;
    }
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        found |= ir->memories[i].type == HAL_TYPE_F64;
    }
    return found;
}

/* The structure of scalars, with the offsets that the host writes them at. */
static void write_scalars(const hal_ir_kernel *ir, kit_text *text)
{
    uint32_t at = 0;
    kit_text_add(text, "struct arguments {\n");
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const hal_ir_scalar *scalar = &ir->scalars[i];
        if (scalar->offset > at) {
            kit_text_add(text, "    uchar gap%u[%u];\n", i, scalar->offset - at);
        }
        kit_text_add(text, "    %s s%u;\n", dialect.memory_types[scalar->type], i);
        at = scalar->offset + hal_type_size(scalar->type);
    }
    kit_text_add(text, "};\n");
}

/* Ids of work-items are computed from subgroup and lane, in the order that the IR requires: Metal
 * does not define which work-items are a subgroup. All subgroups but the last are full. */
static void write_items(const hal_ir_kernel *ir, kit_text *text)
{
    const uint32_t *size = ir->group_size;
    kit_text_add(text,
                 "    const uint item = subgroup * %uu + lane;\n"
                 "    const uint lanes = min(%uu, %uu - subgroup * %uu);\n"
                 "    const uint3 l = uint3(item %% %uu, item / %uu %% %uu, item / %uu);\n"
                 "    (void)l; (void)lanes;\n",
                 METAL_SUBGROUP_WIDTH, METAL_SUBGROUP_WIDTH, hal_ir_group_items(ir),
                 METAL_SUBGROUP_WIDTH, size[0], size[0], size[1], size[0] * size[1]);
}

static void write_head(const hal_ir_kernel *ir, bool subgroups, kit_text *text)
{
    kit_text_add(text, "kernel void hal_%s(\n", ir->names + ir->name);
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        const hal_ir_memory *memory = &ir->memories[i];
        kit_text_add(text, "    %sdevice %s *m%u [[buffer(%u)]],\n",
                     memory->access == HAL_ACCESS_READ ? "const " : "",
                     dialect.memory_types[memory->type], i, i);
    }
    if (metal_argument_bytes(ir) > 0) {
        kit_text_add(text, "    constant arguments &a [[buffer(%u)]],\n", ir->binding_count);
    }
    kit_text_add(text, subgroups ? "    uint lane [[thread_index_in_simdgroup]],\n"
                                   "    uint subgroup [[simdgroup_index_in_threadgroup]],\n"
                                 : "    uint3 l [[thread_position_in_threadgroup]],\n");
    kit_text_add(text, "    uint3 g [[threadgroup_position_in_grid]],\n"
                       "    uint3 n [[threadgroups_per_grid]])\n{\n");
}

hal_status metal_lower(const hal_ir_kernel *ir, uint32_t quirks, kit_text *text)
{
    const uint32_t used = functions_used(ir);
    const bool subgroups = (used & METAL_SUBGROUPS) != 0;
    kit_c_dialect words = dialect;
    if (uses_f64(ir)) {
        return kit_fail(HAL_ERROR_UNSUPPORTED,
                        "kernel %s: type: expected types of at most 32-bit floats, got f64; no "
                        "Metal device computes in f64",
                        ir->names + ir->name);
    }
    kit_text_add(text, "#include <metal_stdlib>\n"
                       "using namespace metal;\n"
                       "#pragma METAL fp contract(off)\n"
                       "#if __METAL_VERSION__ >= 320\n"
                       "#pragma METAL fp math_mode(safe)\n"
                       "#endif\n"
                       "#pragma clang diagnostic ignored \"-Wunused-variable\"\n"
                       "#pragma clang diagnostic ignored \"-Wtautological-compare\"\n");
    if (quirks & METAL_QUIRK_SLOW_HALF) {
        metal_lower_slow_half(text);
        words.narrow_f16 = "from_half(to_half(@a))";
        words.load_f16 = "from_half(*(@S half@N *)(@P))";
        words.store_f16 = "*(@S half@N *)(@P) = to_half(@X)";
    }
    metal_lower_functions(used, (quirks & METAL_QUIRK_SLOW_HALF) != 0, text);
    if (metal_argument_bytes(ir) > 0) {
        write_scalars(ir, text);
    }
    write_head(ir, subgroups, text);
    if (subgroups) {
        write_items(ir, text);
    }
    const hal_status status = kit_c_lower(kit_host(), &words, ir, text);
    kit_text_add(text, "}\n");
    if (status == HAL_OK && text->failed) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "kernel %s: no host memory for its source",
                        ir->names + ir->name);
    }
    return status;
}

uint32_t metal_argument_bytes(const hal_ir_kernel *ir)
{
    uint32_t bytes = 0, largest = 1;
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        const uint32_t size = hal_type_size(ir->scalars[i].type);
        bytes = ir->scalars[i].offset + size;
        largest = size > largest ? size : largest;
    }
    return (bytes + largest - 1) / largest * largest;
}

uint32_t metal_lower_storage_types(void)
{
    uint32_t types = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        types |= dialect.memory_types[type] ? HAL_TYPE_BIT(type) : 0;
    }
    return types;
}

bool metal_uses_subgroups(const hal_ir_kernel *ir)
{
    return (functions_used(ir) & METAL_SUBGROUPS) != 0;
}

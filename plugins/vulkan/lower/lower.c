/* A kernel as a SPIR-V module: the frame of the module, arguments, ids, variables and control flow;
 * other records are lowered by lower_*.c. */
#include "lower/lower.h"

#include "lower/arithmetic.h"
#include "lower/block.h"
#include "lower/convert.h"
#include "lower/matrix.h"
#include "lower/memory.h"
#include "lower/shared.h"
#include "lower/subgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hal_status lowering_init(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    uint32_t parts = 0;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        parts += ir->records[i].width > 1 ? ir->records[i].width : 0;
    }
    lower_find_communication(l);
    l->ids = calloc(ir->record_count + 1, sizeof *l->ids);
    l->parts = calloc(parts + 1, sizeof *l->parts);
    if (!l->ids || !l->parts) {
        lower_fail(l, HAL_ERROR_OUT_OF_MEMORY, "no host memory to lower %u records",
                   ir->record_count);
    }
    return l->status;
}

static void write_preamble(lower *l)
{
    spirv_capability(&l->writer, SPV_CAPABILITY_SHADER);
    spirv_capability(&l->writer, SPV_CAPABILITY_INT64);
    spirv_capability(&l->writer, SPV_CAPABILITY_PHYSICAL_STORAGE_BUFFER);
    spirv_capability(&l->writer, SPV_CAPABILITY_VULKAN_MEMORY_MODEL);
    l->glsl = spirv_id(&l->writer);
    spirv_emit_text(&l->writer, SPIRV_PREAMBLE, SPV_OP_EXT_INST_IMPORT, &l->glsl, 1, "GLSL.std.450",
                    NULL, 0);
    EMIT(&l->writer, SPIRV_PREAMBLE, SPV_OP_MEMORY_MODEL, SPV_ADDRESSING_PHYSICAL_STORAGE_BUFFER_64,
         SPV_MEMORY_MODEL_VULKAN);
}

static void write_mode(lower *l, uint32_t main, uint32_t capability, uint32_t mode, uint32_t widths)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (widths >> i & 1) {
            spirv_capability(&l->writer, capability);
            EMIT(&l->writer, SPIRV_MODES, SPV_OP_EXECUTION_MODE, main, mode, 16u << i);
        }
    }
}

static void write_modes(lower *l, uint32_t main)
{
    const spirv_target *target = l->target;
    const uint32_t *size = l->ir->group_size;
    const uint32_t items = hal_ir_group_items(l->ir);
    EMIT(&l->writer, SPIRV_MODES, SPV_OP_EXECUTION_MODE, main, SPV_MODE_LOCAL_SIZE,
         l->flat ? items : size[0], l->flat ? 1 : size[1], l->flat ? 1 : size[2]);
    write_mode(l, main, SPV_CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE,
               SPV_MODE_SIGNED_ZERO_INF_NAN_PRESERVE, target->zero_inf_nan);
    write_mode(l, main, SPV_CAPABILITY_DENORM_PRESERVE, SPV_MODE_DENORM_PRESERVE,
               target->denormals);
    write_mode(l, main, SPV_CAPABILITY_ROUNDING_MODE_RTE, SPV_MODE_ROUNDING_MODE_RTE,
               target->nearest_even);
}

static uint32_t load_argument(lower *l, uint32_t member, uint32_t type, uint32_t bytes)
{
    const uint32_t place =
        RESULT(&l->writer, SPV_OP_ACCESS_CHAIN, lower_pointer(l, l->arguments_storage, type),
               l->arguments, lower_u32(l, member));
    if (l->arguments_storage == SPV_STORAGE_PUSH_CONSTANT) {
        return RESULT(&l->writer, SPV_OP_LOAD, type, place);
    }
    return RESULT(&l->writer, SPV_OP_LOAD, type, place, SPV_ACCESS_ALIGNED, bytes);
}

/* The block of arguments as a struct, the pointer to it, and the addresses in it. */
static void declare_arguments(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    const uint32_t bytes = spirv_argument_bytes(ir->binding_count, ir->scalar_bytes);
    const uint32_t count = ir->binding_count + ir->scalar_count;
    const int pushed = bytes <= l->target->push_bytes;
    uint32_t members[1 + HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SCALAR_BYTES];
    if (count == 0) {
        return;
    }
    const uint32_t block = members[0] = spirv_id(&l->writer);
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_scalar *scalar =
            i < ir->binding_count ? NULL : &ir->scalars[i - ir->binding_count];
        members[1 + i] = !scalar ? lower_int(l, 64) : lower_type(l, scalar->type);
        EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_MEMBER_DECORATE, block, i, SPV_DECORATION_OFFSET,
             !scalar ? 8 * i : 8 * ir->binding_count + scalar->offset);
    }
    EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_DECORATE, block, SPV_DECORATION_BLOCK);
    spirv_emit(&l->writer, SPIRV_DECLARATIONS, SPV_OP_TYPE_STRUCT, members, count + 1);
    l->arguments_storage = pushed ? SPV_STORAGE_PUSH_CONSTANT : SPV_STORAGE_PHYSICAL_STORAGE_BUFFER;
    uint32_t pushed_type = block;
    if (!pushed) {
        pushed_type = spirv_id(&l->writer);
        EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_MEMBER_DECORATE, pushed_type, 0,
             SPV_DECORATION_OFFSET, 0);
        EMIT(&l->writer, SPIRV_DECORATIONS, SPV_OP_DECORATE, pushed_type, SPV_DECORATION_BLOCK);
        EMIT(&l->writer, SPIRV_DECLARATIONS, SPV_OP_TYPE_STRUCT, pushed_type, lower_int(l, 64));
    }
    const uint32_t variable = spirv_id(&l->writer);
    EMIT(&l->writer, SPIRV_DECLARATIONS, SPV_OP_VARIABLE,
         lower_pointer(l, SPV_STORAGE_PUSH_CONSTANT, pushed_type), variable,
         SPV_STORAGE_PUSH_CONSTANT);
    l->interface[l->interface_count++] = variable;
    l->arguments = variable;
    if (!pushed) {
        const uint32_t place = RESULT(&l->writer, SPV_OP_ACCESS_CHAIN,
                                      lower_pointer(l, SPV_STORAGE_PUSH_CONSTANT, lower_int(l, 64)),
                                      variable, lower_u32(l, 0));
        const uint32_t address = RESULT(&l->writer, SPV_OP_LOAD, lower_int(l, 64), place);
        l->arguments = RESULT(&l->writer, SPV_OP_CONVERT_U_TO_PTR,
                              lower_pointer(l, l->arguments_storage, block), address);
    }
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        l->bindings[i] = load_argument(l, i, lower_int(l, 64), 8);
    }
}

/* The highest bit of an address: a driver does not know that it is 0. It serves targets that hide
 * constants, and where f32 is rounded to f16 by PackHalf2x16, which a driver would fold with the
 * conversion back, without rounding. */
static void hide_zero(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    int rounds = 0;
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        rounds |= ir->memories[i].type == HAL_TYPE_F16;
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        rounds |= ir->records[i].opcode == HAL_IR_NARROW && ir->records[i].aux == HAL_TYPE_F16;
    }
    if (((rounds && l->target->half_packs) || l->target->hides != 0) && ir->binding_count > 0) {
        l->hidden_long = RESULT(&l->writer, SPV_OP_SHIFT_RIGHT_LOGICAL, lower_int(l, 64),
                                l->bindings[0], lower_u32(l, 63));
        l->hidden_zero = RESULT(&l->writer, SPV_OP_U_CONVERT, lower_int(l, 32), l->hidden_long);
    }
}

/* Ids and counts. In a flat group the ids of all dimensions are derived from one. */
static uint32_t lower_id(lower *l, const hal_ir_record *record)
{
    const uint32_t *size = l->ir->group_size;
    const uint32_t u32 = lower_int(l, 32);
    if (record->opcode == HAL_IR_GROUP_ID) {
        return lower_input(l, SPV_BUILT_IN_WORKGROUP_ID, 3, record->aux);
    }
    if (record->opcode == HAL_IR_GROUP_COUNT) {
        return lower_input(l, SPV_BUILT_IN_NUM_WORKGROUPS, 3, record->aux);
    }
    if (size[record->aux] == 1) {
        return lower_u32(l, 0);
    }
    if (!l->flat) {
        return lower_input(l, SPV_BUILT_IN_LOCAL_INVOCATION_ID, 3, record->aux);
    }
    uint32_t place = lower_input(l, SPV_BUILT_IN_LOCAL_INVOCATION_ID, 3, 0);
    const uint32_t before = record->aux == 0 ? 1 : record->aux == 1 ? size[0] : size[0] * size[1];
    if (before > 1) {
        place = RESULT(&l->writer, SPV_OP_U_DIV, u32, place, lower_u32(l, before));
    }
    if (before * size[record->aux] < hal_ir_group_items(l->ir)) {
        place = RESULT(&l->writer, SPV_OP_U_MOD, u32, place, lower_u32(l, size[record->aux]));
    }
    return place;
}

/* A vector is the list of its elements. */
static void lower_vector_record(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    if (record->opcode == HAL_IR_EXTRACT) {
        l->ids[index] = l->parts[l->ids[record->a] + (uint32_t)record->imm];
        return;
    }
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    l->ids[index] = l->part_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t width = l->ir->records[operands[i]].width;
        for (uint32_t k = 0; k < width; k++) {
            l->parts[l->part_count++] =
                width == 1 ? l->ids[operands[i]] : l->parts[l->ids[operands[i]] + k];
        }
    }
}

static void lower_variable(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    const uint32_t type =
        lower_type(l, record->opcode == HAL_IR_SET ? l->ir->records[record->a].type : record->type);
    if (record->opcode == HAL_IR_GET) {
        l->ids[index] = RESULT(&l->writer, SPV_OP_LOAD, type, l->ids[record->a]);
        return;
    }
    if (record->opcode == HAL_IR_VAR) {
        l->ids[index] = spirv_id(&l->writer);
        EMIT(&l->writer, SPIRV_HEAD, SPV_OP_VARIABLE, lower_pointer(l, SPV_STORAGE_FUNCTION, type),
             l->ids[index], SPV_STORAGE_FUNCTION);
        EMIT(&l->writer, SPIRV_BODY, SPV_OP_STORE, l->ids[index], l->ids[record->a]);
        return;
    }
    EMIT(&l->writer, SPIRV_BODY, SPV_OP_STORE, l->ids[record->a], l->ids[record->b]);
}

/* Starts a block of the IR at the current depth. */
static void block_enter(lower *l)
{
    l->open_blocks[l->depth] = ++l->block_serial;
}

/* The header of the loop has the condition; `next` adds the step. */
static void open_for(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    spirv_writer *w = &l->writer;
    lower_block *block = &l->blocks[l->depth++];
    *block = (lower_block){.opcode = HAL_IR_FOR,
                           .record = index,
                           .header = spirv_id(w),
                           .next = spirv_id(w),
                           .merge = spirv_id(w),
                           .next_value = spirv_id(w)};
    const uint32_t before = l->label, body = spirv_id(w);
    lower_branch(l, block->header);
    lower_label(l, block->header);
    l->ids[index] = lower_phi(l, lower_type(l, record->type), l->ids[record->a], before,
                              block->next_value, block->next);
    const uint32_t is_below =
        RESULT(w, record->type == HAL_TYPE_I32 ? SPV_OP_S_LESS_THAN : SPV_OP_U_LESS_THAN,
               lower_bool(l), l->ids[index], l->ids[record->b]);
    EMIT(w, SPIRV_BODY, SPV_OP_LOOP_MERGE, block->merge, block->next, 0);
    EMIT(w, SPIRV_BODY, SPV_OP_BRANCH_CONDITIONAL, is_below, body, block->merge);
    lower_label(l, body);
    block_enter(l);
}

static void open_if(lower *l, const hal_ir_record *record)
{
    lower_block *block = &l->blocks[l->depth++];
    const uint32_t yes = spirv_id(&l->writer);
    *block = (lower_block){.opcode = HAL_IR_IF, .merge = spirv_id(&l->writer)};
    lower_branch_if(l, l->ids[record->a], yes, block->merge, block->merge);
    block->branch_word = l->writer.sections[SPIRV_BODY].count - 1;
    lower_label(l, yes);
    block_enter(l);
}

static void open_else(lower *l)
{
    lower_block *block = &l->blocks[l->depth - 1];
    const uint32_t no = spirv_id(&l->writer);
    lower_branch(l, block->merge);
    if (!l->writer.failed) {
        l->writer.sections[SPIRV_BODY].data[block->branch_word] = no;
    }
    lower_label(l, no);
    block_enter(l);
}

static void close_block(lower *l)
{
    const lower_block *block = &l->blocks[--l->depth];
    if (block->opcode == HAL_IR_FOR) {
        const hal_ir_record *record = &l->ir->records[block->record];
        lower_branch(l, block->next);
        lower_label(l, block->next);
        EMIT(&l->writer, SPIRV_BODY, SPV_OP_I_ADD, lower_type(l, record->type), block->next_value,
             l->ids[block->record], l->ids[record->c]);
        lower_branch(l, block->header);
    } else {
        lower_branch(l, block->merge);
    }
    lower_label(l, block->merge);
}

/* gallivm (Mesa's llvmpipe) folds 0 and NaN as operands of floats: it loses NaN and signs, and does
 * not store x / 0. NVIDIA's compiler makes constant NaN quiet, so bits are hidden as an integer. */
static void lower_constant_record(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    const uint64_t bits = l->ir->constants[record->aux];
    const uint32_t width = 8 * hal_type_size(record->type);
    const uint64_t size = bits << (64 - width) << 1;
    const uint64_t infinity = record->type == HAL_TYPE_F32 ? UINT64_C(0x7f800000) << 33
                                                           : UINT64_C(0x7ff0000000000000) << 1;
    const uint32_t special = size > infinity ? SPIRV_HIDES_CONSTANTS | SPIRV_HIDES_NAN
                             : size == 0 || size == infinity ? SPIRV_HIDES_CONSTANTS
                                                             : 0;
    if (!hal_type_is_float(record->type) || !(l->target->hides & special)) {
        l->ids[index] = lower_constant(l, record->type, bits);
        return;
    }
    const hal_type word = width == 64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    l->ids[index] = lower_from_bits(l, record->type,
                                    lower_hide(l, special, word, lower_number(l, width, bits)));
}

static void lower_record(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    switch (record->opcode) {
    case HAL_IR_CONSTANT:
        lower_constant_record(l, index);
        break;
    case HAL_IR_SCALAR:
        l->ids[index] = load_argument(l, l->ir->binding_count + record->aux,
                                      lower_type(l, record->type), hal_type_size(record->type));
        break;
    case HAL_IR_LOCAL_ID:
    case HAL_IR_GROUP_ID:
    case HAL_IR_GROUP_COUNT:
        l->ids[index] = lower_id(l, record);
        break;
    case HAL_IR_PACK:
    case HAL_IR_EXTRACT:
        lower_vector_record(l, index);
        break;
    case HAL_IR_LOAD:
    case HAL_IR_STORE:
    case HAL_IR_ATOMIC:
        lower_memory(l, index);
        break;
    case HAL_IR_VAR:
    case HAL_IR_GET:
    case HAL_IR_SET:
        lower_variable(l, index);
        break;
    case HAL_IR_FOR:
        open_for(l, index);
        break;
    case HAL_IR_IF:
        open_if(l, record);
        break;
    case HAL_IR_ELSE:
        open_else(l);
        break;
    case HAL_IR_END:
        close_block(l);
        break;
    case HAL_IR_BARRIER:
        lower_barrier(l);
        break;
    case HAL_IR_LANE_ID:
    case HAL_IR_SHUFFLE:
    case HAL_IR_SHUFFLE_XOR:
    case HAL_IR_SUBGROUP_REDUCE:
        l->ids[index] = lower_subgroup(l, record);
        break;
    case HAL_IR_MATRIX_MULTIPLY:
        lower_matrix_multiply(l, index);
        break;
    case HAL_IR_BITCAST:
        l->ids[index] = lower_from_bits(
            l, record->type, lower_bits(l, l->ir->records[record->a].type, l->ids[record->a]));
        break;
    case HAL_IR_CAST:
        l->ids[index] =
            lower_cast(l, l->ir->records[record->a].type, record->type, l->ids[record->a]);
        break;
    case HAL_IR_NARROW:
        l->ids[index] = lower_narrow(l, (hal_type)record->aux, l->ids[record->a]);
        break;
    default:
        l->ids[index] = lower_arithmetic(l, record);
        break;
    }
}

uint32_t spirv_argument_bytes(uint32_t binding_count, uint32_t scalar_bytes)
{
    return 8 * binding_count + scalar_bytes;
}

static void lower_kernel(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    const uint32_t main = spirv_id(&l->writer);
    write_preamble(l);
    write_modes(l, main);
    const uint32_t none = spirv_unique(&l->writer, SPV_OP_TYPE_VOID, 0, NULL, 0);
    const uint32_t function = UNIQUE(&l->writer, SPV_OP_TYPE_FUNCTION, 0, none);
    l->label = spirv_id(&l->writer);
    EMIT(&l->writer, SPIRV_HEAD, SPV_OP_FUNCTION, none, main, 0, function);
    EMIT(&l->writer, SPIRV_HEAD, SPV_OP_LABEL, l->label);
    declare_arguments(l);
    hide_zero(l);
    lower_declare_shared(l);
    for (uint32_t i = 0; i < ir->record_count && l->status == HAL_OK; i++) {
        lower_record(l, i);
    }
    spirv_emit(&l->writer, SPIRV_BODY, SPV_OP_RETURN, NULL, 0);
    spirv_emit(&l->writer, SPIRV_BODY, SPV_OP_FUNCTION_END, NULL, 0);
    spirv_emit_text(&l->writer, SPIRV_ENTRY, SPV_OP_ENTRY_POINT,
                    (uint32_t[]){SPV_EXECUTION_MODEL_GL_COMPUTE, main}, 2, "main", l->interface,
                    l->interface_count);
    spirv_emit_text(&l->writer, SPIRV_NAMES, SPV_OP_NAME, &main, 1, ir->names + ir->name, NULL, 0);
}

hal_status spirv_lower(const hal_ir_kernel *ir, const spirv_target *target, spirv_module *module,
                       char *problem, uint32_t problem_bytes)
{
    memset(module, 0, sizeof *module);
    lower *l = calloc(1, sizeof *l); /* too large for small stacks */
    if (!l) {
        snprintf(problem, problem_bytes, "no host memory for its SPIR-V");
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    l->ir = ir;
    l->target = target;
    l->problem = problem;
    l->problem_bytes = problem_bytes;
    module->argument_bytes = spirv_argument_bytes(ir->binding_count, ir->scalar_bytes);
    module->uses_subgroups = (uint32_t)lower_needs_subgroups(ir);
    module->items = hal_ir_group_items(ir);
    l->flat = module->uses_subgroups;
    l->status = lowering_init(l);
    if (l->status == HAL_OK) {
        lower_kernel(l);
    }
    if (l->status == HAL_OK) {
        module->words = spirv_finish(&l->writer, &module->word_count);
        if (!module->words) {
            lower_fail(l, HAL_ERROR_OUT_OF_MEMORY, "no host memory for its SPIR-V");
        }
    }
    const hal_status status = l->status;
    spirv_release(&l->writer);
    free(l->ids);
    free(l->parts);
    free(l);
    return status;
}

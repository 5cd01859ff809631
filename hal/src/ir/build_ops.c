/* The builder's operations. Each makes a record, which hal_ir_append checks. */
#include "internal.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE HAL_IR_NONE

/* An operation of `count` operands. */
static hal_ir_value append_operation(hal_ir_builder *builder, uint32_t opcode, uint32_t count,
                                     hal_ir_value x, hal_ir_value y, hal_ir_value z, uint32_t flags)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return NONE;
    }
    const hal_ir_info *info = hal_ir_info_of(opcode);
    if (!info) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "opcode: expected HAL_IR_*, got %u",
                            opcode);
        return NONE;
    }
    const uint32_t expected = (uint32_t)strcspn(info->operands, "-");
    if (count != expected) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "%s: expected %u operands, got %u",
                            info->name, expected, count);
        return NONE;
    }
    hal_ir_record record = hal_ir_record_of(opcode, x, y, z, NONE);
    record.flags = flags;
    return hal_ir_append(builder, record);
}

/* Appends a conversion of operand a, or returns the operand if it has the type already. */
static hal_ir_value append_conversion(hal_ir_builder *builder, hal_type type, hal_ir_record record)
{
    if (type != HAL_TYPE_NONE && hal_ir_builder_get_status(builder) == HAL_OK &&
        hal_ir_type_of(builder, record.a) == type) {
        return record.a;
    }
    return hal_ir_append(builder, record);
}

static bool memory_is_declared(hal_ir_builder *builder, hal_ir_memory_id memory, const char *opcode)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return false;
    }
    const uint32_t count = hal_ir_builder_view(builder)->memory_count;
    if (memory >= count) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "%s: memory: expected one of the %u memories of this builder, got %u",
                            opcode, count, memory);
        return false;
    }
    return true;
}

/* A width for the record's 8 bits; the check rejects 9. */
static uint8_t width_field(uint32_t width)
{
    return width == 0 || width > 8 ? 9 : (uint8_t)width;
}

static int32_t imm_field(uint32_t value)
{
    return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

/* One record of a fragment with its operands replaced; NONE after an error. */
static hal_ir_value splice_record(hal_ir_builder *builder, const hal_ir_kernel *fragment,
                                  uint32_t index, const hal_ir_value *values,
                                  const hal_ir_value *inputs)
{
    hal_ir_record record = fragment->records[index];
    if (record.opcode == HAL_IR_CONSTANT) {
        return hal_ir_constant_of(builder, record.type, fragment->constants[record.aux]);
    }
    if (record.opcode == HAL_IR_INPUT) {
        const hal_ir_value input = inputs[record.aux];
        if (hal_ir_type_of(builder, input) != record.type) {
            hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                                "splice: inputs[%u]: expected %s, as fragment %s declares, got %s",
                                record.aux, hal_type_name(record.type),
                                fragment->names + fragment->name,
                                hal_type_name(hal_ir_type_of(builder, input)));
            return NONE;
        }
        return input;
    }
    hal_ir_record_rename(&record, values);
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_unary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x)
{
    return append_operation(builder, opcode, 1, x, NONE, NONE, 0);
}

hal_ir_value hal_ir_binary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x, hal_ir_value y)
{
    return append_operation(builder, opcode, 2, x, y, NONE, 0);
}

hal_ir_value hal_ir_ternary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x,
                            hal_ir_value y, hal_ir_value z)
{
    return append_operation(builder, opcode, 3, x, y, z, 0);
}

hal_ir_value hal_ir_global_id(hal_ir_builder *builder, uint32_t dimension)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return HAL_IR_NONE;
    }
    const hal_ir_value group = hal_ir_id(builder, HAL_IR_GROUP_ID, dimension);
    const hal_ir_value local = hal_ir_id(builder, HAL_IR_LOCAL_ID, dimension);
    const uint32_t size = dimension < 3 ? hal_ir_builder_view(builder)->group_size[dimension] : 1;
    return hal_ir_add(builder, hal_ir_mul(builder, group, hal_ir_u32(builder, size)), local);
}

hal_ir_value hal_ir_math(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x, hal_ir_value y,
                         uint32_t flags)
{
    if (hal_ir_builder_is_usable(builder) && !hal_ir_is_math(opcode)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                            "opcode: expected a transcendental function, got %u", opcode);
    }
    return append_operation(builder, opcode, opcode == HAL_IR_POW ? 2 : 1, x, y, NONE, flags);
}

hal_ir_value hal_ir_cast(hal_ir_builder *builder, hal_type type, hal_ir_value x)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_CAST, x, NONE, NONE, NONE);
    record.type = type;
    return append_conversion(builder, type, record);
}

hal_ir_value hal_ir_bitcast(hal_ir_builder *builder, hal_type type, hal_ir_value x)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_BITCAST, x, NONE, NONE, NONE);
    record.type = type;
    return append_conversion(builder, type, record);
}

hal_ir_value hal_ir_narrow(hal_ir_builder *builder, hal_type storage, hal_ir_value x)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_NARROW, x, NONE, NONE, NONE);
    record.aux = storage;
    return append_conversion(builder, storage, record);
}

hal_ir_value hal_ir_pack(hal_ir_builder *builder, uint32_t width, const hal_ir_value *elements)
{
    if (!hal_ir_builder_is_usable(builder)) {
        return NONE;
    }
    if (!elements || (width != 2 && width != 4 && width != 8)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                            elements ? "pack: width: expected 2, 4 or 8, got %u"
                                     : "pack: elements: expected a valid pointer, got null",
                            width);
        return NONE;
    }
    hal_ir_record record = hal_ir_record_blank(HAL_IR_PACK);
    record.width = (uint8_t)width;
    if (width == 8) {
        record.a = hal_ir_pack(builder, 4, elements);
        record.b = hal_ir_pack(builder, 4, elements + 4);
    } else {
        record.a = elements[0];
        record.b = elements[1];
        record.c = width == 4 ? elements[2] : NONE;
        record.d = width == 4 ? elements[3] : NONE;
    }
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_extract(hal_ir_builder *builder, hal_ir_value vector, uint32_t element)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_EXTRACT, vector, NONE, NONE, NONE);
    record.imm = imm_field(element);
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_load(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index)
{
    return hal_ir_load_wide(builder, memory, index, 0, 1, NONE);
}

hal_ir_value hal_ir_load_wide(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                              int32_t offset, uint32_t width, hal_ir_value guard)
{
    if (!memory_is_declared(builder, memory, "load")) {
        return NONE;
    }
    hal_ir_record record = hal_ir_record_of(HAL_IR_LOAD, index, guard, NONE, NONE);
    record.width = width_field(width);
    record.aux = memory;
    record.imm = offset;
    return hal_ir_append(builder, record);
}

void hal_ir_store(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                  hal_ir_value value)
{
    hal_ir_store_wide(builder, memory, index, 0, NONE, value);
}

void hal_ir_store_wide(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                       int32_t offset, hal_ir_value guard, hal_ir_value value)
{
    if (memory_is_declared(builder, memory, "store")) {
        hal_ir_record record = hal_ir_record_of(HAL_IR_STORE, index, guard, value, NONE);
        record.aux = memory;
        record.imm = offset;
        hal_ir_append(builder, record);
    }
}

hal_ir_value hal_ir_atomic(hal_ir_builder *builder, uint32_t kind, hal_ir_memory_id memory,
                           hal_ir_value index, hal_ir_value guard, hal_ir_value operand,
                           hal_ir_value comparand)
{
    if (!memory_is_declared(builder, memory, "atomic")) {
        return NONE;
    }
    hal_ir_record record = hal_ir_record_of(HAL_IR_ATOMIC, index, guard, operand, comparand);
    record.aux = memory;
    record.flags = kind;
    return hal_ir_append(builder, record);
}

void hal_ir_async_copy(hal_ir_builder *builder, hal_ir_memory_id shared, hal_ir_value shared_index,
                       hal_ir_memory_id binding, hal_ir_value binding_index, uint32_t width,
                       hal_ir_value guard)
{
    if (memory_is_declared(builder, shared, "async_copy") &&
        memory_is_declared(builder, binding, "async_copy")) {
        hal_ir_record record =
            hal_ir_record_of(HAL_IR_ASYNC_COPY, shared_index, guard, NONE, binding_index);
        record.width = width_field(width);
        record.aux = shared;
        record.imm = (int32_t)binding;
        hal_ir_append(builder, record);
    }
}

void hal_ir_async_commit(hal_ir_builder *builder)
{
    hal_ir_append(builder, hal_ir_record_blank(HAL_IR_ASYNC_COMMIT));
}

void hal_ir_async_wait(hal_ir_builder *builder, uint32_t sets_in_flight)
{
    hal_ir_record record = hal_ir_record_blank(HAL_IR_ASYNC_WAIT);
    record.imm = imm_field(sets_in_flight);
    hal_ir_append(builder, record);
}

hal_ir_value hal_ir_var(hal_ir_builder *builder, hal_ir_value initial)
{
    return hal_ir_append(builder, hal_ir_record_of(HAL_IR_VAR, initial, NONE, NONE, NONE));
}

hal_ir_value hal_ir_get(hal_ir_builder *builder, hal_ir_value variable)
{
    return hal_ir_append(builder, hal_ir_record_of(HAL_IR_GET, variable, NONE, NONE, NONE));
}

void hal_ir_set(hal_ir_builder *builder, hal_ir_value variable, hal_ir_value value)
{
    hal_ir_append(builder, hal_ir_record_of(HAL_IR_SET, variable, value, NONE, NONE));
}

hal_ir_value hal_ir_for(hal_ir_builder *builder, hal_ir_value start, hal_ir_value end,
                        hal_ir_value step)
{
    return hal_ir_append(builder, hal_ir_record_of(HAL_IR_FOR, start, end, step, NONE));
}

void hal_ir_if(hal_ir_builder *builder, hal_ir_value condition)
{
    hal_ir_append(builder, hal_ir_record_of(HAL_IR_IF, condition, NONE, NONE, NONE));
}

void hal_ir_else(hal_ir_builder *builder)
{
    hal_ir_append(builder, hal_ir_record_blank(HAL_IR_ELSE));
}

void hal_ir_end(hal_ir_builder *builder)
{
    hal_ir_append(builder, hal_ir_record_blank(HAL_IR_END));
}

void hal_ir_barrier(hal_ir_builder *builder)
{
    hal_ir_append(builder, hal_ir_record_blank(HAL_IR_BARRIER));
}

hal_ir_value hal_ir_shuffle(hal_ir_builder *builder, hal_ir_value x, hal_ir_value lane)
{
    return hal_ir_append(builder, hal_ir_record_of(HAL_IR_SHUFFLE, x, lane, NONE, NONE));
}

hal_ir_value hal_ir_shuffle_xor(hal_ir_builder *builder, hal_ir_value x, uint32_t mask)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_SHUFFLE_XOR, x, NONE, NONE, NONE);
    record.imm = imm_field(mask);
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_subgroup_reduce(hal_ir_builder *builder, uint32_t kind, hal_ir_value x)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_SUBGROUP_REDUCE, x, NONE, NONE, NONE);
    record.aux = kind;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_matrix_multiply(hal_ir_builder *builder, hal_type type, hal_ir_value a,
                                    hal_ir_value b, hal_ir_value c)
{
    hal_ir_record record = hal_ir_record_of(HAL_IR_MATRIX_MULTIPLY, a, b, c, NONE);
    record.aux = type;
    return hal_ir_append(builder, record);
}

static void outputs_clear(hal_ir_value *outputs, uint32_t count)
{
    for (uint32_t i = 0; outputs && i < count; i++) {
        outputs[i] = NONE;
    }
}

void hal_ir_splice(hal_ir_builder *builder, const hal_ir_kernel *fragment,
                   const hal_ir_value *inputs, uint32_t input_count, hal_ir_value *outputs,
                   uint32_t output_count)
{
    if (!hal_ir_builder_is_usable(builder)) {
        outputs_clear(outputs, output_count);
        return;
    }
    if (!fragment || !(fragment->flags & HAL_IR_FRAGMENT) || fragment->input_count != input_count ||
        fragment->output_count != output_count || (!inputs && input_count > 0) ||
        (!outputs && output_count > 0)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "splice: fragment: expected one of %u inputs and %u outputs, got %u "
                            "and %u",
                            input_count, output_count, !fragment ? 0 : fragment->input_count,
                            !fragment ? 0 : fragment->output_count);
        outputs_clear(outputs, output_count);
        return;
    }
    hal_ir_value *values = malloc((fragment->record_count + 1) * sizeof *values);
    if (!values) {
        hal_ir_builder_fail(builder, HAL_ERROR_OUT_OF_MEMORY, "splice: no host memory");
        outputs_clear(outputs, output_count);
        return;
    }
    bool is_whole = true;
    for (uint32_t i = 0; i < fragment->record_count && is_whole; i++) {
        if (fragment->records[i].opcode != HAL_IR_OUTPUT) {
            values[i] = splice_record(builder, fragment, i, values, inputs);
            is_whole = values[i] != NONE;
        }
    }
    for (uint32_t i = 0; i < fragment->record_count; i++) { /* the inputs are read */
        const hal_ir_record *record = &fragment->records[i];
        if (record->opcode == HAL_IR_OUTPUT) {
            outputs[record->aux] = is_whole ? values[record->a] : NONE;
        }
    }
    free(values);
}

/* The builder's operations: each fills a record and hands it to hal_ir_append, which checks it. */
#include "internal.h"
#include "base/status.h"

#include <stdlib.h>

static int usable(hal_ir_builder *builder)
{
    if (builder == NULL) {
        hal_fail(HAL_ERROR_INVALID_ARGUMENT, "building IR: `builder` is null");
        return 0;
    }
    return hal_ir_builder_get_status(builder) == HAL_OK;
}

/* An operation whose syntax takes just these operands. */
static hal_ir_value operate(hal_ir_builder *builder, uint32_t opcode, const char *operands,
                            hal_ir_value x, hal_ir_value y, hal_ir_value z, uint32_t flags)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    const hal_ir_info *info = hal_ir_info_of(opcode);
    if (info == NULL) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "there is no opcode %u", opcode);
        return HAL_IR_NONE;
    }
    const uint32_t expected = (info->operands[0] != '-') + (info->operands[1] != '-') +
                              (info->operands[2] != '-') + (info->operands[3] != '-');
    const uint32_t given = operands[1] == 0 ? 1 : operands[3] == 0 ? 2 : 3;
    if (given != expected) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "%s takes %u operands, not %u",
                            info->name, expected, given);
        return HAL_IR_NONE;
    }
    hal_ir_record record = hal_ir_blank(opcode);
    record.a = x;
    record.b = y;
    record.c = z;
    record.flags = flags;
    return hal_ir_append(builder, record);
}

static int is_known(hal_ir_builder *builder, hal_ir_memory_id memory, const char *opcode)
{
    const hal_ir_kernel *view = hal_ir_builder_view(builder);
    if (memory >= view->memory_count) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "%s: memory %u was not declared on this builder", opcode, memory);
        return 0;
    }
    return 1;
}

static hal_ir_value simple(hal_ir_builder *builder, uint32_t opcode)
{
    return hal_ir_append(builder, hal_ir_blank(opcode));
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
                                "splice: input %u of fragment %s has type %s, not %s", record.aux,
                                fragment->names + fragment->name, hal_type_name(record.type),
                                hal_type_name(hal_ir_type_of(builder, input)));
            return HAL_IR_NONE;
        }
        return input;
    }
    hal_ir_value *operands[4] = {&record.a, &record.b, &record.c, &record.d};
    for (uint32_t k = 0; k < 4; k++) {
        if (*operands[k] != HAL_IR_NONE) {
            *operands[k] = values[*operands[k]];
        }
    }
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_unary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x)
{
    return operate(builder, opcode, "a", x, HAL_IR_NONE, HAL_IR_NONE, 0);
}

hal_ir_value hal_ir_binary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x, hal_ir_value y)
{
    return operate(builder, opcode, "a,b", x, y, HAL_IR_NONE, 0);
}

hal_ir_value hal_ir_ternary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x,
                            hal_ir_value y, hal_ir_value z)
{
    return operate(builder, opcode, "a,b,c", x, y, z, 0);
}

hal_ir_value hal_ir_math(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x, hal_ir_value y,
                         uint32_t flags)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    if (!hal_ir_is_math(opcode)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR,
                            "opcode %u is no transcendental function", opcode);
        return HAL_IR_NONE;
    }
    return operate(builder, opcode, opcode == HAL_IR_POW ? "a,b" : "a", x, y, HAL_IR_NONE, flags);
}

hal_ir_value hal_ir_cast(hal_ir_builder *builder, hal_type type, hal_ir_value x)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    if (type != HAL_TYPE_NONE && hal_ir_type_of(builder, x) == type) {
        return x;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_CAST);
    record.type = type;
    record.a = x;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_bitcast(hal_ir_builder *builder, hal_type type, hal_ir_value x)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    if (type != HAL_TYPE_NONE && hal_ir_type_of(builder, x) == type) {
        return x;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_BITCAST);
    record.type = type;
    record.a = x;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_narrow(hal_ir_builder *builder, hal_type storage, hal_ir_value x)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    if (storage != HAL_TYPE_NONE && hal_ir_type_of(builder, x) == storage) {
        return x;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_NARROW);
    record.aux = storage;
    record.a = x;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_pack(hal_ir_builder *builder, uint32_t width, const hal_ir_value *elements)
{
    if (!usable(builder)) {
        return HAL_IR_NONE;
    }
    if (elements == NULL || (width != 2 && width != 4 && width != 8)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_IR, "pack: %s",
                            elements == NULL ? "`elements` is null" : "width is not 2, 4 or 8");
        return HAL_IR_NONE;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_PACK);
    record.width = (uint8_t)width;
    if (width == 8) {
        record.a = hal_ir_pack(builder, 4, elements);
        record.b = hal_ir_pack(builder, 4, elements + 4);
    } else {
        record.a = elements[0];
        record.b = elements[1];
        record.c = width == 4 ? elements[2] : HAL_IR_NONE;
        record.d = width == 4 ? elements[3] : HAL_IR_NONE;
    }
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_extract(hal_ir_builder *builder, hal_ir_value vector, uint32_t element)
{
    hal_ir_record record = hal_ir_blank(HAL_IR_EXTRACT);
    record.a = vector;
    record.imm = element > 8 ? 8 : (int32_t)element;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_load(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index)
{
    return hal_ir_load_wide(builder, memory, index, 0, 1, HAL_IR_NONE);
}

hal_ir_value hal_ir_load_wide(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                              int32_t offset, uint32_t width, hal_ir_value guard)
{
    if (!usable(builder) || !is_known(builder, memory, "load")) {
        return HAL_IR_NONE;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_LOAD);
    record.width = width == 0 || width > 8 ? 9 : (uint8_t)width; /* 9 is refused as no width */
    record.aux = memory;
    record.a = index;
    record.b = guard;
    record.imm = offset;
    return hal_ir_append(builder, record);
}

void hal_ir_store(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                  hal_ir_value value)
{
    hal_ir_store_wide(builder, memory, index, 0, HAL_IR_NONE, value);
}

void hal_ir_store_wide(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                       int32_t offset, hal_ir_value guard, hal_ir_value value)
{
    if (!usable(builder) || !is_known(builder, memory, "store")) {
        return;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_STORE);
    record.aux = memory;
    record.a = index;
    record.b = guard;
    record.c = value;
    record.imm = offset;
    hal_ir_append(builder, record);
}

hal_ir_value hal_ir_atomic(hal_ir_builder *builder, uint32_t kind, hal_ir_memory_id memory,
                           hal_ir_value index, hal_ir_value guard, hal_ir_value operand,
                           hal_ir_value comparand)
{
    if (!usable(builder) || !is_known(builder, memory, "atomic")) {
        return HAL_IR_NONE;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_ATOMIC);
    record.aux = memory;
    record.flags = kind;
    record.a = index;
    record.b = guard;
    record.c = operand;
    record.d = comparand;
    return hal_ir_append(builder, record);
}

void hal_ir_async_copy(hal_ir_builder *builder, hal_ir_memory_id shared,
                       hal_ir_value shared_index, hal_ir_memory_id binding,
                       hal_ir_value binding_index, uint32_t width, hal_ir_value guard)
{
    if (!usable(builder) || !is_known(builder, shared, "async_copy") ||
        !is_known(builder, binding, "async_copy")) {
        return;
    }
    hal_ir_record record = hal_ir_blank(HAL_IR_ASYNC_COPY);
    record.width = width == 0 || width > 8 ? 9 : (uint8_t)width;
    record.aux = shared;
    record.imm = (int32_t)binding;
    record.a = shared_index;
    record.b = guard;
    record.d = binding_index;
    hal_ir_append(builder, record);
}

void hal_ir_async_commit(hal_ir_builder *builder)
{
    simple(builder, HAL_IR_ASYNC_COMMIT);
}

void hal_ir_async_wait(hal_ir_builder *builder, uint32_t sets_under_way)
{
    hal_ir_record record = hal_ir_blank(HAL_IR_ASYNC_WAIT);
    record.imm = sets_under_way > INT32_MAX ? INT32_MAX : (int32_t)sets_under_way;
    hal_ir_append(builder, record);
}

hal_ir_value hal_ir_var(hal_ir_builder *builder, hal_ir_value initial)
{
    return operate(builder, HAL_IR_VAR, "a", initial, HAL_IR_NONE, HAL_IR_NONE, 0);
}

hal_ir_value hal_ir_get(hal_ir_builder *builder, hal_ir_value variable)
{
    return operate(builder, HAL_IR_GET, "a", variable, HAL_IR_NONE, HAL_IR_NONE, 0);
}

void hal_ir_set(hal_ir_builder *builder, hal_ir_value variable, hal_ir_value value)
{
    operate(builder, HAL_IR_SET, "a,b", variable, value, HAL_IR_NONE, 0);
}

hal_ir_value hal_ir_for(hal_ir_builder *builder, hal_ir_value start, hal_ir_value end,
                        hal_ir_value step)
{
    return operate(builder, HAL_IR_FOR, "a,b,c", start, end, step, 0);
}

void hal_ir_if(hal_ir_builder *builder, hal_ir_value condition)
{
    operate(builder, HAL_IR_IF, "a", condition, HAL_IR_NONE, HAL_IR_NONE, 0);
}

void hal_ir_else(hal_ir_builder *builder)
{
    simple(builder, HAL_IR_ELSE);
}

void hal_ir_end(hal_ir_builder *builder)
{
    simple(builder, HAL_IR_END);
}

void hal_ir_barrier(hal_ir_builder *builder)
{
    simple(builder, HAL_IR_BARRIER);
}

hal_ir_value hal_ir_shuffle(hal_ir_builder *builder, hal_ir_value x, hal_ir_value lane)
{
    return operate(builder, HAL_IR_SHUFFLE, "a,b", x, lane, HAL_IR_NONE, 0);
}

hal_ir_value hal_ir_shuffle_xor(hal_ir_builder *builder, hal_ir_value x, uint32_t mask)
{
    hal_ir_record record = hal_ir_blank(HAL_IR_SHUFFLE_XOR);
    record.a = x;
    record.imm = mask > INT32_MAX ? INT32_MAX : (int32_t)mask;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_subgroup_reduce(hal_ir_builder *builder, uint32_t kind, hal_ir_value x)
{
    hal_ir_record record = hal_ir_blank(HAL_IR_SUBGROUP_REDUCE);
    record.a = x;
    record.aux = kind;
    return hal_ir_append(builder, record);
}

hal_ir_value hal_ir_matrix_multiply(hal_ir_builder *builder, hal_type type, hal_ir_value a,
                                    hal_ir_value b, hal_ir_value c)
{
    hal_ir_record record = hal_ir_blank(HAL_IR_MATRIX_MULTIPLY);
    record.a = a;
    record.b = b;
    record.c = c;
    record.aux = type;
    return hal_ir_append(builder, record);
}

void hal_ir_splice(hal_ir_builder *builder, const hal_ir_kernel *fragment,
                   const hal_ir_value *inputs, uint32_t input_count, hal_ir_value *outputs,
                   uint32_t output_count)
{
    for (uint32_t i = 0; outputs != NULL && i < output_count; i++) {
        outputs[i] = HAL_IR_NONE;
    }
    if (!usable(builder)) {
        return;
    }
    if (fragment == NULL || !(fragment->flags & HAL_IR_FRAGMENT) ||
        fragment->input_count != input_count || fragment->output_count != output_count ||
        (inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0)) {
        hal_ir_builder_fail(builder, HAL_ERROR_INVALID_ARGUMENT,
                            "splice: `fragment` has to be a fragment of %u inputs and %u outputs, "
                            "it has %u and %u",
                            input_count, output_count, fragment == NULL ? 0 : fragment->input_count,
                            fragment == NULL ? 0 : fragment->output_count);
        return;
    }
    hal_ir_value *values = malloc((fragment->record_count + 1) * sizeof *values);
    if (values == NULL) {
        hal_ir_builder_fail(builder, HAL_ERROR_OUT_OF_MEMORY, "splice: no host memory");
        return;
    }
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        const hal_ir_record *record = &fragment->records[i];
        if (record->opcode == HAL_IR_OUTPUT) {
            outputs[record->aux] = values[record->a];
            continue;
        }
        values[i] = splice_record(builder, fragment, i, values, inputs);
        if (values[i] == HAL_IR_NONE) {
            break;
        }
    }
    free(values);
}

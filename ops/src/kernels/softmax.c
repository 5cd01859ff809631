/* Softmax and its logarithm along an axis, as row programs. A row that a group keeps in registers
 * is read once: maximum, then sum, then the result. On GPUs a longer one is read twice: maximum and
 * sum together, then the result. Few long rows are cut into slices: partial maxima and sums, their
 * combination, and a pointwise kernel for the result. */
#include "rows.h"
#include "tensor/context.h"
#include "tensor/expression.h"
#include "tensor/loop_limit.h"
#include "tensor/overlap.h"

typedef struct softmax_call {
    const char *function;
    uint32_t axis;
    const ops_tensor *x, *y;
    int logarithm;
    hal_type type;
} softmax_call;

static hal_status check_arguments(const ops_context *context, const char *function,
                                  int32_t given_axis, uint32_t axis, const ops_tensor *x,
                                  const ops_tensor *y)
{
    hal_status status = ops_check_tensor(context, function, "x", x);
    if (!status) {
        status = ops_check_output(context, function, "y", y);
    }
    if (status) {
        return status;
    }
    char text[2][OPS_TEXT_BYTES];
    if (!hal_type_is_float(x->type) || hal_type_of_value(x->type) != hal_type_of_value(y->type)) {
        return ops_invalid("%s: y: expected floats of the value type of x, got x %s and y %s",
                           function, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (!ops_same_shape(x, y) || axis >= x->rank || x->shape[axis] > INT32_MAX) {
        return ops_invalid(
            "%s: y: expected the shape of x, with an axis %d below 2^31, got x %s and y %s",
            function, given_axis, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (ops_overlap(x, y) && !ops_same_view(x, y)) {
        return ops_invalid("%s: y: expected x itself or other memory, got an overlap with x",
                           function);
    }
    return HAL_OK;
}

static hal_ir_value reciprocal_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    (void)user;
    return hal_ir_div(b, hal_ir_number(b, hal_ir_type_of(b, in[0]), 1), in[0]);
}

/* exp(x - greatest) / sum, or x - greatest - log(sum). A row is divided once: multiplying by
 * 1 / sum adds one rounding, for which the bound in ops/reduce.h has room. */
static uint8_t add_result(ops_row_program *program, const softmax_call *c, uint8_t shifted,
                          uint8_t power, uint8_t sum)
{
    static const uint64_t key[2] = {OPS_ROW_KEY_RECIPROCAL, 0};
    if (!c->logarithm) {
        const uint8_t inverse = ops_row_map(program, reciprocal_emit, NULL, key, &sum, 1);
        return ops_row_opcode(program, HAL_IR_MUL, power, inverse);
    }
    const uint8_t log = ops_row_opcode(program, HAL_IR_LOG, sum, OPS_ROW_NONE);
    return ops_row_opcode(program, HAL_IR_SUB, shifted, log);
}

static hal_status program_record(ops_context *context, const softmax_call *c,
                                 const ops_row_program *program, const ops_tensor *shape,
                                 const ops_tensor *tensors, const ops_row_layout *layout)
{
    const ops_row_call call = {.function = c->function,
                               .name = c->logarithm ? "log_softmax" : "softmax",
                               .program = program,
                               .rank = shape->rank,
                               .axis = c->axis,
                               .shape = shape->shape,
                               .tensors = tensors,
                               .layout = layout,
                               .slice_stride =
                                   ops_tensor_get_element_count(c->x) / c->x->shape[c->axis]};
    return ops_row_record(context, &call);
}

/* One kernel. With `online`, maximum and sum are computed together. */
static hal_status softmax_whole(ops_context *context, const softmax_call *c, int online,
                                const ops_row_layout *layout)
{
    ops_row_program program;
    const ops_tensor tensors[2] = {*c->x, *c->y};
    const uint8_t x = 0;
    ops_row_begin(&program, 1);
    const uint8_t top =
        ops_row_reduce(&program, online ? OPS_FOLD_SOFTMAX : OPS_REDUCE_MAX, c->type, &x, 1);
    const uint8_t shifted = ops_row_opcode(&program, HAL_IR_SUB, x, top);
    const uint8_t power = ops_row_opcode(&program, HAL_IR_EXP, shifted, OPS_ROW_NONE);
    const uint8_t sum = online ? ops_row_place(&program, top)
                               : ops_row_reduce(&program, OPS_REDUCE_SUM, c->type, &power, 1);
    ops_row_output(&program, add_result(&program, c, shifted, power, sum));
    return program_record(context, c, &program, c->x, tensors, layout);
}

/* Greatest and sum: of slices of x, or of slices' partial results. */
static hal_status record_partials(ops_context *context, const softmax_call *c,
                                  const ops_tensor *inputs, uint32_t input_count,
                                  const ops_tensor outputs[2], const ops_row_layout *layout)
{
    static const uint8_t operands[2] = {0, 1};
    ops_row_program program;
    ops_tensor tensors[4];
    ops_row_begin(&program, input_count);
    for (uint32_t i = 0; i < input_count; i++) {
        tensors[i] = inputs[i];
    }
    tensors[input_count] = outputs[0];
    tensors[input_count + 1] = outputs[1];
    const uint8_t top = ops_row_reduce(&program, OPS_FOLD_SOFTMAX, c->type, operands, input_count);
    ops_row_output(&program, top);
    ops_row_output(&program, ops_row_place(&program, top));
    return program_record(context, c, &program, &inputs[0], tensors, layout);
}

static hal_ir_value result_emit(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    const softmax_call *c = user;
    hal_ir_value shifted = hal_ir_sub(b, in[0], in[1]);
    if (c->logarithm) {
        return hal_ir_sub(b, shifted, hal_ir_math(b, HAL_IR_LOG, in[2], HAL_IR_NONE, 0));
    }
    return hal_ir_div(b, hal_ir_math(b, HAL_IR_EXP, shifted, HAL_IR_NONE, 0), in[2]);
}

static hal_status record_result(ops_context *context, const softmax_call *c,
                                const ops_tensor row[2])
{
    const ops_tensor inputs[3] = {*c->x, row[0], row[1]};
    const hal_type types[3] = {c->type, c->type, c->type};
    ops_expression *expression;
    hal_status status =
        ops_expression_make("softmax_result", types, 3, result_emit, c, &expression);
    if (!status) {
        status = ops_pointwise(context, expression, inputs, 3, c->y, 1);
        ops_expression_destroy(expression);
    }
    return status;
}

static hal_status softmax_sliced(ops_context *context, const softmax_call *c,
                                 const ops_row_layout *layout)
{
    ops_tensor partials[2] = {{0}, {0}}, rows[2] = {{0}, {0}};
    ops_row_layout second;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 2 && !status; i++) {
        status =
            ops_row_partials_create(context, c->x, c->axis, layout->slices, c->type, &partials[i]);
    }
    for (uint32_t i = 0; i < 2 && !status; i++) {
        status = ops_row_partials_create(context, c->x, c->axis, 1, c->type, &rows[i]);
    }
    if (!status) {
        status = record_partials(context, c, c->x, 1, partials, layout);
    }
    if (!status) {
        ops_row_layout_whole(context, &partials[0], c->axis, c->type, &second);
        status = record_partials(context, c, partials, 2, rows, &second);
    }
    if (!status) {
        status = record_result(context, c, rows);
    }
    for (uint32_t i = 0; i < 2; i++) {
        ops_tensor_release(&partials[i]);
        ops_tensor_release(&rows[i]);
    }
    return status;
}

static hal_status softmax_record(ops_context *context, const char *function, int32_t given_axis,
                                 const ops_tensor *x, const ops_tensor *y, int logarithm)
{
    const uint32_t axis = x ? ops_axis_number(given_axis, x->rank) : UINT32_MAX;
    hal_status status = check_arguments(context, function, given_axis, axis, x, y);
    if (status || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    const softmax_call c = {function, axis, x, y, logarithm, hal_type_of_value(x->type)};
    ops_row_layout layout;
    /* A kernel has up to three loops over the row. */
    status = ops_row_layout_choose(context, function, x, axis, 0, c.type,
                                   ops_loop_limit(context, 0, 0) / 3, &layout);
    if (status || layout.slices > 1) {
        return status ? status : softmax_sliced(context, &c, &layout);
    }
    /* A processor reads the row again from its cache; exp would cost more. */
    const int online =
        !ops_is_processor(context) &&
        !ops_row_layout_keeps(context, &layout, x->shape[axis], hal_type_size(c.type) / 4);
    return softmax_whole(context, &c, online, &layout);
}

hal_status ops_softmax(ops_context *context, int32_t axis, const ops_tensor *x, const ops_tensor *y)
{
    return softmax_record(context, "ops_softmax", axis, x, y, 0);
}

hal_status ops_log_softmax(ops_context *context, int32_t axis, const ops_tensor *x,
                           const ops_tensor *y)
{
    return softmax_record(context, "ops_log_softmax", axis, x, y, 1);
}

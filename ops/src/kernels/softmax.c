/* Softmax and its logarithm along an axis, as row programs. A row that a group keeps in registers
 * is read once: maximum, then sum, then the result. On GPUs a longer one is read twice: maximum and
 * sum together, then the result; so are slices of few long rows. On processors the result's memory
 * holds the exponentials from the sum to the result. */
#include "rows.h"
#include "short_functions.h"
#include "tensor/context.h"
#include "tensor/expression.h"
#include "tensor/loop_limit.h"
#include "tensor/overlap.h"

typedef struct softmax_call {
    const char *function;
    uint32_t axis;
    const ops_tensor *x, *y;
    bool logarithm;
    hal_type type;
} softmax_call;

static hal_status check_arguments(const ops_context *context, const char *function,
                                  int32_t given_axis, const ops_tensor *x, const ops_tensor *y,
                                  uint32_t *axis)
{
    hal_status status = ops_check_tensor(context, function, "x", x);
    if (status == HAL_OK) {
        status = ops_check_output(context, function, "y", y);
    }
    if (status == HAL_OK) {
        status = ops_check_axis(function, "axis", x, given_axis, axis);
    }
    if (status != HAL_OK) {
        return status;
    }
    char text[2][OPS_TEXT_BYTES];
    if (!hal_type_is_float(x->type) || hal_type_of_value(x->type) != hal_type_of_value(y->type)) {
        return ops_invalid("%s: y: expected floats of the value type of x, got x %s and y %s",
                           function, ops_describe(x, text[0]), ops_describe(y, text[1]));
    }
    if (!ops_same_shape(x, y) || x->shape[*axis] > INT32_MAX) {
        return ops_invalid(
            "%s: y: expected the shape of x, with an axis %u below 2^31, got x %s and y %s",
            function, *axis, ops_describe(x, text[0]), ops_describe(y, text[1]));
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

static hal_ir_value exp_below_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    return ops_exp_below(b, in[0], (uintptr_t)user == OPS_ROW_EXP_NARROW);
}

static uint8_t add_power(ops_row_program *program, uint8_t shifted)
{
    const uint32_t form = program->exponential;
    const uint64_t key[2] = {OPS_ROW_KEY_EXP_BELOW, form};
    return form == OPS_ROW_EXP_FULL ? ops_row_opcode(program, HAL_IR_EXP, shifted, OPS_ROW_NONE)
                                    : ops_row_map(program, exp_below_emit,
                                                  (const void *)(uintptr_t)form, key, &shifted, 1);
}

/* A device's own exp is faster. */
static uint8_t exponential_choose(const ops_context *context, const softmax_call *c)
{
    if (c->type != HAL_TYPE_F32 || !ops_expands(context->info, HAL_IR_EXP)) {
        return OPS_ROW_EXP_FULL;
    }
    return hal_type_is_narrow_float(c->y->type) ? OPS_ROW_EXP_NARROW : OPS_ROW_EXP_BELOW;
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

/* With `online`, maximum and sum are computed together. */
static hal_status program_record(ops_context *context, const softmax_call *c, bool online,
                                 const ops_row_layout *layout)
{
    ops_row_program *program = ops_scratch_take(&context->scratch, c->function, sizeof *program);
    if (!program) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const ops_tensor tensors[2] = {*c->x, *c->y};
    const uint8_t x = 0;
    ops_row_begin(program, 1);
    program->exponential = exponential_choose(context, c);
    const uint8_t top =
        ops_row_reduce(program, online ? OPS_FOLD_SOFTMAX : OPS_REDUCE_MAX, c->type, &x, 1);
    const uint8_t shifted = ops_row_opcode(program, HAL_IR_SUB, x, top);
    const uint8_t power = add_power(program, shifted);
    const uint8_t sum = online ? ops_row_place(program, top)
                               : ops_row_reduce(program, OPS_REDUCE_SUM, c->type, &power, 1);
    ops_row_keep(program, power, c->type);
    ops_row_output(program, add_result(program, c, shifted, power, sum));
    const ops_row_call call = {.function = c->function,
                               .name = c->logarithm ? "log_softmax" : "softmax",
                               .program = program,
                               .rank = c->x->rank,
                               .axis = c->axis,
                               .shape = c->x->shape,
                               .tensors = tensors,
                               .layout = layout};
    const hal_status status = ops_row_record(context, &call);
    ops_scratch_return(&context->scratch, program);
    return status;
}

/* Rows of one element: 1, or 0 as a logarithm, and NaN of an element that is not finite. An
 * elementwise kernel, since each work-item of one over rows would have a row of its own. */
static hal_status single_record(ops_context *context, const softmax_call *c)
{
    hal_ir_builder *b;
    ops_expression *expression;
    HAL_TRY(hal_ir_builder_create_fragment("softmax", &b));
    hal_ir_value x = hal_ir_input(b, 0, c->type);
    hal_ir_value zero = hal_ir_sub(b, x, x);
    hal_ir_output(b, 0, c->logarithm ? zero : hal_ir_add(b, zero, hal_ir_number(b, c->type, 1)));
    HAL_TRY(ops_expression_create(b, &expression));
    const hal_status status = ops_pointwise(context, expression, c->x, 1, c->y, 1);
    ops_expression_destroy(expression);
    return status;
}

static hal_status softmax_record(ops_context *context, const char *function, int32_t given_axis,
                                 const ops_tensor *x, const ops_tensor *y, bool logarithm)
{
    uint32_t axis;
    hal_status status = check_arguments(context, function, given_axis, x, y, &axis);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    const softmax_call c = {function, axis, x, y, logarithm, hal_type_of_value(x->type)};
    if (x->shape[axis] == 1) {
        return single_record(context, &c);
    }
    ops_row_layout layout;
    /* A kernel has up to three loops over the row. */
    HAL_TRY(ops_row_layout_choose(context, function, x, axis, c.type,
                                  ops_loop_limit(context, 0, 0) / 3, &layout));
    ops_row_layout_keep(context, x, axis, c.type, &layout);
    /* A processor reads the row again from its cache; exp would cost more. */
    const bool online =
        layout.slices > 1 ||
        (context->tuning->rows.softmax_is_online &&
         !ops_row_layout_keeps(context, &layout, x->shape[axis], hal_type_size(c.type) / 4));
    return program_record(context, &c, online, &layout);
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

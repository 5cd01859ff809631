/* Softmax in several kernels, see softmax_long.h. */
#include "softmax_long.h"

#include "tensor/expression.h"

#include <ops/reduce.h>

static hal_ir_value shifted(hal_ir_builder *b, const hal_ir_value *inputs)
{
    return hal_ir_sub(b, inputs[0], inputs[1]);
}

/* exp(x - top) */
static hal_ir_value build_power(hal_ir_builder *b, const hal_ir_value *inputs, const void *user)
{
    (void)user;
    return hal_ir_math(b, HAL_IR_EXP, shifted(b, inputs), HAL_IR_NONE, 0);
}

/* exp(x - top) / sum */
static hal_ir_value build_share(hal_ir_builder *b, const hal_ir_value *inputs, const void *user)
{
    return hal_ir_div(b, build_power(b, inputs, user), inputs[2]);
}

/* x - top - log(sum) */
static hal_ir_value build_logarithm(hal_ir_builder *b, const hal_ir_value *inputs, const void *user)
{
    (void)user;
    hal_ir_value log = hal_ir_math(b, HAL_IR_LOG, inputs[2], HAL_IR_NONE, 0);
    return hal_ir_sub(b, shifted(b, inputs), log);
}

/* The maximum of each row and the sum of its powers. */
static hal_status rows_reduce(ops_context *context, uint32_t axis, const ops_tensor *x,
                              const hal_type *types, const ops_tensor *top, const ops_tensor *sum)
{
    ops_expression *power = NULL;
    hal_status status = ops_reduce(context, OPS_REDUCE_MAX, (int32_t)axis, x, NULL, top);
    if (!status) {
        status = ops_expression_make("softmax_power", types, 2, build_power, NULL, &power);
    }
    if (!status) {
        ops_reduce_options options = OPS_REDUCE_OPTIONS_DEFAULT;
        options.prologue = power;
        options.prologue_inputs = top;
        options.prologue_input_count = 1;
        status = ops_reduce(context, OPS_REDUCE_SUM, (int32_t)axis, x, &options, sum);
    }
    ops_expression_destroy(power);
    return status;
}

hal_status ops_softmax_long(ops_context *context, uint32_t axis, const ops_tensor *x,
                            const ops_tensor *y, int logarithm)
{
    const hal_type type = hal_type_of_value(x->type), types[3] = {type, type, type};
    ops_tensor top = {0}, sum = {0};
    int64_t shape[OPS_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++) {
        shape[i] = i == axis ? 1 : x->shape[i];
    }
    ops_expression *result = NULL;
    hal_status status = ops_tensor_create(context, type, x->rank, shape, &top);
    if (!status) {
        status = ops_tensor_create(context, type, x->rank, shape, &sum);
    }
    if (!status) {
        status = rows_reduce(context, axis, x, types, &top, &sum);
    }
    if (!status) {
        status = ops_expression_make(logarithm ? "log_softmax_result" : "softmax_result", types, 3,
                                     logarithm ? build_logarithm : build_share, NULL, &result);
    }
    if (!status) {
        const ops_tensor inputs[3] = {*x, top, sum};
        status = ops_pointwise(context, result, inputs, 3, y, 1);
    }
    ops_expression_destroy(result);
    ops_tensor_release(&top);
    ops_tensor_release(&sum);
    return status;
}

/* Inference by products with levels, see dense_levels.h. */
#include "dense_levels.h"

/* relu(value + bias) */
static bool epilogue_create(bench_state *bench, ops_expression **made)
{
    hal_ir_builder *b = NULL;
    if (!bench_ok(bench, hal_ir_builder_create_fragment("bias_relu", &b), "a builder")) {
        return false;
    }
    const hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32); /* row, column and batch are not needed */
    }
    const hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32);
    hal_ir_output(b, 0, ops_unary_value(b, OPS_RELU, hal_ir_add(b, value, bias)));
    return bench_ok(bench, ops_expression_create(b, made), "an epilogue");
}

bool dense_levels_create(const dense_network *network, uint32_t levels, dense_levels *made)
{
    bench_state *bench = network->bench;
    const int64_t shape[2] = {network->cell->batch, network->cell->hidden};
    *made = (dense_levels){.network = network, .levels = levels};
    bool well = epilogue_create(bench, &made->epilogue);
    for (int i = 0; i < 2 && well; i++) {
        well = bench_ok(bench,
                        ops_tensor_create(bench->ops, HAL_TYPE_F32, 2, shape, &made->outputs[i]),
                        "an output");
    }
    return well;
}

void dense_levels_destroy(dense_levels *levels)
{
    ops_tensor_release(&levels->outputs[0]);
    ops_tensor_release(&levels->outputs[1]);
    ops_expression_destroy(levels->epilogue);
}

bool dense_levels_record(dense_levels *levels)
{
    const dense_network *n = levels->network;
    ops_tensor x, weights, bias;
    hal_status status = ops_array_get_tensor(n->x, &x);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_NORMWISE;
    options.levels = levels->levels;
    options.epilogue = levels->epilogue;
    options.inputs = &bias;
    options.input_count = 1;
    for (int i = 0; i < n->cell->layers && !status; i++) {
        status = ops_array_get_tensor(n->weights[i], &weights);
        status = status ? status : ops_array_get_tensor(n->biases[i], &bias);
        status =
            status ? status
                   : ops_gemm(n->bench->ops, &options, i == 0 ? &x : &levels->outputs[(i - 1) % 2],
                              &weights, &levels->outputs[i % 2]);
    }
    return bench_ok(n->bench, status, n->cell->name);
}

bool dense_levels_check(dense_levels *levels)
{
    const dense_network *n = levels->network;
    if (!dense_levels_record(levels)) {
        return false;
    }
    ops_scope_begin(n->bench->ops);
    ops_array *result = ops_array_keep(
        ops_array_from_tensor(n->bench->ops, &levels->outputs[(n->cell->layers - 1) % 2]));
    ops_scope_end(n->bench->ops);
    const bool well = result != NULL
                          ? dense_check(n, &result)
                          : bench_fail(n->bench, "%s: %s", n->cell->name, hal_status_message());
    ops_array_release(result);
    return well;
}

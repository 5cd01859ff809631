/* Inference by products with levels. */
#include "suites/dense/levels.h"

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

/* The prepared weights and the memory between the layers of a chain. */
static bool chain_create(dense_levels *made)
{
    const dense_network *n = made->network;
    bench_state *bench = n->bench;
    const dense_cell *cell = n->cell;
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    options.levels = made->levels;
    options.rows = cell->batch;
    bool well = true;
    for (int i = 0; i < cell->layers && well; i++) {
        ops_tensor weights;
        well = bench_ok(bench, ops_array_get_tensor(n->weights[i], &weights), "weights") &&
               bench_ok(bench, ops_gemm_prepare(bench->ops, &options, &weights, &made->prepared[i]),
                        "ops_gemm_prepare");
    }
    for (int i = 0; i < 2 && cell->layers > 1 && well; i++) {
        well = bench_ok(bench,
                        ops_gemm_sums_create(bench->ops, HAL_TYPE_F32, made->levels, cell->batch,
                                             cell->hidden, &made->sums[i]),
                        "sums");
    }
    return well;
}

bool dense_levels_create(dense_network *network, uint32_t levels, dense_levels *made)
{
    bench_state *bench = network->bench;
    const int64_t shape[2] = {network->cell->batch, network->cell->hidden};
    *made = (dense_levels){
        .network = network, .levels = levels, .is_chained = bench->info->kind != HAL_DEVICE_CPU};
    bool well =
        epilogue_create(bench, &made->epilogue) && (!made->is_chained || chain_create(made));
    for (int i = 0; i < (made->is_chained ? 1 : 2) && well; i++) {
        well = bench_ok(bench,
                        ops_tensor_create(bench->ops, HAL_TYPE_F32, 2, shape, &made->outputs[i]),
                        "an output");
    }
    return well;
}

void dense_levels_destroy(dense_levels *levels)
{
    for (int i = 0; i < 2; i++) {
        ops_tensor_release(&levels->outputs[i]);
        ops_tensor_release(&levels->sums[i]);
    }
    for (int i = 0; i < DENSE_MAX_LAYERS; i++) {
        ops_gemm_prepared_destroy(levels->prepared[i]);
    }
    ops_expression_destroy(levels->epilogue);
}

/* The tensor that a layer writes, and its sums; null: none. */
static const ops_tensor *layer_output(const dense_levels *levels, int layer)
{
    const bool is_last = layer + 1 == levels->network->cell->layers;
    return !levels->is_chained ? &levels->outputs[layer % 2] : is_last ? &levels->outputs[0] : NULL;
}

static hal_status layer_record(const dense_levels *levels, int layer)
{
    const dense_network *n = levels->network;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ops_tensor x, weights, bias;
    hal_status status = ops_array_get_tensor(n->x, &x);
    status = status ? status : ops_array_get_tensor(n->weights[layer], &weights);
    status = status ? status : ops_array_get_tensor(n->biases[layer], &bias);
    options.precision = HAL_GEMM_NORMWISE;
    options.levels = levels->levels;
    options.epilogue = levels->epilogue;
    options.inputs = &bias;
    options.input_count = 1;
    options.prepared = levels->prepared[layer];
    const ops_tensor *input = layer > 0 ? layer_output(levels, layer - 1) : &x;
    const ops_tensor *output = layer_output(levels, layer);
    options.a_sums = !input ? &levels->sums[(layer - 1) % 2] : NULL;
    options.c_sums = !output ? &levels->sums[layer % 2] : NULL;
    return status ? status
                  : ops_gemm(n->bench->ops, &options, input, options.prepared ? NULL : &weights,
                             output);
}

bool dense_levels_record(dense_levels *levels)
{
    hal_status status = HAL_OK;
    for (int i = 0; i < levels->network->cell->layers && !status; i++) {
        status = layer_record(levels, i);
    }
    return bench_ok(levels->network->bench, status, levels->network->cell->name);
}

bool dense_levels_check(dense_levels *levels)
{
    dense_network *n = levels->network;
    if (!dense_levels_record(levels)) {
        return false;
    }
    ops_scope_begin(n->bench->ops);
    ops_array *result = ops_array_keep(
        ops_array_from_tensor(n->bench->ops, layer_output(levels, n->cell->layers - 1)));
    ops_scope_end(n->bench->ops);
    const bool well = result != NULL
                          ? dense_check(n, &result)
                          : bench_fail(n->bench, "%s: %s", n->cell->name, hal_status_message());
    ops_array_release(result);
    return well;
}

/* Steps of a network. */
#include "suites/dense/steps.h"

static void results_use(const dense_steps *steps, ops_array **results, uint32_t count)
{
    dense_network *n = steps->network;
    if (n->cell->is_training) {
        dense_update(n, results);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            ops_array_release(results[i]);
        }
    }
}

/* The inputs that change from launch to launch, in the order of a training step's results. */
static uint32_t graph_inputs(const dense_network *n, ops_array **inputs)
{
    uint32_t count = 0;
    for (int i = 0; i < n->cell->layers && n->cell->is_training; i++) {
        inputs[count++] = n->weights[i];
        inputs[count++] = n->biases[i];
    }
    if (!n->cell->is_training) {
        inputs[count++] = n->x;
    }
    return count;
}

uint32_t dense_steps_results(const dense_steps *steps, ops_array **results)
{
    const dense_network *n = steps->network;
    ops_array *inputs[2 * DENSE_MAX_LAYERS];
    if (!steps->graph) {
        return dense_step(n, results);
    }
    const uint32_t in = graph_inputs(n, inputs);
    const uint32_t out = n->cell->is_training ? in : 1;
    return ops_graph_launch(steps->graph, inputs, in, results, out) == HAL_OK ? out : 0;
}

void dense_steps_run(void *user, int calls)
{
    dense_steps *steps = user;
    bench_state *bench = steps->network->bench;
    ops_array *results[2 * DENSE_MAX_LAYERS];
    ops_context_set_fusion(bench->ops, !steps->is_unfused);
    for (int i = 0; i < calls && !bench->failed; i++) {
        const uint32_t count = dense_steps_results(steps, results);
        if (count == 0) {
            bench_fail(bench, "%s: %s", steps->network->cell->name, hal_status_message());
        } else {
            results_use(steps, results, count);
        }
    }
    ops_context_set_fusion(bench->ops, 1);
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

hal_status dense_step_record(ops_context *context, void *user)
{
    const dense_network *n = user;
    ops_array *results[2 * DENSE_MAX_LAYERS];
    const uint32_t count = dense_step(n, results);
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(results[i]);
    }
    return count > 0 && context ? HAL_OK : HAL_ERROR_INVALID_STATE;
}

ops_graph *dense_graph_create(dense_network *n)
{
    ops_array *inputs[2 * DENSE_MAX_LAYERS], *results[2 * DENSE_MAX_LAYERS];
    ops_graph *graph = NULL;
    if (!bench_ok(n->bench, ops_graph_begin(n->bench->ops), "ops_graph_begin")) {
        return NULL;
    }
    const uint32_t count = dense_step(n, results), in = graph_inputs(n, inputs);
    bench_ok(n->bench, ops_graph_end(n->bench->ops, inputs, in, results, count, &graph),
             "ops_graph_end");
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(results[i]);
    }
    return graph;
}

double dense_step_flops(const dense_cell *cell)
{
    const double forward = 2.0 * (double)cell->layers * (double)cell->batch * (double)cell->hidden *
                           (double)cell->hidden;
    return cell->is_training ? forward * (3.0 - 1.0 / cell->layers) : forward;
}

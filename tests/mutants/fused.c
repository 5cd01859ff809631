/* A program on arrays for bisect.sh: (x * y + z) and its maximum with 0 are one kernel with fusion,
 * and three without it. Run with HAL_DUMP=calls, and with HAL_DUMP=calls,unfused. */
#include <hal/hal.h>
#include <ops/array.h>
#include <ops/graph.h>

#include <stdio.h>

enum { COUNT = 1000 };

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, hal_status_message());
    return 1;
}

int main(void)
{
    static float numbers[3][COUNT], result[COUNT];
    const int64_t shape[] = {COUNT};
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    for (int i = 0; i < COUNT; i++) {
        numbers[0][i] = 1.0f + (float)i / 1024;
        numbers[1][i] = 0.1f * (float)(i % 17);
        numbers[2][i] = -0.7f;
    }
    if (hal_device_open(NULL, &device) != HAL_OK || hal_queue_create(device, &queue) != HAL_OK ||
        ops_context_create(queue, &context) != HAL_OK) {
        return failed("opening");
    }
    ops_array *of[3];
    for (int i = 0; i < 3; i++) {
        of[i] = ops_array_from_host(context, HAL_TYPE_F32, 1, shape, numbers[i]);
    }
    ops_scope_begin(context);
    ops_array *before = ops_array_binary_scalar(OPS_MUL, of[0], 0.5);
    if (ops_array_evaluate(&before, 1) != HAL_OK) {
        return failed("the kernel before");
    }
    ops_array *sum = ops_array_binary(OPS_ADD, ops_array_binary(OPS_MUL, before, of[1]), of[2]);
    ops_array *end = ops_array_binary_scalar(OPS_MAXIMUM, sum, 0.0);
    if (ops_array_read(end, sizeof result, result) != HAL_OK) {
        return failed("the fused kernel");
    }
    /* The beginning of a graph computes the product and the sum; what it records has no values. */
    ops_graph *graph = NULL;
    ops_array *twice =
        ops_graph_begin(context) == HAL_OK ? ops_array_binary_scalar(OPS_MUL, of[0], 2.0) : NULL;
    if (!twice || ops_graph_end(context, NULL, 0, &twice, 1, &graph) != HAL_OK) {
        return failed("the graph");
    }
    ops_graph_destroy(graph);
    ops_scope_end(context);
    for (int i = 0; i < 3; i++) {
        ops_array_release(of[i]);
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}

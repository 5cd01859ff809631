// tanh(x * x + 1) as one kernel, on the device that HAL_BACKEND selects.
#include <ops/ops.h>
#include <stdio.h>

int main(void)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    const float numbers[3] = {0.5f, 1, 2};
    float result[3] = {0};
    int failed = hal_device_open(NULL, &device) || hal_queue_create(device, &queue) ||
                 ops_context_create(queue, &context) || ops_scope_begin(context);
    if (!failed) {
        ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 1, (int64_t[]){3}, numbers);
        ops_array *y = ops_tanh(ops_add_scalar(ops_mul(x, x), 1));
        failed = ops_array_read(y, sizeof result, result) || ops_scope_end(context);
    }
    if (failed) {
        fprintf(stderr, "%s\n", hal_status_message());
    } else {
        printf("%s: %g %g %g\n", hal_device_get_info(device)->name, (double)result[0],
               (double)result[1], (double)result[2]);
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return failed;
}

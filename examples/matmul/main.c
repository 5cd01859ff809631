// Multiplies two matrices on the device that HAL_BACKEND chooses.
#include <ops/ops.h>
#include <stdio.h>

int main(void)
{
    const int64_t shape_a[2] = {2, 3}, shape_b[2] = {3, 2}, shape_c[2] = {2, 2};
    const float numbers_a[] = {1, 2, 3, 4, 5, 6}, numbers_b[] = {7, 8, 9, 10, 11, 12};
    float numbers_c[4];
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    ops_tensor a = {0}, b = {0}, c = {0};
    int failed = hal_device_open(NULL, &device) || hal_queue_create(device, &queue) ||
                 ops_context_create(queue, &context) ||
                 ops_tensor_from_host(context, HAL_TYPE_F32, 2, shape_a, numbers_a, &a) ||
                 ops_tensor_from_host(context, HAL_TYPE_F32, 2, shape_b, numbers_b, &b) ||
                 ops_tensor_create(context, HAL_TYPE_F32, 2, shape_c, &c) ||
                 ops_gemm(context, NULL, &a, &b, &c) ||
                 ops_tensor_read(context, &c, sizeof numbers_c, numbers_c);
    if (failed) {
        fprintf(stderr, "%s\n", hal_status_message());
    } else {
        printf("%s: %g %g / %g %g\n", hal_device_get_info(device)->name, (double)numbers_c[0],
               (double)numbers_c[1], (double)numbers_c[2], (double)numbers_c[3]);
    }
    ops_tensor_release(&a);
    ops_tensor_release(&b);
    ops_tensor_release(&c);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return failed;
}

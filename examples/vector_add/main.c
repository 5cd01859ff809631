/* Adds two vectors: the smallest complete program over hal. An example of how a kernel is built and
 * dispatched, and its result read. */
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000000, GROUP = 64 };

/* Every call returns a status; its message says what to do. */
static void check(hal_status status)
{
    if (status != HAL_OK) {
        fprintf(stderr, "%s: %s\n", hal_status_name(status), hal_status_message());
        exit(1);
    }
}

/* sum[i] = x[i] + y[i] for i < count. One work-item for each element; the last group may reach
 * beyond the end, so loads and stores are guarded. */
static hal_ir_kernel *build(void)
{
    hal_ir_builder *b;
    hal_ir_kernel *ir;
    check(hal_ir_builder_create("vector_add", &b));
    hal_ir_group_size(b, GROUP, 1, 1);
    hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_memory_id sum = hal_ir_binding(b, "sum", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);

    hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value inside = hal_ir_lt(b, i, count);
    hal_ir_store_wide(b, sum, i, 0, inside,
                      hal_ir_add(b, hal_ir_load_wide(b, x, i, 0, 1, inside),
                                 hal_ir_load_wide(b, y, i, 0, 1, inside)));
    /* The builder keeps the first error of the calls above and returns it here. */
    check(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    return ir;
}

int main(void)
{
    static float x[COUNT], y[COUNT], sum[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 0.5f;
    }
    hal_device *device;
    hal_queue *queue;
    hal_kernel *kernel;
    hal_range ranges[3]; /* buffer, offset and length in bytes */
    check(hal_device_open(NULL, &device)); /* null: HAL_BACKEND, else the best device */
    check(hal_queue_create(device, &queue));
    hal_ir_kernel *ir = build();
    check(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    for (int i = 0; i < 3; i++) {
        ranges[i] = (hal_range){NULL, 0, HAL_WHOLE};
        check(hal_buffer_create(device, HAL_MEMORY_DEVICE, sizeof x, &ranges[i].buffer));
    }
    /* Commands execute in the order of recording; only the read waits. */
    const uint32_t grid[3] = {(COUNT + GROUP - 1) / GROUP, 1, 1}, count = COUNT;
    check(hal_queue_write(queue, ranges[0].buffer, 0, x, sizeof x));
    check(hal_queue_write(queue, ranges[1].buffer, 0, y, sizeof y));
    check(hal_queue_dispatch(queue, kernel, grid, ranges, 3, &count, sizeof count));
    check(hal_queue_read(queue, ranges[2].buffer, 0, sizeof sum, sum));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += sum[i] != x[i] + y[i];
    }
    printf("%s: added %d elements, %d wrong\n", hal_device_get_info(device)->name, COUNT, wrong);
    for (int i = 0; i < 3; i++) {
        hal_buffer_release(ranges[i].buffer);
    }
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return wrong != 0;
}

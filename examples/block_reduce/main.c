/* Sums a vector in blocks: each group reduces its block in shared memory, with a barrier after
 * every step, and the host adds the sums of the groups. An example of work-items that cooperate. */
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000003, GROUP = 128, GROUPS = (COUNT + GROUP - 1) / GROUP };

static void check(hal_status status)
{
    if (status != HAL_OK) {
        fprintf(stderr, "%s: %s\n", hal_status_name(status), hal_status_message());
        exit(1);
    }
}

/* sums[group] = the sum of the group's GROUP elements of x. */
static hal_ir_kernel *build(void)
{
    hal_ir_builder *b;
    hal_ir_kernel *ir;
    check(hal_ir_builder_create("block_reduce", &b));
    hal_ir_group_size(b, GROUP, 1, 1);
    hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_I32, HAL_ACCESS_READ);
    hal_ir_memory_id sums = hal_ir_binding(b, "sums", HAL_TYPE_I32, HAL_ACCESS_WRITE);
    hal_ir_memory_id part = hal_ir_shared(b, "part", HAL_TYPE_I32, GROUP);
    hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);

    hal_ir_value local = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value i = hal_ir_global_id(b, 0);
    /* A load whose guard is false returns 0. */
    hal_ir_store(b, part, local, hal_ir_load_wide(b, x, i, 0, 1, hal_ir_lt(b, i, count)));

    /* This C loop runs while the kernel is built: the kernel contains seven steps. */
    for (uint32_t half = GROUP / 2; half > 0; half /= 2) {
        hal_ir_barrier(b); /* makes the stores of the previous step visible */
        hal_ir_value adds = hal_ir_lt(b, local, hal_ir_u32(b, half));
        hal_ir_value other = hal_ir_load_wide(b, part, local, (int32_t)half, 1, adds);
        hal_ir_value own = hal_ir_load(b, part, local);
        hal_ir_store_wide(b, part, local, 0, adds, hal_ir_add(b, own, other));
    }
    hal_ir_value first = hal_ir_eq(b, local, hal_ir_u32(b, 0));
    hal_ir_value sum = hal_ir_load(b, part, local);
    hal_ir_store_wide(b, sums, hal_ir_id(b, HAL_IR_GROUP_ID, 0), 0, first, sum);

    check(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    return ir;
}

int main(void)
{
    static int32_t x[COUNT], sums[GROUPS];
    int64_t expected = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 1000 - 300;
        expected += x[i];
    }
    hal_device *device;
    hal_queue *queue;
    hal_kernel *kernel;
    hal_buffer *input, *output;
    check(hal_device_open(NULL, &device));
    check(hal_queue_create(device, &queue));
    hal_ir_kernel *ir = build();
    check(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    check(hal_buffer_create(device, HAL_MEMORY_DEVICE, sizeof x, &input));
    check(hal_buffer_create(device, HAL_MEMORY_DEVICE, sizeof sums, &output));

    const uint32_t grid[3] = {GROUPS, 1, 1};
    const uint32_t count = COUNT;
    const hal_range ranges[2] = {{input, 0, HAL_WHOLE}, {output, 0, HAL_WHOLE}};
    check(hal_queue_write(queue, input, 0, x, sizeof x));
    check(hal_queue_dispatch(queue, kernel, grid, ranges, 2, &count, sizeof count));
    check(hal_queue_read(queue, output, 0, sizeof sums, sums));

    int64_t sum = 0;
    for (int i = 0; i < GROUPS; i++) {
        sum += sums[i];
    }
    printf("%s: the sum of %d elements is %lld, expected %lld\n",
           hal_device_get_info(device)->name, COUNT, (long long)sum, (long long)expected);

    hal_buffer_release(input);
    hal_buffer_release(output);
    hal_kernel_release(kernel);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return sum != expected;
}

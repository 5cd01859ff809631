/* stress.c: more memory, queues, kernels and allocations than usual. */
#include <hal/hal.h>

#include "case/cases.h"
#include "hal/fixture.h"
#include "math/random.h"

/* Allocates large buffers until memory is out, releases them and continues. On a processor
 * untouched memory is free, so this stops at 64 buffers. */
static void out_of_memory(case_run *run, const void *parameters)
{
    enum { MOST = 64 };
    hal_buffer *held[MOST] = {NULL};
    hal_status status = HAL_OK;
    int count = 0;
    const uint64_t bytes = run->info->max_allocation / 4 * 4;
    while (count < MOST && status == HAL_OK) {
        status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, bytes, &held[count]);
        count += status == HAL_OK;
    }
    if (status != HAL_OK) {
        case_expect(run, status, HAL_ERROR_OUT_OF_MEMORY, NULL, "more memory than there is");
    }
    for (int i = 0; i < count; i++) {
        hal_buffer_release(held[i]);
    }
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    hal_buffer *small = words_create(run, run->queue, 1000, 1, 1);
    words_check(run, run->queue, small, 1000, 1, 1, "a buffer afterwards");
}

static void many_queues(case_run *run, const void *parameters)
{
    enum { QUEUES = 64 };
    hal_queue *queues[QUEUES];
    hal_buffer *y[QUEUES];
    hal_kernel *kernel = scale_kernel(run, run->device);
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i] = case_queue(run, run->device);
        hal_buffer *x = words_create(run, queues[i], 2000, i, 1);
        y[i] = words_create(run, queues[i], 2000, 0, 0);
        scale_dispatch(run, queues[i], kernel, x, y[i], 2000, 2, i);
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        words_check(run, queues[i], y[i], 2000, 3 * i, 2, "a queue's result");
    }
}

/* 500 different kernels, each made, run and released. */
static void many_kernels(case_run *run, const void *parameters)
{
    hal_buffer *out = words_create(run, run->queue, 64, 0, 0);
    const hal_range range = range_of(out);
    const uint32_t grid[3] = {2, 1, 1};
    const size_t objects = run->object_count;
    for (uint32_t i = 0; i < 500; i++) {
        hal_ir_builder *b = case_builder(run, "numbered");
        hal_ir_group_size(b, 32, 1, 1);
        const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_value id = hal_ir_global_id(b, 0);
        hal_ir_store(b, y, id, hal_ir_add(b, id, hal_ir_u32(b, i)));
        case_ok(run, hal_queue_dispatch(run->queue, case_kernel(run, b), grid, &range, 1, NULL, 0),
                "dispatch");
        words_check(run, run->queue, out, 64, i, 1, "the result");
        case_release(run, objects);
    }
}

/* Buffers of random sizes are created and released while their words are in use. */
static void pool_churn(case_run *run, const void *parameters)
{
    enum { SLOTS = 24 };
    hal_buffer *held[SLOTS] = {NULL};
    uint32_t counts[SLOTS] = {0}, starts[SLOTS] = {0};
    random_state random = {run->seed};
    for (int turn = 0; turn < 3000; turn++) {
        const size_t slot = random_below(&random, SLOTS);
        if (held[slot]) {
            words_check(run, run->queue, held[slot], counts[slot], starts[slot], 3, "a buffer");
            hal_buffer_release(held[slot]);
        }
        counts[slot] =
            1 + (uint32_t)random_below(&random, UINT64_C(1) << random_below(&random, 15));
        starts[slot] = (uint32_t)random_next(&random);
        held[slot] =
            hal_buffer_retain(words_create(run, run->queue, counts[slot], starts[slot], 3));
        case_release(run, 0);
        if (turn % 500 == 499) {
            case_ok(run, hal_device_trim(run->device), "hal_device_trim");
        }
    }
    for (size_t i = 0; i < SLOTS; i++) {
        hal_buffer_release(held[i]);
    }
}

void cases_hal_stress(case_list *list)
{
    case_add(list, out_of_memory, NULL, 0, "stress/out_of_memory");
    case_add(list, many_queues, NULL, 0, "stress/queues(64)");
    case_add(list, many_kernels, NULL, 0, "stress/kernels(500)");
    case_add(list, pool_churn, NULL, 0, "stress/pool_churn(seed=%llu)",
             (unsigned long long)list->seed);
}

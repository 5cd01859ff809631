/* fixture.c: a small kernel and buffers of u32. */
#include "hal/fixture.h"

#include <stdlib.h>

static void release_device(void *device)
{
    hal_device_release(device);
}

void device_own(case_run *run, hal_device *device)
{
    case_own(run, release_device, device);
}

void device_open_here(case_run *run)
{
    case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open");
    device_own(run, run->device);
    run->info = hal_device_get_info(run->device);
    run->queue = case_queue(run, run->device);
}

hal_ir_kernel *scale_ir(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "scale");
    hal_ir_group_size(b, SCALE_GROUP, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value count = hal_ir_scalar_value(b, "count", HAL_TYPE_U32);
    const hal_ir_value scale = hal_ir_scalar_value(b, "scale", HAL_TYPE_U32);
    const hal_ir_value shift = hal_ir_scalar_value(b, "shift", HAL_TYPE_U32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value guard = hal_ir_lt(b, i, count);
    const hal_ir_value loaded = hal_ir_load_wide(b, x, i, 0, 1, guard);
    hal_ir_store_wide(b, out, i, 0, guard, hal_ir_add(b, hal_ir_mul(b, loaded, scale), shift));
    return case_ir(run, b);
}

hal_kernel *scale_kernel(case_run *run, hal_device *device)
{
    hal_kernel *kernel = NULL;
    case_ok(run, hal_kernel_create(device, scale_ir(run), &kernel), "hal_kernel_create");
    case_own_kernel(run, kernel);
    return kernel;
}

void scale_dispatch(case_run *run, hal_queue *queue, hal_kernel *kernel, hal_buffer *x,
                    hal_buffer *out, uint32_t count, uint32_t scale, uint32_t shift)
{
    const uint32_t grid[3] = {(count + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    const hal_range ranges[2] = {range_of(x), range_of(out)};
    const scale_scalars scalars = {count, scale, shift};
    case_ok(run, hal_queue_dispatch(queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
            "hal_queue_dispatch");
}

hal_buffer *words_create(case_run *run, hal_queue *queue, uint32_t count, uint32_t start,
                         uint32_t step)
{
    const uint64_t bytes = (uint64_t)count * 4;
    hal_buffer *buffer = case_buffer(run, hal_queue_get_device(queue), HAL_MEMORY_DEVICE, bytes);
    const size_t before = run->object_count;
    uint32_t *words = case_allocate(run, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        words[i] = i * step + start;
    }
    case_ok(run, hal_queue_write(queue, buffer, 0, words, bytes), "hal_queue_write");
    case_release(run, before);
    return buffer;
}

void words_check(case_run *run, hal_queue *queue, hal_buffer *buffer, uint32_t count,
                 uint32_t start, uint32_t step, const char *what)
{
    const size_t before = run->object_count;
    uint32_t *words = case_allocate(run, count, 4);
    case_ok(run, hal_queue_read(queue, buffer, 0, (uint64_t)count * 4, words), "hal_queue_read");
    for (uint32_t i = 0; i < count; i++) {
        case_check(run, words[i] == i * step + start, "%s: word %u is %u instead of %u", what, i,
                   words[i], i * step + start);
    }
    case_release(run, before);
}

hal_gemm_description square_product(uint32_t size)
{
    return (hal_gemm_description){.size = sizeof(hal_gemm_description),
                                  .type_a = HAL_TYPE_F32,
                                  .type_b = HAL_TYPE_F32,
                                  .type_c = HAL_TYPE_F32,
                                  .beta_is_zero = 1,
                                  .batch = 1,
                                  .m = size,
                                  .n = size,
                                  .k = size,
                                  .lda = size,
                                  .ldb = size,
                                  .ldc = size};
}

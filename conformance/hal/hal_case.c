/* hal_case.c: a small kernel and buffers of u32; hal_case.h says who calls it. */
#include "hal/hal_case.h"

#include <stdlib.h>

hal_ir_kernel *scale_ir(case_run *run)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    if (!case_ok(run, hal_ir_builder_create("scale", &b), "hal_ir_builder_create")) {
        return NULL;
    }
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
    case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish");
    hal_ir_builder_destroy(b);
    return ir;
}

hal_kernel *scale_kernel(case_run *run, hal_device *device)
{
    hal_ir_kernel *ir = scale_ir(run);
    hal_kernel *kernel = NULL;
    if (ir != NULL) {
        case_ok(run, hal_kernel_create(device, ir, &kernel), "hal_kernel_create");
    }
    hal_ir_kernel_destroy(ir);
    return kernel;
}

bool scale_dispatch(case_run *run, hal_queue *queue, hal_kernel *kernel, hal_buffer *x,
                    hal_buffer *out, uint32_t count, uint32_t scale, uint32_t shift)
{
    const uint32_t grid[3] = {(count + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
    const hal_range ranges[2] = {{x, 0, HAL_WHOLE}, {out, 0, HAL_WHOLE}};
    const scale_scalars scalars = {count, scale, shift};
    return case_ok(run,
                   hal_queue_dispatch(queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
                   "hal_queue_dispatch");
}

hal_buffer *words_create(case_run *run, hal_queue *queue, uint32_t count, uint32_t start,
                         uint32_t step)
{
    hal_buffer *buffer = NULL;
    uint32_t *words = malloc((size_t)count * 4);
    for (uint32_t i = 0; words != NULL && i < count; i++) {
        words[i] = i * step + start;
    }
    const bool well = words != NULL &&
                      case_ok(run,
                              hal_buffer_create(hal_queue_get_device(queue), HAL_MEMORY_DEVICE,
                                                (uint64_t)count * 4, &buffer),
                              "hal_buffer_create") &&
                      case_ok(run, hal_queue_write(queue, buffer, 0, words, (uint64_t)count * 4),
                              "hal_queue_write");
    free(words);
    if (!well) {
        hal_buffer_release(buffer);
        return NULL;
    }
    return buffer;
}

bool words_check(case_run *run, hal_queue *queue, hal_buffer *buffer, uint32_t count,
                 uint32_t start, uint32_t step, const char *what)
{
    uint32_t *words = calloc(count, 4);
    bool well =
        words != NULL && case_ok(run, hal_queue_read(queue, buffer, 0, (uint64_t)count * 4, words),
                                 "hal_queue_read");
    for (uint32_t i = 0; i < count && well; i++) {
        well = case_check(run, words[i] == i * step + start, "%s: word %u is %u instead of %u",
                          what, i, words[i], i * step + start);
    }
    free(words);
    return well;
}

/* alias.c: two buffers of the same memory, see alias.h. */
#include "hal/alias.h"

static void buffer_release(void *buffer)
{
    hal_buffer_release(buffer);
}

void alias_begin(case_run *run, alias *made)
{
    hal_memory_handle handle = {0};
    made->other = case_queue(run, run->device);
    made->kernel = scale_kernel(run, run->device);
    made->first = words_create(run, run->queue, ALIAS_COUNT, 0, 1);
    made->between = words_create(run, run->queue, ALIAS_COUNT, 0, 0);
    made->result = words_create(run, run->queue, ALIAS_COUNT, 0, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    const hal_status status = hal_buffer_export(made->first, HAL_HANDLE_NATIVE, &handle);
    case_claim(run, status != HAL_ERROR_UNSUPPORTED, "export of native handles");
    case_ok(run, status, "hal_buffer_export");
    case_ok(run, hal_buffer_import(run->device, &handle, NULL, NULL, &made->second),
            "hal_buffer_import");
    case_own(run, buffer_release, made->second);
}

void alias_submit(case_run *run, const alias *is, hal_queue *queue)
{
    for (uint32_t i = 0; i < ALIAS_STEPS; i++) {
        scale_dispatch(run, queue, is->kernel, is->first, is->between, ALIAS_COUNT, 1, 1);
        scale_dispatch(run, queue, is->kernel, is->between, is->first, ALIAS_COUNT, 1, 1);
    }
}

void alias_check(case_run *run, const alias *is, hal_queue *queue, uint32_t turns, const char *what)
{
    scale_dispatch(run, queue, is->kernel, is->second, is->result, ALIAS_COUNT, 1, 0);
    words_check(run, queue, is->result, ALIAS_COUNT, 2 * ALIAS_STEPS * turns, 1, what);
}

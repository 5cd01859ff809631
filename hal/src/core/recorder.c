/* State of the batch in recording. */
#include "recorder.h"

#include "hooks.h"

static _Atomic uint64_t last_serial;

void hal_recorder_start_batch(hal_recorder *recorder)
{
    recorder->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    recorder->recording->serial = recorder->serial;
    recorder->recording->value = hal_timeline_next_value(recorder->timeline);
    recorder->memory_bytes = 0;
    hal_hazards_clear(&recorder->hazards);
    hal_recording_clear(recorder->recording);
    hal_recording_remove_fence(recorder->recording);
    hal_recording_clear_fences(recorder->recording);
    hal_recorder_limit_batch(recorder, recorder->batch_limit);
}

/* With HAL_HOOK_BATCHES the limit is 0: the first command of a batch finds it full, and the hook
 * is called before the command is recorded. */
void hal_recorder_limit_batch(hal_recorder *recorder, uint32_t commands)
{
    recorder->batch_limit = hal_hooks_on(HAL_HOOK_BATCHES) ? 0 : commands;
}

hal_status hal_recorder_add_wait(hal_recorder *recorder, hal_last_use use)
{
    if (use.timeline == recorder->timeline ||
        hal_timeline_has_reached(use.timeline, use.value, false)) {
        return HAL_OK;
    }
    return hal_recording_wait(recorder->recording, use);
}

void hal_recorder_count_memory(hal_recorder *recorder, uint64_t bytes)
{
    hal_timeline_set_recent(recorder->timeline);
    recorder->memory_bytes += bytes;
}

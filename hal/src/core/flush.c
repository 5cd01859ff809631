/* Flushing of batches. */
#include "flush.h"

#include "deferred.h"
#include "hooks.h"
#include "kernel_cache.h"
#include "loss.h"
#include "submit.h"

#include "base/status.h"

#include <stdio.h>

/* Submits an empty batch in place of one that failed. The thread's message stays that of the
 * failure. */
static void batch_drop(hal_queue *queue, uint64_t value, hal_status status)
{
    if (!atomic_load(&queue->timeline.device->lost)) {
        char message[HAL_MESSAGE_BYTES];
        hal_loss_add(queue, queue->recorder.recording, status, false);
        snprintf(message, sizeof message, "%s", hal_status_message());
        hal_submit_empty_batch(queue, queue->recorder.recording, value);
        hal_fail(status, "%s", message);
    }
}

static hal_status batch_submit(hal_queue *queue, uint64_t value)
{
    const hal_status status = hal_submit_batch(queue, queue->recorder.recording, value);
    if (status != HAL_OK) {
        batch_drop(queue, value, status);
        return status;
    }
    return queue->recorder.recording->fence_count == 0
               ? HAL_OK
               : hal_submit_signals(queue, queue->recorder.recording);
}

static hal_status batch_defer(hal_queue *queue, uint64_t value)
{
    hal_recording *spare = hal_deferred_take_spare(queue);
    if (!spare) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_flush: no host memory");
    }
    hal_deferred_add(queue, queue->recorder.recording, value);
    queue->recorder.recording = spare;
    return HAL_OK;
}

/* Waits for kernels that are being compiled. Without one of them the batch is empty: it comes after
 * those that are deferred, so it is not dropped here. */
static hal_status batch_resolve(hal_queue *queue)
{
    hal_recording *recording = queue->recorder.recording;
    if (recording->pending_count == 0) {
        return HAL_OK;
    }
    const hal_status status = hal_kernel_cache_resolve(queue->timeline.device->kernels, recording);
    if (status != HAL_OK) {
        hal_loss_add(queue, recording, status, false);
        hal_recording_clear(recording);
        hal_recording_remove_fence(recording);
        atomic_store(&queue->timeline.rejected, hal_timeline_next_value(&queue->timeline));
    }
    return status;
}

static hal_status batch_flush(hal_queue *queue)
{
    hal_timeline *timeline = &queue->timeline;
    const uint64_t value = hal_timeline_next_value(timeline);
    bool ready = atomic_load_explicit(&queue->deferred.count, memory_order_acquire) == 0;
    hal_status status =
        ready ? hal_submit_poll(queue, queue->recorder.recording, false, &ready) : HAL_OK;
    if (status != HAL_OK) {
        batch_drop(queue, value, status);
    } else if (ready) {
        status = batch_submit(queue, value);
    } else {
        HAL_TRY(batch_defer(queue, value));
    }
    if (status == HAL_OK || hal_timeline_has_submitted(timeline, value)) {
        atomic_store_explicit(&timeline->flushed, value, memory_order_release);
    }
    hal_hook_flushed(queue, value, status);
    hal_recorder_start_batch(&queue->recorder);
    return status;
}

/* The message is that of the first failure. */
static hal_status batch_compile_and_flush(hal_queue *queue)
{
    hal_saved_message message;
    const hal_status compiled = batch_resolve(queue);
    if (compiled == HAL_OK) {
        return batch_flush(queue);
    }
    hal_message_save(&message);
    batch_flush(queue);
    hal_message_restore(&message);
    return compiled;
}

/* With `count_waits`, a batch that only has waits is flushed as well. With `timed`, the time of the
 * point can be asked for: an empty batch comes after one that has none. */
static hal_status queue_flush(hal_queue *queue, bool count_waits, bool timed, hal_point *point)
{
    HAL_TRY(hal_queue_check(queue, "hal_queue_flush"));
    hal_deferred_advance();
    hal_status status = hal_deferred_take_error(queue);
    hal_recording *recording = queue->recorder.recording;
    if (status == HAL_OK &&
        (recording->command_count > 0 || recording->fence || queue->needs_batch ||
         (count_waits && recording->wait_count > 0) || (timed && queue->ends_untimed))) {
        recording->flags = timed || hal_hooks_on(HAL_HOOK_BATCHES) ? 0 : HAL_BATCH_UNTIMED;
        queue->ends_untimed = recording->flags != 0;
        queue->needs_batch = false;
        status = batch_compile_and_flush(queue);
    }
    hal_kernel_cache_sweep(queue->timeline.device->kernels);
    if (point) {
        *point = (hal_point){queue,
                             atomic_load_explicit(&queue->timeline.flushed, memory_order_relaxed)};
    }
    return status;
}

hal_status hal_queue_flush(hal_queue *queue, hal_point *point)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_flush");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue,
                                             queue_flush(queue, false, point != NULL, point))
                            : status;
}

hal_status hal_flush_untimed(hal_queue *queue, hal_point *point)
{
    return queue_flush(queue, false, false, point);
}

hal_status hal_flush_waits(hal_queue *queue, hal_point *point)
{
    return queue_flush(queue, true, false, point);
}

/* With HAL_HOOK_BATCHES a batch has one command, so that the device time between two points is
 * that of one command. */
static hal_status flush_for_hook(hal_queue *queue)
{
    const hal_status status =
        queue->recorder.recording->command_count > 0 ? hal_queue_flush(queue, NULL) : HAL_OK;
    queue->recorder.batch_limit = 1;
    hal_hooks_table()->batch_started(queue);
    return status;
}

hal_status hal_flush_full(hal_queue *queue)
{
    if (hal_hooks_on(HAL_HOOK_BATCHES)) {
        return flush_for_hook(queue);
    }
    /* The device is busy from now on, and larger batches cost less per command. */
    hal_recorder *recorder = &queue->recorder;
    const uint64_t twice = 2 * (uint64_t)recorder->batch_limit;
    recorder->batch_limit = twice < recorder->batch_most ? (uint32_t)twice : recorder->batch_most;
    return hal_queue_flush(queue, NULL);
}

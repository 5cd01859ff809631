/* Submission of batches. The plugin may read the handles of queues that a batch waits for until the
 * batch has run, so those queues record it as a dependent. */
#include "submit.h"

#include "hooks.h"
#include "loss.h"

#include "base/status.h"

#include <stdlib.h>

/* Appends the fences of others that the batch waits for. */
static hal_status fences_add(hal_queue *queue, const hal_recording *recording, uint64_t value,
                             hal_plugin_wait *waits, uint32_t *count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < recording->fence_count && status == HAL_OK; i++) {
        const hal_fence_value *is = &recording->fences[i];
        status = hal_fence_add_use(is->fence, (hal_last_use){&queue->timeline, value});
        if (!is->is_signal) {
            waits[(*count)++] = (hal_plugin_wait){
                .fence = is->fence->handle, .value = is->value, .kind = HAL_WAIT_FENCE};
        }
    }
    return status;
}

/* Pins the queues that the batch waits for. The caller unpins all of them, also after an error. */
static hal_status waits_pin(hal_queue *queue, const hal_recording *recording, uint64_t value,
                            hal_plugin_wait *waits, uint32_t *count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        const hal_last_use wait = recording->waits[i];
        hal_loss_follow(queue, recording, wait);
        hal_timeline_pin(wait.timeline);
        if (status != HAL_OK || atomic_load(&wait.timeline->closing)) {
            continue;
        }
        status = hal_submit_add_dependent(hal_timeline_queue(wait.timeline),
                                          (hal_last_use){&queue->timeline, value});
        waits[(*count)++] = (hal_plugin_wait){.queue = wait.timeline->handle,
                                              .value = wait.value - wait.timeline->base};
    }
    return status;
}

static hal_status plugin_submit(hal_queue *queue, hal_recording *recording, uint64_t value,
                                const hal_plugin_wait *waits, uint32_t wait_count)
{
    hal_timeline *timeline = &queue->timeline;
    hal_event event = {.kind = HAL_EVENT_SUBMIT,
                       .device = timeline->device,
                       .queue = queue,
                       .recording = recording,
                       .value = value};
    hal_status status = hal_event_begin(&event);
    if (status == HAL_OK) {
        const hal_batch batch =
            hal_recording_view(event.given_recording ? event.given_recording : recording);
        status = timeline->device->plugin->submit(timeline->handle, &batch, waits, wait_count,
                                                  value - timeline->base);
    }
    hal_event_end(&event, status);
    if (status == HAL_OK) {
        return HAL_OK;
    }
    hal_host_take_queue_message(timeline->handle);
    return hal_device_failed(timeline->device, status, "submitting %u commands",
                             recording->command_count);
}

/* Whether all waits are reached or can be left to the plugin. */
static bool waits_poll(hal_queue *queue, hal_recording *recording)
{
    bool ready = true;
    uint32_t left = 0;
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        const hal_last_use wait = recording->waits[i];
        bool in_plugin = true;
        if (hal_timeline_has_reached(wait.timeline, wait.value, false) ||
            (!(in_plugin = hal_timeline_can_wait_for(&queue->timeline, wait.timeline)) &&
             hal_timeline_has_reached(wait.timeline, wait.value, true))) {
            hal_loss_follow(queue, recording, wait);
            continue;
        }
        recording->waits[left++] = wait;
        ready &= in_plugin && hal_timeline_has_submitted(wait.timeline, wait.value);
    }
    recording->wait_count = left;
    return ready;
}

/* The fence is polled even if a wait is not ready: whatever signals other fences may depend on what
 * this one does. */
hal_status hal_submit_poll(hal_queue *queue, hal_recording *recording, bool repeats, bool *ready)
{
    bool signaled = !recording->fence;
    hal_status status = HAL_OK;
    if (recording->fence) {
        status = recording->fence->advance(recording->fence, repeats, &signaled);
        if (status == HAL_OK && signaled) {
            hal_recording_remove_fence(recording);
        }
    }
    *ready = waits_poll(queue, recording);
    if (status != HAL_OK && !*ready) {
        return HAL_OK; /* the fence repeats its error */
    }
    *ready &= signaled;
    return status;
}

hal_status hal_submit_batch(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    enum { FEW = 16 };
    hal_plugin_wait few[FEW];
    hal_plugin_wait *waits = few;
    const uint32_t wait_count = recording->wait_count;
    const uint32_t most = wait_count + recording->fence_count;
    if (most > FEW && !(waits = malloc(most * sizeof *waits))) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for %u waits", most);
    }
    uint32_t count = 0;
    hal_status status = waits_pin(queue, recording, value, waits, &count);
    if (status == HAL_OK) {
        status = fences_add(queue, recording, value, waits, &count);
    }
    if (status == HAL_OK) {
        status = plugin_submit(queue, recording, value, waits, count);
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        hal_timeline_unpin(recording->waits[i].timeline);
    }
    if (waits != few) {
        free(waits);
    }
    if (status == HAL_OK) {
        recording->wait_count = 0;
        atomic_store_explicit(&queue->timeline.submitted, value, memory_order_release);
    }
    return status;
}

hal_status hal_submit_signals(hal_queue *queue, hal_recording *recording)
{
    const hal_device *device = queue->timeline.device;
    hal_status first = HAL_OK;
    for (uint32_t i = 0; i < recording->fence_count; i++) {
        const hal_fence_value *is = &recording->fences[i];
        if (is->is_signal) {
            hal_host_clear_error();
            const hal_status status = device->plugin->queue_signal_fence(
                queue->timeline.handle, is->fence->handle, is->value);
            if (status != HAL_OK && first == HAL_OK) {
                first = hal_device_failed(queue->timeline.device, status, "raising a fence");
            }
        }
    }
    hal_recording_clear_fences(recording);
    return first;
}

hal_status hal_submit_empty_batch(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    hal_recording_clear(recording);
    hal_recording_remove_fence(recording);
    atomic_store(&queue->timeline.rejected, value);
    HAL_TRY(hal_submit_batch(queue, recording, value));
    return hal_submit_signals(queue, recording);
}

hal_status hal_submit_add_dependent(hal_queue *queue, hal_last_use dependent)
{
    pthread_mutex_lock(&queue->dependents.lock);
    const hal_status status = hal_fence_set_add(&queue->dependents, dependent);
    pthread_mutex_unlock(&queue->dependents.lock);
    return status;
}

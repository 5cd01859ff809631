/* Batches in flight, whose reports are read later, see sanitize.h. */
#include "sanitize.h"

#include "core/device.h"
#include "core/queue.h"

#include <stdatomic.h>
#include <string.h>

void hal_sanitize_flight_add(hal_sanitize_device *device, const hal_event *event,
                             hal_recording *copy, uint32_t first)
{
    hal_sanitize_calls_move(device, event->recording, copy);
    device->flight[device->flight_count++] = (hal_sanitize_batch){.queue = event->queue,
                                                                  .value = event->value,
                                                                  .recording = copy,
                                                                  .given = copy,
                                                                  .first = first};
}

static void batch_forget(hal_sanitize_device *device, const hal_sanitize_batch *batch)
{
    hal_sanitize_calls_forget(device, batch->recording);
    hal_recording_destroy(batch->recording);
}

bool hal_sanitize_flight_begin(hal_sanitize_device *device, const hal_recording *copy,
                               hal_status status)
{
    uint32_t i = 0;
    while (i < device->flight_count && device->flight[i].recording != copy) {
        i++;
    }
    if (i == device->flight_count) {
        return false;
    }
    hal_sanitize_batch *batch = &device->flight[i];
    batch->is_submitted = true;
    if (status != HAL_OK) {
        batch_forget(device, batch);
        device->flight_count--;
        memmove(batch, batch + 1, (device->flight_count - i) * sizeof *batch);
    }
    return true;
}

/* Takes those that were submitted. */
static uint32_t flight_take(hal_sanitize_device *device, hal_sanitize_batch *taken)
{
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < device->flight_count; i++) {
        const hal_sanitize_batch batch = device->flight[i];
        if (batch.is_submitted) {
            taken[count++] = batch;
        } else {
            device->flight[kept++] = batch;
        }
    }
    device->flight_count = kept;
    return count;
}

static bool batch_has_ended(const hal_sanitize_device *device, const hal_sanitize_batch *batch)
{
    const hal_timeline *timeline = &batch->queue->timeline;
    return device->device->plugin->wait(timeline->handle, batch->value - timeline->base,
                                        UINT64_MAX) == HAL_OK;
}

void hal_sanitize_flight_read(hal_sanitize_device *device)
{
    hal_sanitize_batch batches[HAL_SANITIZE_FLIGHT];
    const uint32_t count = flight_take(device, batches);
    bool have_ended = !atomic_load(&device->device->lost); /* its queues may be gone */
    for (uint32_t i = 0; i < count && have_ended; i++) {
        have_ended = batch_has_ended(device, &batches[i]);
    }
    if (have_ended) {
        hal_sanitize_reports_read(device, batches, count);
        if (device->has_zones) {
            hal_sanitize_zones_read(batches, count);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        batch_forget(device, &batches[i]);
    }
}

/* Creation, idling and destruction of queues. */
#include "flush.h"
#include "graph.h"
#include "deferred.h"
#include "hooks.h"
#include "loss.h"
#include "reports.h"
#include "staging.h"
#include "progress.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/status.h"
#include "plugin/queue_table.h"

#include <hal/native.h>
#include <stddef.h>
#include <stdlib.h>

/* A batch that uses this part of the device's memory is full: released memory cannot return to the
 * device before the batch is submitted. */
#define MEMORY_DIVISOR 8

_Static_assert(offsetof(hal_queue, timeline) == 0, "hal_timeline_queue needs it");

static pthread_mutex_t recycled_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(recycled_lock, HAL_FORK_LAYER)
static hal_queue *recycled_queues;

static void queue_recycle(void *object)
{
    hal_queue *queue = object;
    hal_recording_destroy(queue->recorder.recording);
    queue->recorder.recording = NULL;
    pthread_mutex_lock(&recycled_lock);
    queue->next = recycled_queues;
    recycled_queues = queue;
    pthread_mutex_unlock(&recycled_lock);
}

/* Takes a recycled queue or allocates one. Null without host memory. */
static hal_queue *queue_allocate(void)
{
    pthread_mutex_lock(&recycled_lock);
    hal_queue *queue = recycled_queues;
    if (queue) {
        recycled_queues = queue->next;
    }
    pthread_mutex_unlock(&recycled_lock);
    if (!queue) {
        queue = calloc(1, sizeof *queue);
        if (!queue) {
            return NULL;
        }
        atomic_store(&queue->timeline.closing, 1);
        hal_fence_set_init(&queue->dependents);
    }
    queue->recorder.recording = hal_recording_create();
    if (!queue->recorder.recording) {
        queue_recycle(queue);
        return NULL;
    }
    return queue;
}

static void queue_open(hal_queue *queue, hal_device *device, hal_plugin_queue *handle)
{
    hal_recorder *recorder = &queue->recorder;
    hal_timeline_open(&queue->timeline, hal_device_ref(device), handle);
    hal_queue_table_add(handle, &queue->timeline.reached, queue->timeline.base);
    hal_pool_add_counter(device->pool, &queue->copied);
    atomic_store(&queue->deferred.has_error, 0);
    hal_loss_clear(queue);
    queue->ends_untimed = false;
    queue->needs_batch = false;
    recorder->timeline = &queue->timeline;
    recorder->memory_limit =
        device->info.memory_bytes ? device->info.memory_bytes / MEMORY_DIVISOR : UINT64_MAX;
    recorder->batch_first = HAL_QUEUE_BATCH_FIRST;
    recorder->batch_most = HAL_QUEUE_BATCH_COMMANDS;
    hal_recorder_limit_batch(recorder, recorder->batch_first);
    hal_recorder_start_batch(recorder);
}

/* The plugin's queue is kept until the batches that wait for it have run. */
static void dependents_wait(hal_fence_set *dependents)
{
    for (uint32_t i = 0; i < dependents->count; i++) {
        const hal_last_use use = dependents->items[i];
        hal_timeline_wait_submitted(use.timeline, use.value);
    }
    dependents->count = 0;
}

static void queue_close(hal_queue *queue)
{
    hal_timeline *timeline = &queue->timeline;
    hal_deferred_drop(queue);
    hal_timeline_close(timeline);
    hal_loss_tell(queue); /* what nobody asks for any more */
    dependents_wait(&queue->dependents);
    if (hal_hooks_on(HAL_HOOK_BATCHES | HAL_HOOK_CALLS)) {
        hal_hooks_table()->queue_closing(queue);
    }
    hal_staging_end(queue);
    hal_reports_end(queue);
    hal_queue_table_remove(timeline->handle);
    hal_pool_remove_counter(timeline->device->pool, &queue->copied);
    timeline->device->plugin->queue_destroy(timeline->device->handle, timeline->handle);
    timeline->handle = NULL;
    while (queue->deferred.spare) {
        hal_recording *next = queue->deferred.spare->next;
        hal_recording_destroy(queue->deferred.spare);
        queue->deferred.spare = next;
    }
}

static void queue_wait_flushed(hal_queue *queue)
{
    hal_point_wait((hal_point){queue, atomic_load(&queue->timeline.flushed)}, HAL_WAIT_FOREVER);
}

static void queue_destroy(hal_queue *queue)
{
    if (!queue || hal_device_is_after_fork(queue->timeline.device)) {
        return;
    }
    hal_device *device = queue->timeline.device;
    if (queue->graph) {
        hal_graph_abandon(queue);
    }
    /* Held batches first: a deferred error would keep the batch in recording from being flushed. */
    queue_wait_flushed(queue);
    if (hal_deferred_take_error(queue) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "hal_queue_destroy: %s", hal_status_message());
    }
    if (hal_queue_wait(queue, HAL_WAIT_FOREVER) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "hal_queue_destroy: %s", hal_status_message());
        queue_wait_flushed(queue); /* batches before the failed one may be in flight */
    }
    queue_close(queue);
    hal_progress_poll_all(true);
    hal_deferred_advance();
    hal_hook_retire(HAL_OBJECT_QUEUE, queue, sizeof *queue, queue_recycle);
    hal_device_unref(device);
}

static hal_status queue_wait(hal_queue *queue, uint64_t timeout_ns)
{
    hal_point point;
    hal_status status = hal_queue_check(queue, "hal_queue_wait");
    if (status == HAL_OK) {
        status = hal_flush_untimed(queue, &point);
    }
    if (status == HAL_OK) {
        status = hal_point_wait(point, timeout_ns);
    }
    if (status == HAL_OK) {
        hal_staging_end(queue);
        hal_recorder_limit_batch(&queue->recorder, queue->recorder.batch_first);
        status = hal_deferred_take_error(queue);
    }
    if (status == HAL_OK && queue->reports) {
        status = hal_reports_read(queue);
    }
    return status;
}

/* On a queue of the driver where `type` is not null. */
static hal_status queue_make(const char *function, hal_device *device, const char *type,
                             uint64_t native, hal_queue **queue)
{
    hal_queue *made = queue_allocate();
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    hal_plugin_queue *handle = NULL;
    hal_host_clear_error();
    hal_status status = type ? device->plugin->queue_import(device->handle, type, native, &handle)
                             : device->plugin->queue_create(device->handle, &handle);
    status = hal_host_made(status, handle);
    if (status != HAL_OK) {
        queue_recycle(made);
        return hal_device_failed(device, status, "%s", function);
    }
    queue_open(made, device, handle);
    hal_hook_created(HAL_OBJECT_QUEUE, made, device, "", 0);
    *queue = made;
    return HAL_OK;
}

static hal_status queue_create_check(const char *function, hal_device *device, hal_queue **queue)
{
    if (!queue) {
        return hal_null_argument(function, "queue");
    }
    *queue = NULL;
    HAL_TRY(hal_hook_use(HAL_OBJECT_DEVICE, device, function));
    return hal_device_check(device, function);
}

hal_status hal_queue_create(hal_device *device, hal_queue **queue)
{
    HAL_TRY(queue_create_check("hal_queue_create", device, queue));
    return queue_make("hal_queue_create", device, NULL, 0, queue);
}

hal_status hal_queue_import_native(hal_device *device, const char *type, uint64_t handle,
                                   hal_queue **queue)
{
    static const char function[] = "hal_queue_import_native";
    HAL_TRY(queue_create_check(function, device, queue));
    if (!type) {
        return hal_null_argument(function, "type");
    }
    if (!device->plugin->queue_import) {
        return hal_fail(HAL_ERROR_UNSUPPORTED, "%s: type: %s:%u imports no queues, got \"%s\"",
                        function, device->plugin->name, device->index, type);
    }
    return queue_make(function, device, type, handle, queue);
}

void hal_queue_destroy(hal_queue *queue)
{
    if (hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_destroy") == HAL_OK) {
        queue_destroy(queue);
        hal_hook_leave(HAL_OBJECT_QUEUE, queue, HAL_OK);
    }
}

hal_status hal_queue_wait(hal_queue *queue, uint64_t timeout_ns)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_wait");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_wait(queue, timeout_ns))
                            : status;
}

/* Queues: recording commands, flushing them and the lives of queues. Called by programs through
 * hal/queue.h, and by graph.c and transfer.c, which record through hal_queue_record. */
#include "queue.h"

#include "device.h"
#include "hooks.h"
#include "graph.h"
#include "plugin/host.h"
#include "base/log.h"
#include "point.h"
#include "record.h"
#include "staging.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A batch that uses this part of the device's memory is flushed: memory that was released can only
 * go back to the device once the batch is on its way. */
#define MEMORY_PART 8

/* What a lost device still runs is waited for at most so long. */
#define LOST_WAIT_NS UINT64_C(10000000000)

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static hal_queue *idle_queues;

static _Atomic uint64_t last_serial;
static _Thread_local const hal_queue *recent;

static void queue_recycle(hal_queue *queue)
{
    hal_recording_destroy(queue->recording);
    queue->recording = NULL;
    pthread_mutex_lock(&idle_lock);
    queue->next = idle_queues;
    idle_queues = queue;
    pthread_mutex_unlock(&idle_lock);
}

/* A queue that was destroyed lives on under another name and counts from where it ended, so that
 * its points, and waits and uses that still name it, stay true. */
static hal_queue *new_queue(void)
{
    pthread_mutex_lock(&idle_lock);
    hal_queue *queue = idle_queues;
    if (queue) {
        idle_queues = queue->next;
    }
    pthread_mutex_unlock(&idle_lock);
    if (!queue) {
        queue = calloc(1, sizeof *queue);
        if (!queue) {
            return NULL;
        }
        atomic_store(&queue->closing, 1);
        hal_fence_set_init(&queue->dependents);
    }
    queue->recording = hal_recording_create();
    if (!queue->recording) {
        queue_recycle(queue);
        return NULL;
    }
    return queue;
}

/* Sets the size of an empty batch. With HAL_HOOK_BATCHES it is 0, so that the first command calls
 * flush_traced before it is recorded. */
static void limit_batch(hal_queue *queue, uint32_t commands)
{
    queue->batch_limit = hal_hooks_on(HAL_HOOK_BATCHES) ? 0 : commands;
}

static hal_status set_batch(hal_queue *queue, uint32_t first, uint32_t most)
{
    first = first ? first : HAL_QUEUE_BATCH_FIRST;
    most = most ? most : HAL_QUEUE_BATCH_COMMANDS;
    if (!queue || first > most) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_set_batch: %s", queue ? "first is above most" : "queue is null");
    }
    queue->batch_first = first;
    queue->batch_most = most;
    limit_batch(queue, first);
    return HAL_OK;
}

static void begin_batch(hal_queue *queue)
{
    queue->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
    queue->memory_bytes = 0;
    hal_hazards_clear(&queue->hazards);
    hal_recording_clear(queue->recording);
    limit_batch(queue, queue->batch_limit);
}

/* Nothing comes of a lost device's work, but it may be under way until its plugin says otherwise,
 * and what it uses must not go before. */
static void settle(hal_queue *queue)
{
    atomic_fetch_add(&queue->pin_count, 1);
    const uint64_t value = atomic_load(&queue->submitted);
    uint64_t reached = atomic_load(&queue->reached);
    if (!atomic_load(&queue->closing) && reached < value && queue->base < value) {
        queue->device->plugin->wait(queue->handle, value - queue->base, LOST_WAIT_NS);
        while (reached < value &&
               !atomic_compare_exchange_weak(&queue->reached, &reached, value)) {
        }
    }
    atomic_fetch_sub(&queue->pin_count, 1);
}

static void close_queue(hal_queue *queue)
{
    hal_point_drop_held(queue);
    if (atomic_load(&queue->device->lost)) {
        settle(queue);
    }
    /* Uses may name the batch that was never flushed: it counts as reached too. */
    const uint64_t last = atomic_load(&queue->flushed) + 1;
    atomic_store(&queue->submitted, last);
    atomic_store(&queue->reached, last);
    atomic_store(&queue->flushed, last);
    atomic_store(&queue->closing, 1);
    while (atomic_load(&queue->pin_count) > 0) {
        sched_yield();
    }
    for (uint32_t i = 0; i < queue->dependents.count; i++) {
        const hal_last_use follower = queue->dependents.items[i];
        hal_queue_wait_submitted(follower.queue, follower.value);
    }
    queue->dependents.count = 0;
    if (hal_hooks_on(HAL_HOOK_BATCHES)) {
        hal_hooks_table()->queue_closing(queue);
    }
    hal_staging_end(queue);
    queue->device->plugin->queue_destroy(queue->device->handle, queue->handle);
    queue->handle = NULL;
    while (queue->spare) {
        hal_recording *next = queue->spare->next;
        hal_recording_destroy(queue->spare);
        queue->spare = next;
    }
}

static void dispose_of(void *queue)
{
    queue_recycle(queue);
}

static void destroy(hal_queue *queue)
{
    if (!queue || hal_device_is_after_fork(queue->device)) {
        return;
    }
    hal_device *device = queue->device;
    if (queue->graph) {
        hal_graph_abandon(queue);
    }
    /* First what is held: its failure would keep what was recorded behind it from being flushed. */
    hal_point_wait((hal_point){queue, atomic_load(&queue->flushed)}, HAL_WAIT_FOREVER);
    if (hal_point_take_failure(queue) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "hal_queue_destroy: %s", hal_status_message());
    }
    if (hal_queue_wait(queue, HAL_WAIT_FOREVER) != HAL_OK) {
        hal_log(HAL_LOG_ERROR, "hal_queue_destroy: %s", hal_status_message());
        /* What was flushed before the failure may still be under way. */
        hal_point_wait((hal_point){queue, atomic_load(&queue->flushed)}, HAL_WAIT_FOREVER);
    }
    close_queue(queue);
    hal_point_advance();
    hal_hook_retire(HAL_OBJECT_QUEUE, queue, sizeof *queue, dispose_of);
    hal_device_unref(device);
}

/* An empty batch in the place of one that the plugin did not take: what that was to use is free
 * once all before it has run, and not only when the queue goes on. The failure's message stays. */
static void submit_empty_batch(hal_queue *queue, uint64_t value, hal_status status)
{
    char message[HAL_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", hal_status_message());
    hal_recording_clear(queue->recording);
    hal_queue_submit(queue, queue->recording, value);
    hal_fail(status, "%s", message);
}

/* Submits the present batch, or has it held when it must come after another device's work. */
static hal_status hand_over(hal_queue *queue)
{
    hal_recording *recording = queue->recording;
    const uint64_t value = hal_queue_next_value(queue);
    hal_status status = HAL_OK;
    if (atomic_load_explicit(&queue->held_count, memory_order_acquire) == 0 &&
        hal_queue_is_ready(queue, recording)) {
        status = hal_queue_submit(queue, recording, value);
        if (status != HAL_OK && !atomic_load(&queue->device->lost)) {
            submit_empty_batch(queue, value, status);
        }
    } else {
        hal_recording *next = hal_point_spare(queue);
        if (!next) {
            return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_flush: no host memory");
        }
        queue->recording = next;
        hal_point_hold(queue, recording, value);
    }
    if (status == HAL_OK || hal_queue_has_submitted(queue, value)) {
        atomic_store_explicit(&queue->flushed, value, memory_order_release);
    }
    hal_hook_flushed(queue, value, status);
    begin_batch(queue);
    return status;
}

/* `waits_count`: a batch of waits alone is one too. */
static hal_status flush(hal_queue *queue, int waits_count, hal_point *point)
{
    hal_status status = hal_queue_check(queue, "hal_queue_flush");
    if (status != HAL_OK) {
        return status;
    }
    hal_point_advance();
    status = hal_point_take_failure(queue);
    const hal_recording *recording = queue->recording;
    if (status == HAL_OK &&
        (recording->command_count > 0 || (waits_count && recording->wait_count > 0))) {
        status = hand_over(queue);
    }
    hal_kernel_sweep(queue->device);
    if (point) {
        *point = (hal_point){queue, atomic_load_explicit(&queue->flushed, memory_order_relaxed)};
    }
    return status;
}

/* While traced, a batch is one command, so that the device's time between two of them is that of a
 * kernel. */
static hal_status flush_traced(hal_queue *queue)
{
    const hal_status status =
        queue->recording->command_count > 0 ? hal_queue_flush(queue, NULL) : HAL_OK;
    queue->batch_limit = 1;
    hal_hooks_table()->batch_started(queue);
    return status;
}

/* The queues that are waited for must not go while the plugin looks at them, nor as long as the
 * batch is under way: they note who follows them. */
static hal_status visit_waits(hal_queue *queue, const hal_recording *recording, uint64_t value,
                              hal_plugin_wait *waits, uint32_t *count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        const hal_last_use wait = recording->waits[i];
        atomic_fetch_add(&wait.queue->pin_count, 1);
        if (status != HAL_OK || atomic_load(&wait.queue->closing)) {
            continue;
        }
        status = hal_queue_add_dependent(wait.queue, (hal_last_use){queue, value});
        waits[(*count)++] = (hal_plugin_wait){wait.queue->handle, wait.value - wait.queue->base};
    }
    return status;
}

hal_status hal_queue_create(hal_device *device, hal_queue **queue)
{
    if (!queue) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "hal_queue_create: queue is null");
    }
    *queue = NULL;
    hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, "hal_queue_create");
    if (status == HAL_OK) {
        status = hal_device_check(device, "hal_queue_create");
    }
    if (status != HAL_OK) {
        return status;
    }
    hal_queue *made = new_queue();
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_create: no host memory");
    }
    hal_plugin_queue *handle = NULL;
    hal_host_clear_error();
    status = device->plugin->queue_create(device->handle, &handle);
    status = hal_host_made(status, handle);
    if (status != HAL_OK) {
        queue_recycle(made);
        return hal_device_failed(device, status, "hal_queue_create");
    }
    made->handle = handle;
    made->device = hal_device_ref(device);
    made->base = atomic_load(&made->flushed);
    made->memory_limit =
        device->info.memory_bytes ? device->info.memory_bytes / MEMORY_PART : UINT64_MAX;
    atomic_store(&made->late, 0);
    set_batch(made, 0, 0);
    begin_batch(made);
    atomic_store(&made->closing, 0);
    hal_hook_created(HAL_OBJECT_QUEUE, made, device, "", 0);
    *queue = made;
    return HAL_OK;
}

void hal_queue_destroy(hal_queue *queue)
{
    if (hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_destroy") == HAL_OK) {
        destroy(queue);
        hal_hook_leave(HAL_OBJECT_QUEUE, queue, HAL_OK);
    }
}

hal_device *hal_queue_get_device(const hal_queue *queue)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, queue, "hal_queue_get_device");
    return queue && status == HAL_OK ? queue->device : NULL;
}

hal_status hal_queue_flush(hal_queue *queue, hal_point *point)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_flush");
    return status == HAL_OK ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, flush(queue, 0, point))
                            : status;
}

hal_status hal_queue_flush_waits(hal_queue *queue, hal_point *point)
{
    return flush(queue, 1, point);
}

hal_status hal_queue_record(hal_queue *queue, const hal_action *action)
{
    hal_entry entry;
    hal_status status =
        hal_entry_begin(&entry, queue, action->range_count, action->scalar_bytes);
    for (uint32_t i = 0; status == HAL_OK && i < action->range_count; i++) {
        const hal_range *range = &action->ranges[i];
        status = hal_entry_bind(&entry, range->buffer, range->offset, range->length,
                                action->access[i]);
    }
    if (status == HAL_OK) {
        status = hal_entry_end(&entry, action->kind, action->kernel, action->grid, action->pattern,
                               action->scalars, action->scalar_bytes);
    }
    if (status == HAL_OK) {
        hal_hook_recorded(queue, action);
    }
    return status;
}

hal_status hal_queue_flush_full(hal_queue *queue)
{
    if (hal_hooks_on(HAL_HOOK_BATCHES)) {
        return flush_traced(queue);
    }
    /* The device has work now, and handing over costs less in larger batches. */
    const uint64_t twice = 2 * (uint64_t)queue->batch_limit;
    queue->batch_limit = twice < queue->batch_most ? (uint32_t)twice : queue->batch_most;
    return hal_queue_flush(queue, NULL);
}

hal_status hal_queue_set_batch(hal_queue *queue, uint32_t first, uint32_t most)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_set_batch");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, set_batch(queue, first, most))
               : status;
}

void hal_queue_went_idle(hal_queue *queue)
{
    hal_staging_end(queue);
    limit_batch(queue, queue->batch_first);
}

hal_status hal_queue_check(const hal_queue *queue, const char *what)
{
    if (!queue) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: queue is null", what);
    }
    if (queue->graph) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "%s: a graph is being recorded on the queue; end it first", what);
    }
    return hal_device_check(queue->device, what);
}

uint64_t hal_queue_next_value(const hal_queue *queue)
{
    return atomic_load_explicit(&queue->flushed, memory_order_relaxed) + 1;
}

const hal_queue *hal_queue_recent(void)
{
    return recent;
}

void hal_queue_count_memory(hal_queue *queue, uint64_t bytes)
{
    recent = queue;
    queue->memory_bytes += bytes;
}

hal_status hal_queue_add_wait(hal_queue *queue, hal_last_use use)
{
    if (use.queue == queue || hal_queue_has_reached(use.queue, use.value, 0)) {
        return HAL_OK;
    }
    return hal_recording_wait(queue->recording, use);
}

hal_status hal_queue_add_dependent(hal_queue *queue, hal_last_use follower)
{
    pthread_mutex_lock(&queue->dependents.lock);
    const hal_status status = hal_fence_set_add(&queue->dependents, follower.queue, follower.value);
    pthread_mutex_unlock(&queue->dependents.lock);
    return status;
}

int hal_queue_has_submitted(const hal_queue *queue, uint64_t value)
{
    return atomic_load_explicit(&queue->submitted, memory_order_acquire) >= value;
}

int hal_queue_has_reached(hal_queue *queue, uint64_t value, int ask)
{
    /* The device of a queue that was destroyed may be gone: its last value comes first. */
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return 1;
    }
    if (atomic_load_explicit(&queue->device->lost, memory_order_relaxed)) {
        settle(queue);
        return 1;
    }
    return ask && hal_queue_has_submitted(queue, value) &&
           hal_queue_plugin_wait(queue, value, 0) == HAL_OK;
}

void hal_queue_wait_submitted(hal_queue *queue, uint64_t value)
{
    if (!hal_queue_has_reached(queue, value, 0) && hal_queue_has_submitted(queue, value)) {
        hal_queue_plugin_wait(queue, value, UINT64_MAX);
    }
}

hal_status hal_queue_plugin_wait(hal_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_status status = HAL_OK;
    atomic_fetch_add(&queue->pin_count, 1);
    if (!atomic_load(&queue->closing) && atomic_load(&queue->reached) < value) {
        hal_event event = {.kind = HAL_EVENT_WAIT,
                           .device = queue->device,
                           .queue = queue,
                           .value = value,
                           .timeout_ns = timeout_ns};
        status = hal_event_begin(&event);
        if (status == HAL_OK) {
            status = queue->device->plugin->wait(queue->handle, value - queue->base, timeout_ns);
        }
        hal_event_end(&event, status);
    }
    if (status == HAL_OK) {
        uint64_t reached = atomic_load(&queue->reached);
        while (reached < value &&
               !atomic_compare_exchange_weak(&queue->reached, &reached, value)) {
        }
    }
    atomic_fetch_sub(&queue->pin_count, 1);
    return status == HAL_OK || status == HAL_ERROR_TIMEOUT
               ? status
               : hal_device_failed(queue->device, status, "waiting for a batch");
}

/* The device of a queue that is about to go stays as long as somebody visits the queue. */
int hal_queue_can_wait_for(const hal_queue *queue, hal_queue *other)
{
    if (other->device == queue->device) {
        return 1;
    }
    atomic_fetch_add(&other->pin_count, 1);
    const int can =
        !atomic_load(&other->closing) && hal_device_can_access_peer(queue->device, other->device);
    atomic_fetch_sub(&other->pin_count, 1);
    return can;
}

int hal_queue_is_ready(hal_queue *queue, hal_recording *recording)
{
    int ready = 1;
    uint32_t left = 0;
    for (uint32_t i = 0; i < recording->wait_count; i++) {
        const hal_last_use wait = recording->waits[i];
        if (hal_queue_has_reached(wait.queue, wait.value, 0)) {
            continue;
        }
        const int follows = hal_queue_can_wait_for(queue, wait.queue);
        if (!follows && hal_queue_has_reached(wait.queue, wait.value, 1)) {
            continue;
        }
        recording->waits[left++] = wait;
        ready &= follows && hal_queue_has_submitted(wait.queue, wait.value);
    }
    recording->wait_count = left;
    return ready;
}

hal_status hal_queue_submit(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    enum { FEW = 16 };
    hal_device *device = queue->device;
    hal_plugin_wait few[FEW];
    hal_plugin_wait *waits = few;
    const uint32_t wait_count = recording->wait_count;
    if (wait_count > FEW && !(waits = malloc(wait_count * sizeof *waits))) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for %u waits", wait_count);
    }
    uint32_t count = 0;
    hal_status status = visit_waits(queue, recording, value, waits, &count);
    const hal_batch batch = hal_recording_view(recording);
    if (status == HAL_OK) {
        hal_event event = {.kind = HAL_EVENT_SUBMIT,
                           .device = device,
                           .queue = queue,
                           .recording = recording,
                           .value = value};
        status = hal_event_begin(&event);
        if (status == HAL_OK) {
            status =
                device->plugin->submit(queue->handle, &batch, waits, count, value - queue->base);
        }
        hal_event_end(&event, status);
        if (status != HAL_OK) {
            status = hal_device_failed(device, status, "handing over %u commands",
                                       batch.command_count);
        }
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        atomic_fetch_sub(&recording->waits[i].queue->pin_count, 1);
    }
    if (waits != few) {
        free(waits);
    }
    if (status == HAL_OK) {
        recording->wait_count = 0;
        atomic_store_explicit(&queue->submitted, value, memory_order_release);
    }
    return status;
}

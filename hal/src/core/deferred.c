/* Held batches, see held.h. The lock guards the lists only. A thread that polls and submits the
 * first batch of a queue marks the queue as advancing and works without the lock. */
#include "held.h"

#include "submit.h"
#include "watch.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/status.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

/* A closed gate is polled without a pause at first, 0.1 us or more each time: other ranks usually
 * come soon. The processor is kept meanwhile, since another program would use it for a time slice
 * of milliseconds; where ranks share processors, they get it soon. */
#define EAGER_ATTEMPTS 1000
#define ALONE_POLLS 16 /* of an attempt, where no other queue holds batches */
#define CROWDED_ATTEMPTS 2000
#define CROWDED_SPIN_ATTEMPTS 64
#define GATE_PAUSE_NS UINT64_C(100000)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t advanced; /* a queue is not advancing any more; on the monotonic clock */
static pthread_once_t advanced_once = PTHREAD_ONCE_INIT;
static hal_queue *held_queues;
static _Atomic uint32_t held_total;
static _Atomic uint32_t held_gates; /* of held batches */
static uint64_t last_visit;

static void advanced_init(void)
{
    hal_condition_init(&advanced);
}

/* The caller holds the lock. */
static hal_status advanced_wait(uint64_t timeout_ns)
{
    HAL_UNCANCELLED;
    if (timeout_ns > INT64_MAX - hal_clock_ns()) {
        pthread_cond_wait(&advanced, &lock);
        return HAL_OK;
    }
    return hal_condition_wait(&advanced, &lock, timeout_ns) == 0 ? HAL_OK : HAL_ERROR_TIMEOUT;
}

static void queue_unlink(hal_queue *queue)
{
    hal_queue **at = &held_queues;
    while (*at != queue) {
        at = &(*at)->held.next;
    }
    *at = queue->held.next;
}

/* The next queue that the pass has not examined. A queue that another thread is advancing is left
 * to that thread, which examines it again. The caller holds the lock. */
static hal_queue *queue_to_visit(uint64_t visit)
{
    for (hal_queue *queue = held_queues; queue; queue = queue->held.next) {
        if (queue->held.is_advancing) {
            queue->held.is_wanted = 1;
        } else if (queue->held.visit < visit) {
            return queue;
        }
    }
    return NULL;
}

/* Polls the batch until it is ready, `polls` times at most. */
static hal_status batch_poll(hal_queue *queue, hal_recording *recording, uint32_t polls, int *ready)
{
    hal_status status = hal_submit_poll(queue, recording, ready);
    for (uint32_t i = 1; i < polls && status == HAL_OK && !*ready && recording->gate; i++) {
        recording->gate->is_repeated = 1;
        status = hal_submit_poll(queue, recording, ready);
        if (recording->gate) {
            recording->gate->is_repeated = 0;
        }
    }
    return status;
}

/* Returns 1 when the batch left hal. The queue's next call reports a batch that was rejected; an
 * empty one takes its place, because its point was given to the program. */
static int batch_submit(hal_queue *queue, hal_recording *recording, uint32_t polls)
{
    int ready = 0;
    hal_status status = batch_poll(queue, recording, polls, &ready);
    if (status == HAL_OK && !ready) {
        return 0;
    }
    if (status == HAL_OK) {
        status = hal_submit_batch(queue, recording, recording->value);
    }
    if (status != HAL_OK) {
        hal_held_set_deferred_error(queue, status);
        if (hal_submit_empty_batch(queue, recording, recording->value) != HAL_OK) {
            hal_log(HAL_LOG_ERROR, "%s", hal_status_message());
            atomic_store(&queue->timeline.device->lost, 1);
        }
    }
    hal_recording_remove_gate(recording); /* not under the lock: it may release memory */
    return 1;
}

/* The caller holds the lock. */
static void first_batch_remove(hal_queue *queue)
{
    hal_held_batches *held = &queue->held;
    hal_recording *recording = held->first;
    held->first = recording->next;
    if (!held->first) {
        held->last = NULL;
        queue_unlink(queue);
    }
    hal_recording_clear(recording);
    atomic_fetch_sub(&held_gates, recording->was_gated);
    recording->was_gated = 0;
    recording->wait_count = 0;
    recording->next = held->spare;
    held->spare = recording;
    atomic_fetch_sub(&held_total, 1);
    atomic_fetch_sub_explicit(&held->count, 1, memory_order_release);
}

/* Polls the queue's first batch and submits it when it is ready; returns whether it is. The caller
 * holds the lock, which is free meanwhile; no other thread is advancing the queue. */
static int queue_advance(hal_queue *queue, uint32_t polls)
{
    hal_held_batches *held = &queue->held;
    hal_recording *first = held->first;
    held->is_advancing = 1;
    held->is_wanted = 0;
    pthread_mutex_unlock(&lock);
    const int submitted = batch_submit(queue, first, polls);
    pthread_mutex_lock(&lock);
    held->is_advancing = 0;
    if (submitted) {
        first_batch_remove(queue);
    }
    pthread_cond_broadcast(&advanced);
    return submitted;
}

/* Returns the wait that keeps the queue's first batch from being submitted, or the batch itself
 * when nothing does. The caller holds the lock. */
static hal_last_use first_batch_blocker(hal_queue *queue)
{
    const hal_recording *first = queue->held.first;
    hal_last_use blocker = {&queue->timeline, first->value};
    for (uint32_t i = 0; i < first->wait_count; i++) {
        const hal_last_use wait = first->waits[i];
        if (hal_timeline_is_known_reached(wait.timeline, wait.value)) {
            continue;
        }
        blocker = wait;
        if (!hal_timeline_can_wait_for(&queue->timeline, wait.timeline) ||
            !hal_timeline_has_submitted(wait.timeline, wait.value)) {
            break;
        }
    }
    return blocker;
}

/* Follows a use to submitted work. Points exist for flushed batches only, so the chain of waits has
 * no cycle. Returns 0 when another thread is submitting a batch of the chain. The caller holds the
 * lock. */
static int use_follow(hal_last_use *use)
{
    while (!hal_timeline_has_submitted(use->timeline, use->value)) {
        hal_queue *queue = hal_timeline_queue(use->timeline);
        if (queue->held.is_advancing) {
            return 0;
        }
        const hal_last_use blocker =
            queue->held.first ? first_batch_blocker(queue) : (hal_last_use){use->timeline, 0};
        if (blocker.timeline == use->timeline) {
            use->value = atomic_load(&use->timeline->submitted);
        } else {
            *use = blocker;
        }
    }
    return 1;
}

/* The gate of the queue's first batch, null while another thread is advancing the queue. The caller
 * holds the lock. */
static const hal_gate *queue_gate(const hal_queue *queue)
{
    const hal_recording *first = queue->held.is_advancing ? NULL : queue->held.first;
    return first ? first->gate : NULL;
}

/* Returns whether a thread that waits for the queue's gate polls it again at once. Polls it several
 * times where that keeps no other queue waiting. The caller holds the lock. */
static int gate_poll_eagerly(hal_queue *queue, uint32_t attempt)
{
    const hal_gate *gate = queue_gate(queue);
    const int is_alone = held_queues == queue && !queue->held.next;
    if (!gate || gate->is_crowded || !is_alone) {
        return attempt < (gate && gate->is_crowded ? CROWDED_ATTEMPTS : EAGER_ATTEMPTS);
    }
    if (attempt < HAL_HELD_EAGER_ATTEMPTS) {
        queue_advance(queue, ALONE_POLLS);
    }
    return attempt < HAL_HELD_EAGER_ATTEMPTS;
}

void hal_held_add(hal_queue *queue, hal_recording *recording, uint64_t value)
{
    hal_held_batches *held = &queue->held;
    recording->value = value;
    recording->next = NULL;
    recording->was_gated = recording->gate != NULL;
    atomic_fetch_add(&held_gates, recording->was_gated);
    pthread_once(&advanced_once, advanced_init);
    pthread_mutex_lock(&lock);
    if (held->last) {
        held->last->next = recording;
    } else {
        held->first = recording;
        held->next = held_queues;
        held_queues = queue;
    }
    held->last = recording;
    atomic_fetch_add_explicit(&held->count, 1, memory_order_release);
    atomic_fetch_add(&held_total, 1);
    pthread_mutex_unlock(&lock);
}

void hal_held_drop(hal_queue *queue)
{
    HAL_UNCANCELLED;
    hal_held_batches *held = &queue->held;
    pthread_mutex_lock(&lock);
    while (held->is_advancing) {
        pthread_cond_wait(&advanced, &lock);
    }
    if (held->first) {
        queue_unlink(queue);
        for (hal_recording *dropped = held->first; dropped; dropped = dropped->next) {
            atomic_fetch_sub(&held_gates, dropped->was_gated);
            dropped->was_gated = 0;
        }
        held->last->next = held->spare;
        held->spare = held->first;
        held->first = held->last = NULL;
        atomic_fetch_sub(&held_total, atomic_exchange(&held->count, 0));
    }
    pthread_mutex_unlock(&lock);
    for (hal_recording *spare = held->spare; spare; spare = spare->next) {
        hal_recording_remove_gate(spare);
    }
}

void hal_held_advance(void)
{
    hal_watch_poll_all(0);
    if (atomic_load(&held_total) == 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    uint64_t visit = ++last_visit;
    for (hal_queue *queue; (queue = queue_to_visit(visit)) != NULL;) {
        queue->held.visit = visit;
        if (queue_advance(queue, 1)) {
            visit = ++last_visit; /* batches that wait for this one may be ready now */
        } else if (queue->held.is_wanted) {
            queue->held.visit = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

hal_status hal_held_wait(hal_last_use use, uint64_t timeout_ns, uint32_t attempt)
{
    const int has_gates = atomic_load(&held_gates) > 0;
    const int is_polled = has_gates || hal_watch_is_any();
    const uint64_t limit_ns = is_polled && timeout_ns > GATE_PAUSE_NS ? GATE_PAUSE_NS : timeout_ns;
    hal_status status = HAL_OK;
    if (!hal_timeline_has_submitted(use.timeline, use.value)) {
        pthread_mutex_lock(&lock);
        const int is_followed = use_follow(&use);
        const int is_gated =
            is_followed && has_gates && hal_timeline_is_known_reached(use.timeline, use.value);
        const hal_gate *gate = is_gated ? queue_gate(hal_timeline_queue(use.timeline)) : NULL;
        const int is_crowded = gate && gate->is_crowded;
        if (is_gated && timeout_ns > 0 &&
            gate_poll_eagerly(hal_timeline_queue(use.timeline), attempt)) {
            pthread_mutex_unlock(&lock);
            if (is_crowded && attempt >= CROWDED_SPIN_ATTEMPTS) {
                sched_yield();
            }
            return HAL_OK;
        }
        if (!is_followed || is_gated) {
            status = advanced_wait(limit_ns);
            pthread_mutex_unlock(&lock);
            return limit_ns < timeout_ns ? HAL_OK : status;
        }
        pthread_mutex_unlock(&lock);
    }
    status = hal_timeline_wait(use.timeline, use.value, limit_ns);
    return status == HAL_ERROR_TIMEOUT && limit_ns < timeout_ns ? HAL_OK : status;
}

void hal_held_copy_deferred_message(hal_queue *queue, char *message, size_t bytes)
{
    pthread_mutex_lock(&lock);
    const int pending = atomic_load(&queue->held.has_deferred_error);
    snprintf(message, bytes, "%s", pending ? queue->held.deferred_message : "");
    pthread_mutex_unlock(&lock);
}

void hal_held_set_deferred_error(hal_queue *queue, hal_status status)
{
    hal_held_batches *held = &queue->held;
    pthread_mutex_lock(&lock);
    held->deferred_status = status;
    snprintf(held->deferred_message, sizeof held->deferred_message, "%s", hal_status_message());
    atomic_store_explicit(&held->has_deferred_error, 1, memory_order_release);
    pthread_mutex_unlock(&lock);
}

hal_status hal_held_take_deferred_error(hal_queue *queue)
{
    hal_held_batches *held = &queue->held;
    if (!atomic_load_explicit(&held->has_deferred_error, memory_order_acquire)) {
        return HAL_OK;
    }
    pthread_mutex_lock(&lock);
    const hal_status status = held->deferred_status;
    hal_fail(status, "a batch that hal held was dropped: %s", held->deferred_message);
    atomic_store(&held->has_deferred_error, 0);
    pthread_mutex_unlock(&lock);
    return status;
}

hal_recording *hal_held_take_spare(hal_queue *queue)
{
    pthread_mutex_lock(&lock);
    hal_recording *spare = queue->held.spare;
    if (spare) {
        queue->held.spare = spare->next;
    }
    pthread_mutex_unlock(&lock);
    return spare ? spare : hal_recording_create();
}

/* Losses of queues, see loss.h. One lock guards those of all queues. */
#include "loss.h"

#include "hooks.h"

#include "base/fork.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t loss_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(loss_lock, HAL_FORK_LEAF)

static hal_queue *open_queues; /* those whose range of late losses has no end yet */

/* The caller holds the lock. */
static void loss_append(hal_queue *queue, uint64_t serial, hal_status status, const char *message)
{
    hal_losses *losses = &queue->losses;
    const uint32_t number = queue->loss_count;
    hal_loss *kept = &losses->recent[number % HAL_LOSSES_KEPT];
    if (number == HAL_LOSSES_KEPT) {
        losses->earlier = *kept;
    } else if (number > HAL_LOSSES_KEPT && kept->batch < losses->earlier.batch) {
        losses->earlier.batch = kept->batch;
    }
    kept->batch = serial;
    kept->status = status;
    snprintf(kept->message, sizeof kept->message, "%s", message);
    __atomic_store_n(&queue->loss_count, number + 1, __ATOMIC_RELEASE);
}

static void last_set(hal_losses *losses, uint64_t last)
{
    __atomic_store_n(&losses->last, last, __ATOMIC_RELEASE);
}

/* Points from `value` to `last` depend on the loss that was appended. The caller holds the lock. */
static void range_extend(hal_queue *queue, uint64_t value, uint64_t last)
{
    hal_losses *losses = &queue->losses;
    losses->late = losses->recent[(queue->loss_count - 1) % HAL_LOSSES_KEPT];
    losses->first = losses->last == 0 || value < losses->first ? value : losses->first;
    last_set(losses, last > losses->last ? last : losses->last);
}

/* The same for all later points, until the program of `origin` is told. The caller holds the
 * lock. */
static void range_open(hal_queue *queue, uint64_t value, hal_queue *origin)
{
    hal_losses *losses = &queue->losses;
    if (losses->last != UINT64_MAX) {
        losses->next = open_queues;
        open_queues = queue;
        losses->origin = origin;
    } else if (origin == queue) { /* this queue's own error is told later than that of another */
        losses->origin = queue;
    }
    range_extend(queue, value, UINT64_MAX);
}

/* Ends the open ranges of the losses of `origin`, or that of `queue` alone. The caller holds the
 * lock. */
static void ranges_end(const hal_queue *origin, const hal_queue *queue)
{
    for (hal_queue **at = &open_queues; *at;) {
        hal_queue *open = *at;
        if (open->losses.origin == origin || open == queue) {
            *at = open->losses.next;
            last_set(&open->losses, atomic_load(&open->timeline.flushed));
        } else {
            at = &open->losses.next;
        }
    }
}

/* Without commands nothing is missing, unless later batches count on what this one waits for. */
void hal_loss_add(hal_queue *queue, const hal_recording *recording, hal_status status, bool is_late)
{
    if (recording->command_count == 0 && !is_late) {
        return;
    }
    pthread_mutex_lock(&loss_lock);
    loss_append(queue, recording->serial, status, hal_status_message());
    if (is_late) {
        range_open(queue, recording->value, queue);
    }
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_add_work(hal_queue *queue, uint64_t serial, uint64_t value, hal_status status)
{
    pthread_mutex_lock(&loss_lock);
    loss_append(queue, serial, status, hal_status_message());
    range_open(queue, value, queue);
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_tell(hal_queue *queue)
{
    pthread_mutex_lock(&loss_lock);
    ranges_end(queue, NULL);
    pthread_mutex_unlock(&loss_lock);
}

/* The caller holds the lock. */
static bool range_has(const hal_losses *losses, uint64_t value)
{
    return losses->last > 0 && value >= losses->first && value <= losses->last;
}

bool hal_loss_covers(hal_last_use point)
{
    const hal_losses *losses = &hal_timeline_queue(point.timeline)->losses;
    if (__atomic_load_n(&losses->last, __ATOMIC_ACQUIRE) == 0) {
        return false;
    }
    pthread_mutex_lock(&loss_lock);
    const bool covers = range_has(losses, point.value);
    pthread_mutex_unlock(&loss_lock);
    return covers;
}

/* The batches of a queue that waits run in order, and later ones may read what this one gets. When
 * the loss was told already, these are the batches that were flushed before. */
void hal_loss_follow(hal_queue *queue, const hal_recording *recording, hal_last_use wait)
{
    const hal_losses *from = &hal_timeline_queue(wait.timeline)->losses;
    const uint64_t value = recording->value;
    if (__atomic_load_n(&from->last, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    pthread_mutex_lock(&loss_lock);
    if (range_has(from, wait.value)) {
        char message[HAL_LOSS_BYTES];
        const uint64_t flushed = atomic_load(&queue->timeline.flushed);
        snprintf(message, sizeof message, "it waited for another queue: %.400s",
                 from->late.message);
        loss_append(queue, recording->serial, from->late.status, message);
        if (from->last == UINT64_MAX) {
            range_open(queue, value, from->origin);
        } else if (value <= flushed) {
            range_extend(queue, value, flushed);
        }
    }
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_clear(hal_queue *queue)
{
    pthread_mutex_lock(&loss_lock);
    ranges_end(queue, queue);
    if (queue->losses.last > 0 && queue->losses.last >= queue->timeline.base) {
        last_set(&queue->losses, queue->timeline.base - 1); /* the base is the point of no batch */
    }
    memset(queue->losses.recent, 0, sizeof queue->losses.recent);
    memset(&queue->losses.earlier, 0, sizeof queue->losses.earlier);
    queue->loss_count = 0;
    pthread_mutex_unlock(&loss_lock);
}

uint64_t hal_queue_get_batch(const hal_queue *queue)
{
    return queue ? queue->recorder.serial : 0;
}

const uint32_t *hal_queue_get_loss_count(const hal_queue *queue)
{
    return queue ? &queue->loss_count : NULL;
}

hal_status hal_queue_get_loss(const hal_queue *queue, uint32_t since, hal_loss *loss)
{
    if (!queue || !loss) {
        return hal_null_argument("hal_queue_get_loss", queue ? "loss" : "queue");
    }
    HAL_TRY(hal_hook_use(HAL_OBJECT_QUEUE, queue, "hal_queue_get_loss"));
    const hal_losses *losses = &queue->losses;
    pthread_mutex_lock(&loss_lock);
    if (losses->last == UINT64_MAX && losses->origin != queue) {
        ranges_end(NULL, queue); /* the queue's own error is told by a flush or a wait */
    }
    const uint32_t count = queue->loss_count;
    uint32_t next = count > HAL_LOSSES_KEPT ? count - HAL_LOSSES_KEPT : 0;
    if (since < next) {
        *loss = losses->earlier;
    } else if (since < count) {
        next = since;
        *loss = losses->recent[next % HAL_LOSSES_KEPT];
    } else {
        *loss = (hal_loss){.batch = UINT64_MAX};
        next = count;
    }
    for (; next < count; next++) {
        const uint64_t batch = losses->recent[next % HAL_LOSSES_KEPT].batch;
        loss->batch = batch < loss->batch ? batch : loss->batch;
    }
    loss->count = count;
    pthread_mutex_unlock(&loss_lock);
    return HAL_OK;
}

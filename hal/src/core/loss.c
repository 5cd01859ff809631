/* Losses of queues, see loss.h. One lock guards those of all queues. */
#include "loss.h"

#include "hooks.h"

#include "base/fork.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t loss_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(loss_lock, HAL_FORK_LEAF)

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

/* The caller holds the lock. */
static void losses_extend(hal_losses *losses, uint64_t value)
{
    losses->first = losses->last == 0 || value < losses->first ? value : losses->first;
    losses->last = UINT64_MAX;
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
        losses_extend(&queue->losses, recording->value);
    }
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_add_work(hal_queue *queue, uint64_t serial, uint64_t value, hal_status status)
{
    pthread_mutex_lock(&loss_lock);
    loss_append(queue, serial, status, hal_status_message());
    losses_extend(&queue->losses, value);
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_tell(hal_queue *queue)
{
    pthread_mutex_lock(&loss_lock);
    if (queue->losses.last == UINT64_MAX) {
        queue->losses.last = atomic_load(&queue->timeline.flushed);
    }
    pthread_mutex_unlock(&loss_lock);
}

/* The batches of a queue that waits run in order, and later ones may read what this one gets. */
void hal_loss_follow(hal_queue *queue, const hal_recording *recording, hal_last_use wait)
{
    const hal_queue *other = hal_timeline_queue(wait.timeline);
    const hal_losses *from = &other->losses;
    if (__atomic_load_n(&other->loss_count, __ATOMIC_ACQUIRE) == 0) {
        return;
    }
    pthread_mutex_lock(&loss_lock);
    if (wait.value >= from->first && wait.value <= from->last) {
        char message[HAL_LOSS_BYTES];
        const hal_loss *cause = &from->recent[(other->loss_count - 1) % HAL_LOSSES_KEPT];
        snprintf(message, sizeof message, "it waited for another queue: %.400s", cause->message);
        loss_append(queue, recording->serial, cause->status, message);
        losses_extend(&queue->losses, recording->value);
    }
    pthread_mutex_unlock(&loss_lock);
}

void hal_loss_clear(hal_queue *queue)
{
    pthread_mutex_lock(&loss_lock);
    memset(&queue->losses, 0, sizeof queue->losses);
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

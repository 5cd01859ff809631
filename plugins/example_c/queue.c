/* Queues: submit copies the batch, the queue's thread runs it. One lock for all queues of a device,
 * since batches wait for values of other queues. Entries of the plugin's table. */
#include "example_c.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 256 << 10 };

static uint8_t *address_of(const hal_binding *binding)
{
    return binding->length > 0 ? binding->memory->address + binding->offset : NULL;
}

static int command_run(const hal_plugin_queue *queue, const hal_batch *batch,
                       const hal_command *command)
{
    const hal_binding *bindings = &batch->bindings[command->binding_first];
    const uint8_t *pattern = batch->scalars + command->scalar_first;
    void *addresses[HAL_IR_MAX_BINDINGS];
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        for (uint32_t i = 0; i < command->binding_count; i++) {
            addresses[i] = address_of(&bindings[i]);
        }
        example_kernel_run(command->kernel, command->grid, addresses,
                           batch->scalars + command->scalar_first, queue->fibers);
        return 1;
    case HAL_COMMAND_COPY:
        memmove(address_of(&bindings[1]), address_of(&bindings[0]), bindings[0].length);
        return 1;
    case HAL_COMMAND_FILL:
        for (uint64_t i = 0; i < bindings[0].length; i++) {
            address_of(&bindings[0])[i] = pattern[i % command->scalar_bytes];
        }
        return 1;
    default:
        return 0;
    }
}

/* Submit has returned: the failure is told by the queue's message, and by DEVICE_LOST from now on,
 * since memory is in an unknown state. */
static void device_lose(hal_plugin_queue *queue, const char *reason)
{
    queue->host->queue_failed(queue->host, queue, reason);
    pthread_mutex_lock(&queue->device->lock);
    queue->device->lost = reason;
    pthread_mutex_unlock(&queue->device->lock);
}

static void job_run(hal_plugin_queue *queue, const example_job *job)
{
    const hal_batch *batch = &job->batch;
    if (job->fails) {
        device_lose(queue, "a batch fails, for a test");
        return;
    }
    for (uint32_t i = 0; i < batch->command_count; i++) {
        if (!command_run(queue, batch, &batch->commands[i])) {
            device_lose(queue, "a batch has a command of an unknown kind");
            return;
        }
    }
}

/* The next job after the values that it waits for; null when the queue ends. Holds the lock. */
static example_job *job_take(hal_plugin_queue *queue)
{
    while (!queue->first && !queue->ends) {
        pthread_cond_wait(&queue->device->changed, &queue->device->lock);
    }
    example_job *job = queue->first;
    for (uint32_t i = 0; job && i < job->wait_count; i++) {
        while (job->waits[i].queue->reached < job->waits[i].value) {
            pthread_cond_wait(&queue->device->changed, &queue->device->lock);
        }
    }
    if (job) {
        queue->first = job->next;
    }
    return job;
}

static void *queue_thread(void *user)
{
    hal_plugin_queue *queue = user;
    hal_plugin_device *device = queue->device;
    pthread_mutex_lock(&device->lock);
    for (example_job *job; (job = job_take(queue)) != NULL;) {
        const bool lost = device->lost != NULL;
        const uint64_t value = job->value;
        pthread_mutex_unlock(&device->lock);
        if (!lost) {
            job_run(queue, job);
        }
        queue->host->release(queue->host, job);
        pthread_mutex_lock(&device->lock);
        queue->reached = value;
        const int works = !device->lost;
        pthread_cond_broadcast(&device->changed);
        pthread_mutex_unlock(&device->lock);
        if (works) {
            queue->host->queue_reached(queue->host, queue, value);
        }
        pthread_mutex_lock(&device->lock);
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

hal_status example_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    hal_plugin_queue *made = example_new(sizeof *made, "queue");
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->device = device;
    hal_status status =
        kit_fibers_create(kit_host(), EXAMPLE_MAX_ITEMS, STACK_BYTES, &made->fibers);
    if (status == HAL_OK && pthread_create(&made->thread, NULL, queue_thread, made) != 0) {
        kit_fibers_destroy(made->fibers);
        status = example_fail(HAL_ERROR_OUT_OF_MEMORY, "example_c: no thread for a queue");
    }
    if (status != HAL_OK) {
        example_release(made);
        return status;
    }
    *queue = made;
    return HAL_OK;
}

void example_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    pthread_mutex_lock(&device->lock);
    queue->ends = 1;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(queue->thread, NULL);
    kit_fibers_destroy(queue->fibers);
    example_release(queue);
}

/* For tests: the next batch fails. */
void example_queue_fail_next(hal_plugin_queue *queue)
{
    queue->fails_next = 1;
}

/* Of calls for any queue of the device, also for one whose own batches did not fail. */
static hal_status fail_lost(const char *reason)
{
    return example_fail(HAL_ERROR_DEVICE_LOST, "example_c: the device is lost: %s", reason);
}

/* The batch's arrays belong to hal: one piece of memory has copies of them. */
static example_job *job_make(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    const uint64_t sizes[4] = {batch->command_count * sizeof(hal_command),
                               batch->binding_count * sizeof(hal_binding),
                               wait_count * sizeof(hal_plugin_wait), batch->scalar_bytes};
    const void *sources[4] = {batch->commands, batch->bindings, waits, batch->scalars};
    void *copies[4];
    example_job *job =
        example_new(sizeof *job + sizes[0] + sizes[1] + sizes[2] + sizes[3] + 64, "batch");
    if (!job) {
        return NULL;
    }
    uint8_t *at = (uint8_t *)(job + 1);
    for (int i = 0; i < 4; i++) {
        copies[i] = at;
        if (sizes[i] > 0) {
            memcpy(at, sources[i], sizes[i]);
        }
        at += (sizes[i] + 15) / 16 * 16;
    }
    job->value = value;
    job->fails = queue->fails_next;
    queue->fails_next = 0;
    job->waits = copies[2];
    job->wait_count = wait_count;
    job->batch = (hal_batch){.size = sizeof(hal_batch),
                             .command_count = batch->command_count,
                             .binding_count = batch->binding_count,
                             .scalar_bytes = batch->scalar_bytes,
                             .commands = copies[0],
                             .bindings = copies[1],
                             .scalars = copies[3]};
    return job;
}

hal_status example_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    example_job *job = job_make(queue, batch, waits, wait_count, value);
    if (!job) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&device->lock);
    if (device->lost) {
        pthread_mutex_unlock(&device->lock);
        example_release(job);
        return fail_lost(device->lost);
    }
    if (!queue->first) {
        queue->first = job;
    } else {
        queue->last->next = job;
    }
    queue->last = job;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return HAL_OK;
}

hal_status example_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_plugin_device *device = queue->device;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    const uint64_t limit = timeout_ns < UINT64_C(1) << 62 ? timeout_ns : UINT64_C(1) << 62;
    const uint64_t nanoseconds = (uint64_t)end.tv_nsec + limit % 1000000000;
    end.tv_sec += (time_t)(limit / 1000000000 + nanoseconds / 1000000000);
    end.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_mutex_lock(&device->lock);
    int expired = timeout_ns == 0;
    while (queue->reached < value && !expired) {
        expired = pthread_cond_timedwait(&device->changed, &device->lock, &end) == ETIMEDOUT;
    }
    const bool reached = queue->reached >= value;
    const char *lost = device->lost;
    pthread_mutex_unlock(&device->lock);
    if (!reached) {
        return HAL_ERROR_TIMEOUT;
    }
    return lost ? fail_lost(lost) : HAL_OK;
}

/* Sending: when recorded batches go to the driver.
 *
 * A submission costs an NVIDIA GPU 5 to 6 us and the host more. So while an earlier submission
 * runs, batches are recorded into one open slot. It is sent when the device needs more work, when
 * it is long, or when somebody waits. A helper thread sends it when the program makes no calls.
 *
 * A program that records for long without a wait is seldom held up by a start a few commands later.
 * Where submissions take the host longer than the device, each would have a single batch else.
 *
 * Batches that are sent together are reached together. After a wait that takes longer for that
 * reason, the queue sends its batches one by one. */
#include "send.h"

#include "commands.h"
#include "fence.h"
#include "point.h"
#include "quirks.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WAITS = 64 }; /* of a submission */

enum {
    FEW_COMMANDS = 8,   /* that are worth a submission while one other is in flight */
    LONG_COMMANDS = 32, /* that are worth one in a long program */
    LONG_PART = 4, /* of the commands since the last wait, the part worth one in such a program */
    MOST_COMMANDS = 256, /* that are held; below VULKAN_TIMES */
    LOOK_NS = 100000,    /* between two looks of the helper */
    IDLE_LOOKS = 50      /* with nothing held, after which the helper sleeps */
};

/* The helpers make no calls while the process exits, as the driver is torn down then. They share
 * the lock, so that none waits for another. */
static pthread_rwlock_t exit_lock = PTHREAD_RWLOCK_INITIALIZER;
static bool exiting;
static pid_t owner; /* a child of fork has no helpers, and may have a copy of the lock in use */

static void process_exit(void)
{
    if (getpid() == owner) {
        pthread_rwlock_wrlock(&exit_lock);
        exiting = true;
        pthread_rwlock_unlock(&exit_lock);
    }
}

static void process_exit_register(void)
{
    owner = getpid();
    atexit(process_exit);
}

static hal_status slot_submit(hal_plugin_queue *queue, const vulkan_slot *slot,
                              const hal_plugin_wait *waits, uint32_t wait_count)
{
    hal_plugin_device *device = queue->device;
    VkSemaphore semaphores[MAX_WAITS];
    VkPipelineStageFlags stages[MAX_WAITS];
    uint64_t values[MAX_WAITS];
    for (uint32_t i = 0; i < wait_count; i++) {
        if (waits[i].kind == HAL_WAIT_FENCE) {
            semaphores[i] = waits[i].fence->semaphore;
        } else {
            atomic_fetch_or(&waits[i].queue->dependents,
                            1u << (queue->device_queue - device->device_queues));
            semaphores[i] = waits[i].queue->timeline;
        }
        values[i] = waits[i].value;
        stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait_count,
        .pWaitSemaphoreValues = values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &slot->value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .waitSemaphoreCount = wait_count,
                               .pWaitSemaphores = semaphores,
                               .pWaitDstStageMask = stages,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &slot->commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &queue->timeline};
    pthread_mutex_lock(&queue->device_queue->lock);
    const VkResult result =
        device->vk.vkQueueSubmit(queue->device_queue->handle, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&queue->device_queue->lock);
    return result == VK_SUCCESS ? HAL_OK : vulkan_fail_result(device, result, "submitting a batch");
}

/* Sends what the queue holds. Its batches wait for at most MAX_WAITS `waits`, whose values were
 * sent. A failure rejects the batch of a submit in progress if no other is held; otherwise the
 * device is lost. On a lost device what is held is dropped. The caller has the lock. */
static hal_status send_held(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                            uint32_t wait_count)
{
    hal_plugin_device *device = queue->device;
    vulkan_slot *slot = queue->open;
    const uint32_t batches = queue->held_batches;
    if (batches == 0) {
        return HAL_OK;
    }
    queue->open = NULL;
    queue->held_batches = queue->held_commands = 0;
    slot->value = queue->recorded;
    hal_status status = vulkan_device_check(device);
    if (queue->fails) {
        queue->fails = false;
        status = status == HAL_OK ? vulkan_device_give_up(device) : status;
    }
    status = status == HAL_OK ? vulkan_commands_end(device, slot) : status;
    status = status == HAL_OK ? slot_submit(queue, slot, waits, wait_count) : status;
    if (status == HAL_OK) {
        queue->sent_before = atomic_load(&queue->sent);
        atomic_store(&queue->sent, slot->value);
        if (batches > 1 && !queue->one_by_one) {
            atomic_store(&queue->grouped, slot->value);
        }
    } else if (queue->accepted + batches == slot->value) {
        queue->recorded--; /* the only one is that of the submit */
    } else if (status != HAL_ERROR_DEVICE_LOST) {
        status = vulkan_device_give_up(device);
    }
    vulkan_slot_release(queue, slot, status == HAL_OK ? slot->value : 0);
    return status;
}

static bool point_is_reached(hal_plugin_queue *queue, uint64_t value)
{
    return vulkan_point_wait(queue, value, 0) == HAL_OK;
}

static hal_status send_if_worth(hal_plugin_queue *queue, uint32_t least_idle, uint32_t least_busy)
{
    const uint32_t held = queue->held_commands;
    const bool is_worth = queue->held_batches > 0 &&
                          (held >= MOST_COMMANDS || queue->open->is_transfer ||
                           (held >= least_idle && point_is_reached(queue, queue->sent)) ||
                           (held >= least_busy && point_is_reached(queue, queue->sent_before)));
    return is_worth ? send_held(queue, NULL, 0) : HAL_OK;
}

/* The same if the device needs it soon, or enough is held. The caller has the lock. */
static hal_status send_due(hal_plugin_queue *queue)
{
    return send_if_worth(queue, 1, FEW_COMMANDS);
}

/* The same after a batch was recorded: a long program lets the device wait for a few batches. */
static hal_status send_recorded(hal_plugin_queue *queue)
{
    if (queue->one_by_one) {
        return send_held(queue, NULL, 0);
    }
    const uint32_t part = queue->commands_since_wait / LONG_PART;
    const uint32_t least = part < LONG_COMMANDS ? part : LONG_COMMANDS;
    return send_if_worth(queue, least, least > FEW_COMMANDS ? least : FEW_COMMANDS);
}

/* After a wait for a batch of the submission that ends with `end`, except its last: unless that is
 * reached, the queue sends its batches one by one from now on. The caller has the lock. */
static void send_one_by_one(hal_plugin_queue *queue, uint64_t end)
{
    if (!queue->one_by_one && !point_is_reached(queue, end)) {
        queue->one_by_one = true;
        atomic_store(&queue->grouped, 0);
    }
}

/* For another queue that waits for `value`: sends what is held unless it was sent. Takes the lock
 * unless the value was sent after all groups. */
static hal_status send_up_to(hal_plugin_queue *queue, uint64_t value)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value ||
        (atomic_load(&queue->sent) >= value && atomic_load(&queue->grouped) <= value)) {
        return HAL_OK;
    }
    hal_status status = HAL_OK;
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->sent) < value) {
        status = send_held(queue, NULL, 0);
        /* A value of a lost device that was dropped is never signalled. */
        status = status == HAL_OK ? vulkan_device_check(queue->device) : status;
    }
    const uint64_t end = vulkan_slot_end(queue, value);
    if (end != value) {
        send_one_by_one(queue, end);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static void helper_look(hal_plugin_queue *queue)
{
    const hal_host *host = queue->host;
    pthread_rwlock_rdlock(&exit_lock);
    if (!exiting && send_due(queue) != HAL_OK) {
        host->queue_failed(host, queue,
                           "the driver refused batches that had been accepted; open the device "
                           "again");
    }
    pthread_rwlock_unlock(&exit_lock);
}

static void helper_pause(vulkan_helper *helper, pthread_mutex_t *lock)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&helper->wakes, lock, &until);
}

static void *helper_main(void *user)
{
    hal_plugin_queue *queue = user;
    vulkan_helper *helper = &queue->helper;
    uint32_t idle_looks = 0;
    pthread_mutex_lock(&queue->lock);
    while (!helper->stops) {
        helper->sleeps = queue->held_batches == 0 && idle_looks >= IDLE_LOOKS;
        if (helper->sleeps) {
            pthread_cond_wait(&helper->wakes, &queue->lock);
            idle_looks = 0;
        } else {
            idle_looks = queue->held_batches == 0 ? idle_looks + 1 : 0;
            helper_pause(helper, &queue->lock);
        }
        if (!helper->stops) {
            helper_look(queue);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* Starts the helper, which takes no signals. */
static bool helper_create(hal_plugin_queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_created = pthread_create(&queue->helper.thread, NULL, helper_main, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_created;
}

/* Leaves what is held to the helper. The caller has the lock. */
static hal_status send_later(hal_plugin_queue *queue)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    vulkan_helper *helper = &queue->helper;
    if (!helper->exists) {
        pthread_once(&once, process_exit_register);
        helper->exists = helper_create(queue);
    } else if (helper->sleeps) {
        helper->sleeps = false;
        pthread_cond_signal(&helper->wakes);
    }
    return helper->exists ? HAL_OK : send_held(queue, NULL, 0);
}

/* Appends a batch to the open slot. What fails has appended nothing. */
static hal_status queue_append(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    hal_status status = HAL_OK;
    if (!queue->open) {
        vulkan_slot *slot = NULL;
        HAL_TRY(vulkan_slot_acquire(queue, &slot));
        status = vulkan_commands_begin(device, slot);
        if (status != HAL_OK) {
            vulkan_slot_release(queue, slot, 0);
            return status;
        }
        queue->open = slot;
    }
    if (vulkan_batch_is_timed(queue, batch)) {
        vulkan_point_reset_time(queue, value);
    }
    status = vulkan_commands_append(queue, queue->open, batch, value);
    if (status == HAL_OK) {
        queue->recorded = value;
        queue->held_batches++;
        queue->held_commands += batch->command_count + 1;
        queue->commands_since_wait += batch->command_count + 1;
    }
    return status;
}

/* Sends what another queue holds of a wait, and waits where the batch has MAX_WAITS others. */
static hal_status wait_prepare(hal_plugin_queue *queue, const hal_plugin_wait *wait, bool by_host)
{
    if (wait->kind == HAL_WAIT_FENCE) {
        return by_host ? vulkan_fence_await(queue->device, wait->fence, wait->value) : HAL_OK;
    }
    HAL_TRY(send_up_to(wait->queue, wait->value));
    return by_host ? vulkan_point_wait(wait->queue, wait->value, UINT64_MAX) : HAL_OK;
}

hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = vulkan_device_check_hardware(queue->device);
    for (uint32_t i = 0; i < wait_count && status == HAL_OK; i++) {
        status = wait_prepare(queue, &waits[i], i >= MAX_WAITS);
    }
    if (status == HAL_OK && vulkan_batch_is_timed(queue, batch)) {
        status = vulkan_point_await_time(queue, value);
    }
    if (status != HAL_OK) {
        return status;
    }
    wait_count = wait_count < MAX_WAITS ? wait_count : MAX_WAITS;
    pthread_mutex_lock(&queue->lock);
    const bool fails = queue->fails_next;
    queue->fails_next = false;
    if (queue->open && (wait_count > 0 || queue->one_by_one || fails ||
                        !vulkan_commands_fit(queue->device, queue->open, batch))) {
        status = send_held(queue, NULL, 0);
    }
    status = status == HAL_OK ? queue_append(queue, batch, value) : status;
    queue->fails |= fails && status == HAL_OK;
    if (status == HAL_OK && !fails) {
        status = wait_count > 0 ? send_held(queue, waits, wait_count) : send_recorded(queue);
    }
    if (status == HAL_OK && queue->held_batches > 0) {
        status = send_later(queue);
    }
    queue->accepted = status == HAL_OK ? value : queue->accepted;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

/* A submission without commands, after those of the queue. */
static hal_status fence_raise(hal_plugin_queue *queue, hal_plugin_fence *fence, uint64_t value)
{
    hal_plugin_device *device = queue->device;
    const VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &timeline,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &fence->semaphore};
    pthread_mutex_lock(&queue->device_queue->lock);
    const VkResult result =
        device->vk.vkQueueSubmit(queue->device_queue->handle, 1, &info, VK_NULL_HANDLE);
    pthread_mutex_unlock(&queue->device_queue->lock);
    if (result != VK_SUCCESS) {
        return vulkan_fail_result(device, result, "raising a fence");
    }
    atomic_store(&fence->last, value);
    return HAL_OK;
}

hal_status vulkan_queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value)
{
    HAL_TRY(vulkan_device_check_hardware(queue->device));
    pthread_mutex_lock(&queue->lock);
    hal_status status = send_held(queue, NULL, 0);
    status = status == HAL_OK ? fence_raise(queue, fence, value) : status;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

void vulkan_queue_fail_next(hal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->fails_next = true;
    pthread_mutex_unlock(&queue->lock);
}

hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    hal_status status = HAL_OK;
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value) {
        return HAL_OK;
    }
    /* A program that waits adds nothing to what is held, and one that looks may do so. */
    if (timeout_ns > 0 || atomic_load(&queue->sent) < atomic_load(&queue->recorded)) {
        pthread_mutex_lock(&queue->lock);
        status = timeout_ns > 0 ? send_held(queue, NULL, 0) : send_due(queue);
        queue->commands_since_wait = timeout_ns > 0 ? 0 : queue->commands_since_wait;
        /* Once the value is reached, its slot may have been used again. */
        if (atomic_load_explicit(&queue->reached, memory_order_acquire) < value) {
            const uint64_t end = vulkan_slot_end(queue, value);
            if (timeout_ns > 0 && end != value && end == atomic_load(&queue->sent)) {
                send_one_by_one(queue, end); /* the device runs dry before the wait ends */
            }
            value = end;
        }
        pthread_mutex_unlock(&queue->lock);
    }
    const int lost = atomic_load(&queue->device->lost);
    if (status != HAL_OK && lost == VULKAN_LOST) {
        return status;
    }
    const uint64_t sent = atomic_load(&queue->sent);
    if (sent < value) {
        status = lost ? vulkan_point_wait(queue, sent, timeout_ns) : HAL_ERROR_TIMEOUT;
        return status == HAL_OK ? vulkan_device_check(queue->device) : status;
    }
    return vulkan_point_wait(queue, value, timeout_ns);
}

/* Where the driver uses a timeline for a moment after its batches, and those that waited for it,
 * have ended, the device's queues with such batches become idle before it is destroyed. */
static void queue_await_dependents(hal_plugin_queue *queue)
{
    hal_plugin_device *device = queue->device;
    uint32_t dependents = atomic_load(&queue->dependents);
    if (!(device->physical.quirks & VULKAN_QUIRK_LATE_TIMELINES)) {
        return;
    }
    if (atomic_load(&queue->sent) > 0) {
        dependents |= 1u << (queue->device_queue - device->device_queues);
    }
    for (uint32_t i = 0; i < device->device_queue_count; i++) {
        if (dependents >> i & 1) {
            pthread_mutex_lock(&device->device_queues[i].lock);
            device->vk.vkQueueWaitIdle(device->device_queues[i].handle);
            pthread_mutex_unlock(&device->device_queues[i].lock);
        }
    }
}

void vulkan_send_stop(hal_plugin_queue *queue)
{
    if (queue->recorded > 0) {
        vulkan_queue_wait(queue, queue->recorded, UINT64_MAX);
    }
    pthread_mutex_lock(&queue->lock);
    queue->helper.stops = true;
    pthread_cond_signal(&queue->helper.wakes);
    pthread_mutex_unlock(&queue->lock);
    if (queue->helper.exists) {
        pthread_join(queue->helper.thread, NULL);
    }
    queue_await_dependents(queue);
}

hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    hal_plugin_queue *queue = NULL;
    HAL_TRY(vulkan_queue_create(device, &queue));
    static const hal_binding none[HAL_IR_MAX_BINDINGS];
    static const uint8_t zeros[HAL_IR_MAX_SCALAR_BYTES];
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH, .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .commands = &command,
                             .bindings = none,
                             .scalars = zeros};
    hal_status status = vulkan_queue_submit(queue, &batch, NULL, 0, 1);
    if (status == HAL_OK) {
        status = vulkan_queue_wait(queue, 1, UINT64_MAX);
    }
    vulkan_send_stop(queue);
    vulkan_slot_destroy_all(queue);
    vulkan_queue_destroy(device, queue);
    return status;
}

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
#include "vulkan_plugin.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
static int exiting;
static pid_t owner; /* a child of fork has no helpers, and may have a copy of the lock in use */

static void process_exit(void)
{
    if (getpid() == owner) {
        pthread_rwlock_wrlock(&exit_lock);
        exiting = 1;
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
    VkSemaphore semaphores[VULKAN_MAX_WAITS];
    VkPipelineStageFlags stages[VULKAN_MAX_WAITS];
    uint64_t values[VULKAN_MAX_WAITS];
    for (uint32_t i = 0; i < wait_count; i++) {
        atomic_fetch_or(&waits[i].queue->dependents,
                        1u << (queue->device_queue - device->device_queues));
        semaphores[i] = waits[i].queue->timeline;
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

hal_status vulkan_send(hal_plugin_queue *queue, const hal_plugin_wait *waits, uint32_t wait_count)
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

static int point_is_reached(hal_plugin_queue *queue, uint64_t value)
{
    return vulkan_point_wait(queue, value, 0) == HAL_OK;
}

static hal_status send_if_worth(hal_plugin_queue *queue, uint32_t least_idle, uint32_t least_busy)
{
    const uint32_t held = queue->held_commands;
    const int is_worth = queue->held_batches > 0 &&
                         (held >= MOST_COMMANDS || queue->open->is_transfer ||
                          (held >= least_idle && point_is_reached(queue, queue->sent)) ||
                          (held >= least_busy && point_is_reached(queue, queue->sent_before)));
    return is_worth ? vulkan_send(queue, NULL, 0) : HAL_OK;
}

hal_status vulkan_send_due(hal_plugin_queue *queue)
{
    return send_if_worth(queue, 1, FEW_COMMANDS);
}

hal_status vulkan_send_recorded(hal_plugin_queue *queue)
{
    if (queue->one_by_one) {
        return vulkan_send(queue, NULL, 0);
    }
    const uint32_t part = queue->commands_since_wait / LONG_PART;
    const uint32_t least = part < LONG_COMMANDS ? part : LONG_COMMANDS;
    return send_if_worth(queue, least, least > FEW_COMMANDS ? least : FEW_COMMANDS);
}

void vulkan_send_one_by_one(hal_plugin_queue *queue, uint64_t end)
{
    if (!queue->one_by_one && !point_is_reached(queue, end)) {
        queue->one_by_one = 1;
        atomic_store(&queue->grouped, 0);
    }
}

hal_status vulkan_send_up_to(hal_plugin_queue *queue, uint64_t value)
{
    if (atomic_load_explicit(&queue->reached, memory_order_acquire) >= value ||
        (atomic_load(&queue->sent) >= value && atomic_load(&queue->grouped) <= value)) {
        return HAL_OK;
    }
    hal_status status = HAL_OK;
    pthread_mutex_lock(&queue->lock);
    if (atomic_load(&queue->sent) < value) {
        status = vulkan_send(queue, NULL, 0);
        /* A value of a lost device that was dropped is never signalled. */
        status = status == HAL_OK ? vulkan_device_check(queue->device) : status;
    }
    const uint64_t end = vulkan_slot_end(queue, value);
    if (end != value) {
        vulkan_send_one_by_one(queue, end);
    }
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static void helper_look(hal_plugin_queue *queue)
{
    const hal_host *host = vulkan_host();
    pthread_rwlock_rdlock(&exit_lock);
    if (!exiting && vulkan_send_due(queue) != HAL_OK && HAL_PLUGIN_HAS(host, queue_failed)) {
        host->queue_failed(queue, "the driver refused batches that had been accepted; open the "
                                  "device again");
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
static int helper_create(hal_plugin_queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int is_created = pthread_create(&queue->helper.thread, NULL, helper_main, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_created;
}

hal_status vulkan_send_later(hal_plugin_queue *queue)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    vulkan_helper *helper = &queue->helper;
    if (!helper->exists) {
        pthread_once(&once, process_exit_register);
        helper->exists = helper_create(queue);
    } else if (helper->sleeps) {
        helper->sleeps = 0;
        pthread_cond_signal(&helper->wakes);
    }
    return helper->exists ? HAL_OK : vulkan_send(queue, NULL, 0);
}

void vulkan_send_start(hal_plugin_queue *queue)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->helper.wakes, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&queue->lock, NULL);
}

void vulkan_send_stop(hal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->helper.stops = 1;
    pthread_cond_signal(&queue->helper.wakes);
    pthread_mutex_unlock(&queue->lock);
    if (queue->helper.exists) {
        pthread_join(queue->helper.thread, NULL);
    }
    pthread_cond_destroy(&queue->helper.wakes);
    pthread_mutex_destroy(&queue->lock);
}

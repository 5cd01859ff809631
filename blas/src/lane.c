/* The device and its queues over threads and forks, see lane.h. */
#include "lane.h"

#include "host.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hal_device *device;
static bool is_opened; /* or it was tried */
static hal_status open_status;
static bool is_in_place; /* of the device */
static blas_lane *free_lanes;

/* The parent's device is of no use to a child, whose copy of the lock may be held. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    device = NULL;
    is_opened = false;
    free_lanes = NULL;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, reset_in_child);
}

/* A processor that imports memory of any address and size. */
static bool takes_any_memory(hal_device *opened)
{
    hal_external_info info = {.size = sizeof info};
    return hal_device_get_info(opened)->kind == HAL_DEVICE_CPU &&
           hal_device_get_external(opened, &info) == HAL_OK &&
           (info.import_kinds & HAL_HANDLE_BIT(HAL_HANDLE_HOST)) && info.host_alignment <= 4 &&
           info.host_granularity <= 4;
}

/* Under the lock. */
static hal_status device_open(void)
{
    if (!is_opened) {
        is_opened = true;
        open_status = hal_device_open(NULL, &device);
        if (open_status != HAL_OK && !*blas_host_path()) {
            open_status = hal_device_open("cpu", &device);
        }
        is_in_place = open_status == HAL_OK && takes_any_memory(device);
    }
    return open_status;
}

hal_device *blas_lane_device(void)
{
    pthread_mutex_lock(&lock);
    hal_device *found = device_open() == HAL_OK ? device : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

bool blas_lane_is_in_place(void)
{
    pthread_mutex_lock(&lock);
    const bool found = device_open() == HAL_OK && is_in_place;
    pthread_mutex_unlock(&lock);
    return found;
}

static void lane_destroy(blas_lane *lane)
{
    ops_context_destroy(lane->context);
    hal_buffer_release(lane->finished_buffer);
    hal_queue_destroy(lane->queue);
    free(lane);
}

static hal_status lane_create(hal_device *on, blas_lane **lane)
{
    blas_lane *made = calloc(1, sizeof *made);
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->is_in_place = is_in_place;
    hal_status status = hal_queue_create(on, &made->queue);
    if (status == HAL_OK) {
        status = ops_context_create(made->queue, &made->context);
    }
    if (status == HAL_OK && is_in_place) {
        const hal_memory_handle handle = {.size = sizeof handle,
                                          .kind = HAL_HANDLE_HOST,
                                          .handle = (uintptr_t)&made->finished,
                                          .bytes = sizeof made->finished,
                                          .access = HAL_ACCESS_READ_WRITE};
        status = hal_buffer_import(on, &handle, NULL, NULL, &made->finished_buffer);
    }
    if (status != HAL_OK) {
        lane_destroy(made);
        return status;
    }
    *lane = made;
    return HAL_OK;
}

void blas_lane_forget_losses(blas_lane *lane)
{
    lane->losses = __atomic_load_n(hal_queue_get_loss_count(lane->queue), __ATOMIC_ACQUIRE);
}

/* The failure of a batch that was dropped since the last wait; HAL_OK: none was. A call in between
 * may have returned it. */
static hal_status loss_take(blas_lane *lane)
{
    hal_loss loss;
    const uint32_t since = lane->losses;
    if (__atomic_load_n(hal_queue_get_loss_count(lane->queue), __ATOMIC_ACQUIRE) == since) {
        return HAL_OK;
    }
    HAL_TRY(hal_queue_get_loss(lane->queue, since, &loss));
    lane->losses = loss.count;
    return hal_status_set(loss.status, "%s", loss.message);
}

hal_status blas_lane_wait(blas_lane *lane)
{
    const uint32_t serial = ++lane->serial;
    const hal_range all = {lane->finished_buffer, 0, sizeof lane->finished};
    hal_queue_fill(lane->queue, all, serial); /* a flush in it that fails is a loss */
    const hal_status status = hal_queue_wait(lane->queue, HAL_WAIT_FOREVER);
    if (status != HAL_OK) { /* the work may still run, and end after the call, or was dropped */
        hal_queue_wait(lane->queue, HAL_WAIT_FOREVER);
    }
    HAL_TRY(loss_take(lane));
    return *(volatile uint32_t *)&lane->finished == serial ? HAL_OK : status;
}

hal_status blas_lane_acquire(blas_lane **lane)
{
    pthread_mutex_lock(&lock);
    const hal_status status = device_open();
    hal_device *on = device;
    *lane = free_lanes;
    if (*lane) {
        free_lanes = (*lane)->next;
    }
    pthread_mutex_unlock(&lock);
    HAL_TRY(status);
    if (!*lane) {
        return lane_create(on, lane);
    }
    (*lane)->moved_bytes = 0;
    return HAL_OK;
}

void blas_lane_release(blas_lane *lane, bool has_failed)
{
    if (has_failed) {
        lane_destroy(lane);
        return;
    }
    pthread_mutex_lock(&lock);
    lane->next = free_lanes;
    free_lanes = lane;
    pthread_mutex_unlock(&lock);
}

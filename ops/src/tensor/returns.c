/* Memory that a consumer on another stream gives back, see returns.h. */
#include "returns.h"

#include <hal/hal.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { USED_BYTES = 4 }; /* of a buffer, by a copy that only has to come after the stream */

struct ops_returns {
    _Atomic uint32_t references;
    pthread_mutex_t lock; /* of the queue */
    hal_queue *queue;
    hal_buffer *target; /* of the copies */
};

ops_returns *ops_returns_create(hal_device *device)
{
    ops_returns *made = calloc(1, sizeof *made);
    if (!made) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_tensor_to_dlpack_stream: no host memory");
        return NULL;
    }
    atomic_init(&made->references, 1);
    pthread_mutex_init(&made->lock, NULL);
    hal_status status = hal_queue_create(device, &made->queue);
    if (status == HAL_OK) {
        status = hal_buffer_create(device, HAL_MEMORY_DEVICE, USED_BYTES, &made->target);
    }
    if (status != HAL_OK) {
        ops_returns_unref(made);
        return NULL;
    }
    return made;
}

ops_returns *ops_returns_ref(ops_returns *returns)
{
    atomic_fetch_add(&returns->references, 1);
    return returns;
}

void ops_returns_unref(ops_returns *returns)
{
    if (returns && atomic_fetch_sub(&returns->references, 1) == 1) {
        hal_buffer_release(returns->target);
        hal_queue_destroy(returns->queue);
        pthread_mutex_destroy(&returns->lock);
        free(returns);
    }
}

void ops_returns_give(ops_returns *returns, hal_buffer *buffer, const char *type, uint64_t stream)
{
    const uint64_t bytes = hal_buffer_get_bytes(buffer);
    const uint64_t used = bytes < USED_BYTES ? bytes : USED_BYTES;
    const hal_range source = {buffer, 0, used}, target = {returns->target, 0, used};
    pthread_mutex_lock(&returns->lock);
    hal_status status = hal_queue_wait_native(returns->queue, type, stream);
    status = status == HAL_OK ? hal_queue_copy(returns->queue, source, target) : status;
    status = status == HAL_OK ? hal_queue_flush(returns->queue, NULL) : status;
    if (status != HAL_OK) { /* the device is lost, or the host has no memory */
        hal_queue_wait(returns->queue, HAL_WAIT_FOREVER);
    }
    pthread_mutex_unlock(&returns->lock);
    hal_buffer_release(buffer);
}

/* Checks and properties of queues. */
#include "queue.h"

#include "hooks.h"

#include "base/status.h"

hal_status hal_queue_check(const hal_queue *queue, const char *function)
{
    if (!queue) {
        return hal_null_argument(function, "queue");
    }
    if (queue->graph) {
        return hal_fail(HAL_ERROR_INVALID_STATE,
                        "%s: queue: expected no graph in recording; call hal_graph_end first",
                        function);
    }
    return hal_device_check(queue->timeline.device, function);
}

hal_device *hal_queue_get_device(const hal_queue *queue)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_QUEUE, queue, "hal_queue_get_device");
    return queue && status == HAL_OK ? queue->timeline.device : NULL;
}

static hal_status queue_set_batch(hal_queue *queue, uint32_t first, uint32_t most)
{
    first = first ? first : HAL_QUEUE_BATCH_FIRST;
    most = most ? most : HAL_QUEUE_BATCH_COMMANDS;
    if (!queue) {
        return hal_null_argument("hal_queue_set_batch", "queue");
    }
    if (first > most) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_set_batch: first: expected at most %u, the value of most, got "
                        "%u",
                        most, first);
    }
    queue->recorder.batch_first = first;
    queue->recorder.batch_most = most;
    hal_recorder_limit_batch(&queue->recorder, first);
    return HAL_OK;
}

hal_status hal_queue_set_batch(hal_queue *queue, uint32_t first, uint32_t most)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_set_batch");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue, queue_set_batch(queue, first, most))
               : status;
}

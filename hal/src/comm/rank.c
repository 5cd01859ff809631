/* State and memory of ranks, see rank.h. */
#include "rank.h"

#include "core/buffer.h"
#include "core/hooks.h"

#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hal_status hal_comm_check(hal_comm *comm, const char *function)
{
    if (!comm->mailbox) {
        return atomic_load(&comm->is_aborted) ? hal_fail(HAL_ERROR_INVALID_STATE,
                                                         "%s: comm: expected one that goes on, got "
                                                         "one that hal_comm_abort ended",
                                                         function)
                                              : HAL_OK;
    }
    return hal_mailbox_check(comm->mailbox, function);
}

hal_status hal_comm_fail(hal_comm *comm, hal_status status)
{
    if (comm->mailbox) {
        hal_mailbox_fail(comm->mailbox, comm->rank, status, hal_status_message());
    }
    return status;
}

/* A buffer that the host sees from now on. */
static hal_status mapped_create(hal_device *device, hal_memory_kind kind, uint64_t bytes,
                                const char *label, hal_buffer **buffer, uint8_t **host)
{
    void *pointer = NULL;
    hal_status status = hal_buffer_create(device, kind, bytes, buffer);
    if (status == HAL_OK) {
        hal_buffer_set_label(*buffer, label);
        status = hal_buffer_map_begin(*buffer, &pointer);
    }
    if (status == HAL_OK) {
        *host = pointer;
        status = hal_buffer_map_end(*buffer);
    }
    return status;
}

hal_status hal_comm_stage_for(hal_comm *comm, hal_queue *queue, hal_comm_stage **stage)
{
    for (hal_comm_stage *known = comm->stages; known; known = known->next) {
        if (known->timeline == &queue->timeline) {
            *stage = known;
            return HAL_OK;
        }
    }
    hal_comm_stage *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    const uint64_t bytes = comm->mailbox->slot_bytes;
    hal_status status = mapped_create(comm->device, HAL_MEMORY_DOWNLOAD, bytes,
                                      "communicator outbox", &made->outbox, &made->outbox_host);
    if (status == HAL_OK) {
        status = mapped_create(comm->device, HAL_MEMORY_UPLOAD, bytes, "communicator inbox",
                               &made->inbox, &made->inbox_host);
    }
    if (status != HAL_OK) {
        hal_buffer_release(made->outbox);
        hal_buffer_release(made->inbox);
        free(made);
        return status;
    }
    made->timeline = &queue->timeline;
    made->next = comm->stages;
    comm->stages = made;
    *stage = made;
    return HAL_OK;
}

hal_status hal_comm_scratch(hal_comm *comm, hal_comm_stage *stage, uint32_t which, uint64_t bytes,
                            hal_buffer **buffer)
{
    hal_buffer **kept = &stage->scratch[which];
    hal_status status = HAL_OK;
    if (!*kept || (*kept)->bytes < bytes) {
        hal_buffer_release(*kept);
        *kept = NULL;
        status = hal_buffer_create(comm->device, HAL_MEMORY_DEVICE, bytes, kept);
    }
    *buffer = *kept;
    return status;
}

hal_status hal_comm_check_device(hal_device *device, const char *function)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, function);
    return status == HAL_OK ? hal_device_check(device, function) : status;
}

/* Groups: creation, state and destruction of ranks. Called by programs through hal/group.h and by
 * the other sources of this folder. */
#include "direct.h"
#include "engine_create.h"

#include "core/buffer.h"
#include "core/hooks.h"
#include "core/watch.h"

#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVED_BYTES (UINT64_C(64) << 20)
#define GATHERED_BYTES (UINT64_C(2) << 20) /* up to which a second call costs more than the data */

/* A launcher usually binds each process to separate processors, so that one process does not know
 * those of the others. */
static int ranks_are_crowded(const hal_board *board, uint32_t count)
{
    const int is_local = board && board->file < 0 && !board->link;
    return (long)count > (is_local ? (long)hal_processor_count() : sysconf(_SC_NPROCESSORS_ONLN));
}

hal_status hal_group_make(hal_device *device, hal_board *board, uint32_t rank, uint32_t count,
                          uint64_t time_limit_ns, const char *function, hal_group **group)
{
    hal_group *made = calloc(1, sizeof *made);
    if (!made) {
        if (board) {
            hal_board_close(board, rank);
        }
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    atomic_store(&made->references, 1);
    made->device = hal_device_ref(device);
    made->board = board;
    made->rank = rank;
    made->count = count;
    made->is_crowded = ranks_are_crowded(board, count);
    made->time_limit_ns = time_limit_ns;
    made->limits = (hal_group_limits){RECEIVED_BYTES, GATHERED_BYTES};
    if (board) {
        hal_direct_post(board, rank, made->key);
    }
    *group = made;
    return HAL_OK;
}

hal_status hal_group_start(hal_group **groups, uint32_t count, const char *function)
{
    const hal_status status = hal_engine_create(groups, count, function);
    for (uint32_t i = 0; status != HAL_OK && i < count; i++) {
        hal_group_destroy(groups[i]);
        groups[i] = NULL;
    }
    return status;
}

void hal_group_ref(hal_group *group)
{
    atomic_fetch_add(&group->references, 1);
}

static void group_free(hal_group *group)
{
    while (group->stages) {
        hal_group_stage *stage = group->stages;
        group->stages = stage->next;
        hal_buffer_release(stage->outbox);
        hal_buffer_release(stage->inbox);
        for (uint32_t i = 0; i < HAL_SCRATCHES; i++) {
            hal_buffer_release(stage->scratch[i]);
        }
        free(stage);
    }
    for (hal_type type = 0; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t i = 0; i < 4 * HAL_GROUP_KERNELS; i++) {
            hal_kernel_release(group->kernels[type][i / HAL_GROUP_KERNELS][i % HAL_GROUP_KERNELS]);
        }
    }
    hal_engine_destroy(group);
    if (group->board) {
        hal_board_close(group->board, group->rank);
    }
    hal_device_unref(group->device);
    free(group);
}

void hal_group_unref(hal_group *group)
{
    if (atomic_fetch_sub(&group->references, 1) == 1) {
        group_free(group);
    }
}

hal_status hal_group_check(hal_group *group, const char *function)
{
    if (!group->board) {
        return atomic_load(&group->is_aborted)
                   ? hal_fail(HAL_ERROR_INVALID_STATE,
                              "%s: group: expected one that goes on, got "
                              "one that hal_group_abort ended",
                              function)
                   : HAL_OK;
    }
    return hal_board_check(group->board, function);
}

hal_status hal_group_fail(hal_group *group, hal_status status)
{
    if (group->board) {
        hal_board_fail(group->board, group->rank, status, hal_status_message());
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

hal_status hal_group_stage_for(hal_group *group, hal_queue *queue, hal_group_stage **stage)
{
    for (hal_group_stage *known = group->stages; known; known = known->next) {
        if (known->timeline == &queue->timeline) {
            *stage = known;
            return HAL_OK;
        }
    }
    hal_group_stage *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    const uint64_t bytes = group->board->slot_bytes;
    hal_status status = mapped_create(group->device, HAL_MEMORY_DOWNLOAD, bytes, "group outbox",
                                      &made->outbox, &made->outbox_host);
    if (status == HAL_OK) {
        status = mapped_create(group->device, HAL_MEMORY_UPLOAD, bytes, "group inbox", &made->inbox,
                               &made->inbox_host);
    }
    if (status != HAL_OK) {
        hal_buffer_release(made->outbox);
        hal_buffer_release(made->inbox);
        free(made);
        return status;
    }
    made->timeline = &queue->timeline;
    made->next = group->stages;
    group->stages = made;
    *stage = made;
    return HAL_OK;
}

hal_status hal_group_scratch(hal_group *group, hal_group_stage *stage, uint32_t which,
                             uint64_t bytes, hal_buffer **buffer)
{
    hal_buffer **kept = &stage->scratch[which];
    hal_status status = HAL_OK;
    if (!*kept || (*kept)->bytes < bytes) {
        hal_buffer_release(*kept);
        *kept = NULL;
        status = hal_buffer_create(group->device, HAL_MEMORY_DEVICE, bytes, kept);
    }
    *buffer = *kept;
    return status;
}

hal_status hal_group_check_device(hal_device *device, const char *function)
{
    const hal_status status = hal_hook_use(HAL_OBJECT_DEVICE, device, function);
    return status == HAL_OK ? hal_device_check(device, function) : status;
}

hal_status hal_group_id_create(hal_group_id *id)
{
    if (!id) {
        return hal_null_argument("hal_group_id_create", "id");
    }
    return getentropy(id->bytes, sizeof id->bytes) == 0
               ? HAL_OK
               : hal_fail(HAL_ERROR_IO, "hal_group_id_create: the system has no random numbers");
}

static hal_status check_count(uint32_t count, const char *function)
{
    return count >= 1 && count <= HAL_GROUP_MAX_RANKS
               ? HAL_OK
               : hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: count: expected 1 to %u ranks, got %u",
                          function, HAL_GROUP_MAX_RANKS, count);
}

hal_status hal_group_create(hal_device *device, const hal_group_options *options, hal_group **group)
{
    if (!group || !options) {
        return hal_null_argument("hal_group_create", group ? "options" : "group");
    }
    *group = NULL;
    hal_status status = hal_group_check_device(device, "hal_group_create");
    if (status == HAL_OK) {
        status = check_count(options->count, "hal_group_create");
    }
    if (status == HAL_OK && options->rank >= options->count) {
        status = hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                          "hal_group_create: rank: expected one below count %u, got %u",
                          options->count, options->rank);
    }
    if (status != HAL_OK) {
        return status;
    }
    const uint64_t limit =
        options->time_limit_ns ? options->time_limit_ns : HAL_GROUP_TIME_LIMIT_NS;
    hal_board *board = NULL;
    if (options->count > 1) {
        status = hal_board_open(&options->id, options->rank, options->count, 1, limit,
                                "hal_group_create", &board);
        if (status == HAL_OK) {
            status = hal_board_wait_joined(board, limit, "hal_group_create");
            if (status != HAL_OK) {
                hal_board_close(board, options->rank);
            }
        }
    }
    if (status == HAL_OK) {
        status = hal_group_make(device, board, options->rank, options->count, limit,
                                "hal_group_create", group);
    }
    if (status == HAL_OK) {
        status = hal_group_start(group, 1, "hal_group_create");
    }
    return status;
}

hal_status hal_group_create_local(hal_device *const *devices, uint32_t count,
                                  uint64_t time_limit_ns, hal_group **groups)
{
    if (!devices || !groups) {
        return hal_null_argument("hal_group_create_local", devices ? "groups" : "devices");
    }
    hal_group_id id;
    hal_status status = check_count(count, "hal_group_create_local");
    if (status != HAL_OK) {
        return status;
    }
    memset(groups, 0, count * sizeof(hal_group *));
    const uint64_t limit = time_limit_ns ? time_limit_ns : HAL_GROUP_TIME_LIMIT_NS;
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = hal_group_check_device(devices[i], "hal_group_create_local");
    }
    if (status == HAL_OK) {
        status = hal_group_id_create(&id);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        hal_board *board = NULL;
        if (count > 1) {
            status = hal_board_open(&id, i, count, 0, limit, "hal_group_create_local", &board);
        }
        if (status == HAL_OK) {
            status = hal_group_make(devices[i], board, i, count, limit, "hal_group_create_local",
                                    &groups[i]);
        }
    }
    if (status == HAL_OK) {
        return hal_group_start(groups, count, "hal_group_create_local");
    }
    for (uint32_t i = 0; i < count; i++) {
        hal_group_destroy(groups[i]);
        groups[i] = NULL;
    }
    return status;
}

hal_status hal_group_abort(hal_group *group, const char *reason)
{
    if (!group) {
        return hal_null_argument("hal_group_abort", "group");
    }
    if (hal_device_is_after_fork(group->device)) {
        return hal_device_check(group->device, "hal_group_abort");
    }
    if (group->board) {
        hal_board_fail(group->board, group->rank, HAL_ERROR_INVALID_STATE,
                       reason && *reason ? reason : "hal_group_abort was called");
    }
    atomic_store(&group->is_aborted, 1);
    return HAL_OK;
}

hal_status hal_group_get_status(hal_group *group, hal_group_status *status)
{
    if (!group || !status) {
        return hal_null_argument("hal_group_get_status", group ? "status" : "group");
    }
    if (hal_device_is_after_fork(group->device)) {
        return hal_device_check(group->device, "hal_group_get_status");
    }
    const hal_board *board = group->board;
    hal_watch_poll_all(1);
    *status = (hal_group_status){.message = "",
                                 .engine = group->engine ? hal_engine_name(group)
                                           : board       ? hal_board_engine(board)
                                                         : "none",
                                 .rank = group->rank,
                                 .count = group->count,
                                 .deterministic = !atomic_load(&group->has_varied)};
    if (board) {
        const hal_board_header *header = board->header;
        hal_board_check(group->board, "hal_group_get_status");
        status->completed = atomic_load(&hal_board_rank_at(board, group->rank)->consumed) +
                            hal_engine_completed(group);
        if (atomic_load_explicit(&header->failure, memory_order_acquire) == 2) {
            status->status = header->failed_status;
            status->failed_rank = header->failed_rank;
            status->message = header->message;
        }
    } else if (atomic_load(&group->is_aborted)) {
        status->status = HAL_ERROR_INVALID_STATE;
        status->message = "rank 0 of 1: hal_group_abort was called";
    }
    return HAL_OK;
}

void hal_group_destroy(hal_group *group)
{
    if (group && !hal_device_is_after_fork(group->device)) {
        hal_watch_poll_all(1); /* collectives that have ended leave the group */
        hal_group_unref(group);
    }
}

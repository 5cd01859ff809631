/* Transfers between host and buffers and between devices. Idle mapped memory is written directly,
 * and peers copy directly; all else goes through staging memory and copy commands, in pieces: the
 * device moves one while the host copies the next. Called by programs through hal/queue.h. */
#include "flush.h"
#include "held.h"
#include "hooks.h"
#include "record.h"
#include "staging.h"
#include "submit.h"

#include "base/copy_team.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Bytes staged at a time: large pieces cost few submissions, small ones start the device early. */
#define MAX_PIECE (UINT64_C(8) << 20)
#define MIN_PIECE (UINT64_C(512) << 10)
#define PIECES 8
#define PIECES_IN_FLIGHT 4

/* Bytes from which the threads of a device copy between memories of the host. */
#define DEVICE_COPY_FROM (UINT64_C(1) << 20)

static hal_status check_range(const hal_queue *queue, const hal_buffer *buffer, uint64_t offset,
                              uint64_t bytes, const char *function, const char *argument)
{
    const hal_status status = hal_queue_check(queue, function);
    if (status != HAL_OK) {
        return status;
    }
    if (!buffer) {
        return hal_null_argument(function, argument);
    }
    const hal_device *device = queue->timeline.device;
    if (buffer->device != device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: %s: expected a buffer of %s:%u, the queue's device, got \"%s\" of "
                        "%s:%u",
                        function, argument, device->plugin->name, device->index, buffer->label,
                        buffer->device->plugin->name, buffer->device->index);
    }
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: %s: expected a range within the %llu bytes of \"%s\", got offset %llu "
                        "and %llu bytes",
                        function, argument, (unsigned long long)buffer->bytes, buffer->label,
                        (unsigned long long)offset, (unsigned long long)bytes);
    }
    return HAL_OK;
}

static uint64_t piece_bytes(uint64_t bytes)
{
    const uint64_t piece = bytes / PIECES / MIN_PIECE * MIN_PIECE;
    return piece < MIN_PIECE ? MIN_PIECE : piece < MAX_PIECE ? piece : MAX_PIECE;
}

/* Without memory the queue is waited for: its own work may hold the memory. */
static hal_status staging_create(hal_queue *queue, uint32_t kind, uint64_t bytes,
                                 hal_buffer **staging)
{
    hal_device *device = queue->timeline.device;
    hal_status status = hal_buffer_create(device, kind, bytes, staging);
    if (status == HAL_ERROR_OUT_OF_MEMORY) {
        status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
        if (status == HAL_OK) {
            status = hal_buffer_create(device, kind, bytes, staging);
        }
    }
    return status;
}

static hal_status record_copy(hal_queue *queue, hal_range source, hal_range target)
{
    const hal_range ranges[2] = {source, target};
    const hal_action action = {.kind = HAL_COMMAND_COPY,
                               .range_count = 2,
                               .grid = {1, 1, 1},
                               .ranges = ranges,
                               .access = hal_copy_access};
    const hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? hal_record_action(&queue->recorder, &action) : status;
}

/* Through a buffer that is allocated for the write. */
static hal_status write_through_buffer(hal_queue *queue, hal_range target, const void *data,
                                       hal_copy_team *team)
{
    hal_buffer *staging = NULL;
    void *pointer = NULL;
    hal_status status = staging_create(queue, HAL_MEMORY_UPLOAD, target.length, &staging);
    if (status == HAL_OK) {
        status = hal_buffer_map_begin(staging, &pointer);
    }
    if (status == HAL_OK) {
        hal_copy_team_copy(team, pointer, data, target.length);
        status = hal_buffer_map_end(staging);
    }
    if (status == HAL_OK) {
        status = record_copy(queue, (hal_range){staging, 0, target.length}, target);
    }
    hal_buffer_release(staging);
    return status;
}

static hal_status write_piece(hal_queue *queue, hal_range target, const void *data,
                              hal_copy_team *team)
{
    hal_range staged = {0};
    void *pointer = NULL;
    if (target.length <= HAL_STAGING_MAX) {
        const hal_status status = hal_staging_take(queue, target.length, &staged, &pointer);
        if (status != HAL_OK) {
            return status;
        }
    }
    if (!pointer) {
        return write_through_buffer(queue, target, data, team);
    }
    memcpy(pointer, data, target.length);
    hal_hook_host_access(queue, &staged, HAL_ACCESS_WRITE);
    const hal_status status = hal_buffer_flush(staged.buffer, staged.offset, staged.length);
    return status == HAL_OK ? record_copy(queue, staged, target) : status;
}

/* Through staging memory, a piece after the other. */
static hal_status write_staged(hal_queue *queue, hal_range target, const char *data)
{
    const uint64_t bytes = target.length, piece = piece_bytes(bytes);
    hal_point points[PIECES_IN_FLIGHT] = {{0}};
    hal_copy_team *team = hal_copy_team_begin(bytes);
    hal_status status = HAL_OK;
    for (uint64_t done = 0, count = 0; status == HAL_OK && done < bytes; count++) {
        const uint64_t length = bytes - done < piece ? bytes - done : piece;
        hal_point *point = &points[count % PIECES_IN_FLIGHT];
        status = hal_point_wait(*point, HAL_WAIT_FOREVER);
        if (status == HAL_OK) {
            const hal_range part = {target.buffer, target.offset + done, length};
            status = write_piece(queue, part, data + done, team);
        }
        done += length;
        if (status == HAL_OK && done < bytes) {
            status = hal_flush_untimed(queue, point);
        }
    }
    hal_copy_team_end(team);
    return status;
}

/* By the host alone: the threads of the device, if it offers them, or those of this call. */
static void copy_directly(const hal_device *device, void *target, const void *source,
                          uint64_t bytes)
{
    if (bytes >= DEVICE_COPY_FROM && device->plugin->host_copy) {
        device->plugin->host_copy(device->handle, target, source, bytes);
        return;
    }
    hal_copy_team *team = hal_copy_team_begin(bytes);
    hal_copy_team_copy(team, target, source, bytes);
    hal_copy_team_end(team);
}

static hal_status queue_write(hal_queue *queue, hal_buffer *buffer, uint64_t offset,
                              const void *data, uint64_t bytes)
{
    hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_queue_write");
    if (status == HAL_OK) {
        status = check_range(queue, buffer, offset, bytes, "hal_queue_write", "buffer");
    }
    if (status != HAL_OK || bytes == 0) {
        return status;
    }
    if (!data) {
        return hal_null_argument("hal_queue_write", "data");
    }
    /* A write after waits is recorded: otherwise the next point would not come after them. */
    const hal_recording *recording = queue->recorder.recording;
    const int may_be_direct =
        buffer->kind != HAL_MEMORY_DOWNLOAD && recording->wait_count == 0 && !recording->gate;
    char *mapped = may_be_direct ? hal_buffer_idle_pointer(buffer) : NULL;
    if (mapped) {
        hal_hook_host_access(queue, &(hal_range){buffer, offset, bytes}, HAL_ACCESS_WRITE);
        copy_directly(buffer->device, mapped + offset, data, bytes);
        return hal_buffer_flush(buffer, offset, bytes);
    }
    return write_staged(queue, (hal_range){buffer, offset, bytes}, data);
}

/* A part of a read: its staging memory and the copy to it. */
typedef struct read_piece {
    hal_buffer *staging;
    hal_point point; /* zeros while the copy is not submitted */
    uint64_t offset, length;
} read_piece;

/* Records the copy to staging memory, and submits it unless it is the last. */
static hal_status read_piece_begin(hal_queue *queue, hal_range source, int is_last,
                                   read_piece *piece)
{
    hal_status status = staging_create(queue, HAL_MEMORY_DOWNLOAD, source.length, &piece->staging);
    if (status == HAL_OK) {
        status = record_copy(queue, source, (hal_range){piece->staging, 0, source.length});
    }
    return status == HAL_OK && !is_last ? hal_flush_untimed(queue, &piece->point) : status;
}

static hal_status read_piece_end(hal_queue *queue, read_piece *piece, int is_last, char *data,
                                 hal_copy_team *team)
{
    void *pointer = NULL;
    hal_status status = is_last ? hal_queue_wait(queue, HAL_WAIT_FOREVER)
                                : hal_point_wait(piece->point, HAL_WAIT_FOREVER);
    if (status == HAL_OK) {
        status = hal_buffer_map_begin(piece->staging, &pointer);
    }
    if (status == HAL_OK) {
        hal_copy_team_copy(team, data + piece->offset, pointer, piece->length);
        hal_buffer_map_end(piece->staging);
    }
    hal_buffer_release(piece->staging);
    piece->staging = NULL;
    return status;
}

/* Through staging memory; the device fills the next pieces while the host empties one. */
static hal_status read_staged(hal_queue *queue, hal_range source, char *data)
{
    const uint64_t bytes = source.length, piece = piece_bytes(bytes);
    const uint64_t count = (bytes + piece - 1) / piece;
    read_piece pieces[PIECES_IN_FLIGHT] = {{0}};
    hal_copy_team *team = hal_copy_team_begin(bytes);
    hal_status status = HAL_OK;
    for (uint64_t begun = 0, ended = 0; status == HAL_OK && ended < count;) {
        if (begun < count && begun < ended + PIECES_IN_FLIGHT) {
            read_piece *next = &pieces[begun % PIECES_IN_FLIGHT];
            *next = (read_piece){.offset = begun * piece};
            next->length = bytes - next->offset < piece ? bytes - next->offset : piece;
            const hal_range part = {source.buffer, source.offset + next->offset, next->length};
            status = read_piece_begin(queue, part, ++begun == count, next);
        } else {
            read_piece *oldest = &pieces[ended % PIECES_IN_FLIGHT];
            status = read_piece_end(queue, oldest, ++ended == count, data, team);
        }
    }
    for (int i = 0; i < PIECES_IN_FLIGHT; i++) {
        hal_buffer_release(pieces[i].staging);
    }
    hal_copy_team_end(team);
    return status;
}

static hal_status queue_read(hal_queue *queue, hal_buffer *buffer, uint64_t offset, void *data,
                             uint64_t bytes)
{
    hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, buffer, "hal_queue_read");
    if (status == HAL_OK) {
        status = check_range(queue, buffer, offset, bytes, "hal_queue_read", "buffer");
    }
    if (status == HAL_OK && bytes > 0 && !data) {
        status = hal_null_argument("hal_queue_read", "data");
    }
    const int mapped = status == HAL_OK && hal_buffer_is_mapped_kind(buffer);
    if (mapped) { /* no command will be recorded, so the waits are flushed alone */
        status = hal_flush_waits(queue, NULL);
    }
    if (status == HAL_OK && (mapped || bytes == 0)) {
        status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
    }
    if (status != HAL_OK || bytes == 0) {
        return status;
    }
    if (mapped) {
        hal_hook_host_access(queue, &(hal_range){buffer, offset, bytes}, HAL_ACCESS_READ);
        void *pointer = NULL;
        status = hal_buffer_view(buffer, &pointer);
        if (status == HAL_OK) {
            status = hal_buffer_invalidate(buffer, offset, bytes);
        }
        if (status == HAL_OK) {
            copy_directly(buffer->device, data, (const char *)pointer + offset, bytes);
        }
        return status;
    }
    return read_staged(queue, (hal_range){buffer, offset, bytes}, data);
}

/* The source's queue copies after the earlier work of both queues. An empty batch of the target's
 * queue, the relay, waits for the copy, so that the last points of both queues come after it. Where
 * a relay is the target's last batch, the source's queue is after all that the relay waits for. */
static hal_status transfer_to_peer(hal_queue *from, hal_range source, hal_queue *to,
                                   hal_range target)
{
    hal_point point = {0};
    hal_status status = HAL_OK;
    if (from == to) {
        return record_copy(from, source, target);
    }
    status = hal_flush_waits(to, &point);
    const int is_relay = point.value == to->relay && to->relayed.timeline == &from->timeline;
    if (status == HAL_OK && !is_relay) {
        status = hal_queue_wait_point(from, point);
    }
    if (status == HAL_OK) {
        status = record_copy(from, source, target);
    }
    if (status == HAL_OK) {
        status = hal_flush_untimed(from, &point);
    }
    if (status != HAL_OK) {
        return status;
    }
    /* The target's queue keeps its device and memory until the copy has run. If hal holds the copy
     * for a third device, nothing keeps the queue, and the copy is waited for. */
    const hal_last_use copy = {&from->timeline, point.value};
    if (!hal_timeline_has_submitted(copy.timeline, copy.value) ||
        hal_submit_add_dependent(to, copy) != HAL_OK) {
        status = hal_point_wait(point, HAL_WAIT_FOREVER);
        status = status == HAL_OK ? hal_held_take_deferred_error(from) : status;
    }
    if (status == HAL_OK) {
        status = hal_queue_wait_point(to, point);
    }
    if (status == HAL_OK) {
        status = hal_flush_waits(to, &point);
    }
    to->relayed = copy;
    to->relay = status == HAL_OK ? point.value : 0;
    return status;
}

/* In pieces through the host. */
static hal_status transfer_through_host(hal_queue *from, hal_range source, hal_queue *to,
                                        hal_range target)
{
    const uint64_t bytes = source.length, most = 2 * MAX_PIECE;
    const uint64_t piece = bytes < most ? bytes : most;
    hal_status status = HAL_OK;
    void *data = malloc(piece);
    if (!data) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY,
                        "hal_queue_transfer: no host memory for %llu bytes",
                        (unsigned long long)piece);
    }
    for (uint64_t done = 0; status == HAL_OK && done < bytes; done += piece) {
        const uint64_t length = bytes - done < piece ? bytes - done : piece;
        status = hal_queue_read(from, source.buffer, source.offset + done, length, data);
        if (status == HAL_OK) {
            status = hal_queue_write(to, target.buffer, target.offset + done, data, length);
        }
    }
    free(data);
    return status;
}

static hal_status queue_transfer(hal_queue *source_queue, hal_range from, hal_queue *target_queue,
                                 hal_range to)
{
    hal_status status = hal_hook_use(HAL_OBJECT_BUFFER, from.buffer, "hal_queue_transfer");
    if (status == HAL_OK) {
        status = hal_hook_use(HAL_OBJECT_BUFFER, to.buffer, "hal_queue_transfer");
    }
    if (status == HAL_OK) {
        status = check_range(source_queue, from.buffer, from.offset, from.length,
                             "hal_queue_transfer", "source");
    }
    if (status == HAL_OK) {
        status = check_range(target_queue, to.buffer, to.offset, to.length, "hal_queue_transfer",
                             "target");
    }
    if (status != HAL_OK || from.length == 0) {
        return status;
    }
    if (from.buffer == to.buffer && from.offset < to.offset + to.length &&
        to.offset < from.offset + from.length) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_transfer: target: expected no overlap with source, got the "
                        "same buffer at offsets %llu and %llu with %llu bytes",
                        (unsigned long long)from.offset, (unsigned long long)to.offset,
                        (unsigned long long)from.length);
    }
    return hal_device_can_access_peer(source_queue->timeline.device, target_queue->timeline.device)
               ? transfer_to_peer(source_queue, from, target_queue, to)
               : transfer_through_host(source_queue, from, target_queue, to);
}

hal_status hal_queue_write(hal_queue *queue, hal_buffer *buffer, uint64_t offset, const void *data,
                           uint64_t bytes)
{
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_write");
    if (status == HAL_OK) {
        status = queue_write(queue, buffer, offset, data, bytes);
        hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
    }
    return status;
}

hal_status hal_queue_read(hal_queue *queue, hal_buffer *buffer, uint64_t offset, uint64_t bytes,
                          void *data)
{
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_read");
    if (status == HAL_OK) {
        status = queue_read(queue, buffer, offset, data, bytes);
        hal_hook_leave(HAL_OBJECT_QUEUE, queue, status);
    }
    return status;
}

hal_status hal_queue_transfer(hal_queue *source_queue, hal_buffer *source, uint64_t source_offset,
                              hal_queue *target_queue, hal_buffer *target, uint64_t target_offset,
                              uint64_t bytes)
{
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, source_queue, "hal_queue_transfer");
    if (status != HAL_OK) {
        return status;
    }
    status = hal_hook_enter(HAL_OBJECT_QUEUE, target_queue, "hal_queue_transfer");
    if (status == HAL_OK) {
        status = queue_transfer(source_queue, (hal_range){source, source_offset, bytes},
                                target_queue, (hal_range){target, target_offset, bytes});
        hal_hook_leave(HAL_OBJECT_QUEUE, target_queue, status);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, source_queue, status);
}

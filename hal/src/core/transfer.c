/* Transfers between host and buffers and between devices. Idle mapped memory is written directly,
 * and peers copy directly; all else goes through staging memory and copy commands, in pieces: the
 * device moves one while the host copies the next. */
#include "flush.h"
#include "deferred.h"
#include "hooks.h"
#include "record.h"
#include "staging.h"
#include "submit.h"

#include "base/copy_workers.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Bytes staged at a time in a transfer that helpers share, an eighth of it: large pieces cost few
 * submissions, small ones start the device early. */
#define MAX_PIECE (UINT64_C(8) << 20)
#define MIN_PIECE (UINT64_C(1) << 20)
#define PIECES 8
#define PIECES_IN_FLIGHT 4

/* The same for one thread. */
#define PIECE_ALONE HAL_STAGING_MAX

/* Bytes from which the threads of a device copy between memories of the host. */
#define DEVICE_COPY_FROM (UINT64_C(1) << 20)

static hal_status check_range(const hal_queue *queue, const hal_buffer *buffer, uint64_t offset,
                              uint64_t bytes, const char *function, const char *argument)
{
    HAL_TRY(hal_queue_check(queue, function));
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

/* Of a transfer in which helpers copy. */
static uint64_t piece_bytes(uint64_t bytes)
{
    const uint64_t piece = bytes / PIECES / MIN_PIECE * MIN_PIECE;
    return piece < MIN_PIECE ? MIN_PIECE : piece < MAX_PIECE ? piece : MAX_PIECE;
}

/* Without memory the queue is waited for: its own work may hold the memory. */
static hal_status staging_create(hal_queue *queue, hal_memory_kind kind, uint64_t bytes,
                                 hal_buffer **staging)
{
    hal_device *device = queue->timeline.device;
    hal_saved_message message;
    hal_message_save(&message);
    hal_status status = hal_buffer_create(device, kind, bytes, staging);
    if (status == HAL_ERROR_OUT_OF_MEMORY) {
        status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
        if (status == HAL_OK) {
            status = hal_buffer_create(device, kind, bytes, staging);
        }
        if (status == HAL_OK) {
            hal_message_restore(&message);
        }
    }
    return status;
}

static hal_status record_copy(hal_queue *queue, hal_range source, hal_range target)
{
    const hal_range ranges[2] = {source, target};
    const hal_action action = hal_copy_action(ranges);
    const hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? hal_record_action(&queue->recorder, &action) : status;
}

/* Through a buffer that is allocated for the write. */
static hal_status write_through_buffer(hal_queue *queue, hal_range target, const void *data)
{
    hal_buffer *staging = NULL;
    void *pointer = NULL;
    hal_status status = staging_create(queue, HAL_MEMORY_UPLOAD, target.length, &staging);
    if (status == HAL_OK) {
        status = hal_buffer_map_begin(staging, &pointer);
    }
    if (status == HAL_OK) {
        memcpy(pointer, data, target.length);
        status = hal_buffer_map_end(staging);
    }
    if (status == HAL_OK) {
        status = record_copy(queue, (hal_range){staging, 0, target.length}, target);
    }
    hal_buffer_release(staging);
    return status;
}

static hal_status write_piece(hal_queue *queue, hal_range target, const void *data)
{
    hal_range staged = {0};
    void *pointer = NULL;
    HAL_TRY(hal_staging_take(queue, target.length, &staged, &pointer));
    if (!pointer) {
        return write_through_buffer(queue, target, data);
    }
    memcpy(pointer, data, target.length);
    hal_hook_host_access(queue, &staged, HAL_ACCESS_WRITE);
    hal_status status = hal_buffer_flush(staged.buffer, staged.offset, staged.length);
    return status == HAL_OK ? record_copy(queue, staged, target) : status;
}

/* By this thread through the queue's staging memory, which stays in the processor's cache, a piece
 * after the other. */
static hal_status write_alone(hal_queue *queue, hal_range target, const char *data)
{
    const uint64_t bytes = target.length, piece = PIECE_ALONE;
    hal_status status = HAL_OK;
    for (uint64_t done = 0; status == HAL_OK && done < bytes; done += piece) {
        const uint64_t length = bytes - done < piece ? bytes - done : piece;
        const hal_range part = {target.buffer, target.offset + done, length};
        status = write_piece(queue, part, data + done);
        if (status == HAL_OK && done + length < bytes) {
            status = hal_flush_untimed(queue, NULL);
        }
    }
    return status;
}

/* A part of a transfer: its staging memory, and the copy between that and the device. */
typedef struct transfer_piece {
    hal_buffer *staging;
    void *pointer;   /* null unless it is mapped */
    hal_point point; /* zeros while the copy is not submitted */
    uint64_t offset, length;
} transfer_piece;

/* The pieces of a transfer in which helpers copy. Piece i has the staging memory i modulo
 * PIECES_IN_FLIGHT. */
typedef struct transfer {
    hal_queue *queue;
    hal_range range; /* of the device */
    char *data;
    uint64_t piece, count;
    transfer_piece pieces[PIECES_IN_FLIGHT];
    hal_copy_workers *workers;
} transfer;

/* The piece of a number. Its staging memory is allocated the first time. */
static hal_status piece_prepare(transfer *t, uint64_t number, hal_memory_kind kind,
                                transfer_piece **piece)
{
    transfer_piece *at = *piece = &t->pieces[number % PIECES_IN_FLIGHT];
    const uint64_t left = t->range.length - number * t->piece;
    at->offset = number * t->piece;
    at->length = left < t->piece ? left : t->piece;
    return at->staging ? HAL_OK : staging_create(t->queue, kind, at->length, &at->staging);
}

static hal_status piece_record(transfer *t, const transfer_piece *piece, bool writes)
{
    const hal_range staged = {piece->staging, 0, piece->length};
    const hal_range part = {t->range.buffer, t->range.offset + piece->offset, piece->length};
    return writes ? record_copy(t->queue, staged, part) : record_copy(t->queue, part, staged);
}

static hal_status piece_unmap(transfer_piece *piece)
{
    piece->pointer = NULL;
    return hal_buffer_map_end(piece->staging);
}

/* After a failure helpers may still copy. */
static void transfer_end(transfer *t)
{
    hal_copy_workers_end(t->workers);
    for (int i = 0; i < PIECES_IN_FLIGHT; i++) {
        if (t->pieces[i].pointer) {
            piece_unmap(&t->pieces[i]);
        }
        hal_buffer_release(t->pieces[i].staging);
    }
}

/* Lets helpers begin to fill a piece, when the device has read what its memory held. */
static hal_status write_piece_begin(transfer *t, uint64_t number)
{
    transfer_piece *piece;
    hal_status status = piece_prepare(t, number, HAL_MEMORY_UPLOAD, &piece);
    if (status == HAL_OK) {
        status = hal_point_wait(piece->point, HAL_WAIT_FOREVER);
    }
    if (status == HAL_OK) {
        status = hal_buffer_map_begin(piece->staging, &piece->pointer);
    }
    if (status == HAL_OK) {
        hal_copy_workers_add(t->workers, piece->pointer, t->data + piece->offset, piece->length);
    }
    return status;
}

static hal_status write_piece_end(transfer *t, uint64_t number)
{
    transfer_piece *piece = &t->pieces[number % PIECES_IN_FLIGHT];
    hal_copy_workers_finish(t->workers);
    hal_status status = piece_unmap(piece);
    if (status == HAL_OK) {
        status = piece_record(t, piece, true);
    }
    return status == HAL_OK && number + 1 < t->count ? hal_flush_untimed(t->queue, &piece->point)
                                                     : status;
}

/* Helpers fill the next piece while this thread submits the copy of one. */
static hal_status write_by_workers(transfer *t)
{
    hal_status status = write_piece_begin(t, 0);
    for (uint64_t i = 0; status == HAL_OK && i < t->count; i++) {
        status = i + 1 < t->count ? write_piece_begin(t, i + 1) : HAL_OK;
        const hal_status ended = write_piece_end(t, i);
        status = status == HAL_OK ? ended : status;
    }
    return status;
}

static hal_status write_staged(hal_queue *queue, hal_range target, const char *data)
{
    hal_copy_workers workers;
    hal_copy_workers_begin(&workers, target.length);
    if (workers.helper_count == 0) {
        return write_alone(queue, target, data);
    }
    transfer t = {
        .queue = queue, .range = target, .data = (char *)(uintptr_t)data, .workers = &workers};
    t.piece = piece_bytes(target.length);
    t.count = (target.length + t.piece - 1) / t.piece;
    const hal_status status = write_by_workers(&t);
    transfer_end(&t);
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
    hal_copy_workers workers;
    hal_copy_workers_begin(&workers, bytes);
    hal_copy_workers_copy(&workers, target, source, bytes);
    hal_copy_workers_end(&workers);
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
    if (atomic_load(&buffer->memory)->is_read_only) {
        return hal_buffer_refuse_write(buffer);
    }
    hal_copy_count(&queue->copied, bytes);
    /* A write after waits is recorded: otherwise the next point would not come after them. */
    const hal_recording *recording = queue->recorder.recording;
    const bool may_be_direct = buffer->kind != HAL_MEMORY_DOWNLOAD && recording->wait_count == 0 &&
                               !recording->fence && !queue->needs_batch;
    char *mapped = may_be_direct ? hal_buffer_idle_pointer(buffer) : NULL;
    if (mapped) {
        hal_hook_host_access(queue, &(hal_range){buffer, offset, bytes}, HAL_ACCESS_WRITE);
        copy_directly(buffer->device, mapped + offset, data, bytes);
        return hal_buffer_flush(buffer, offset, bytes);
    }
    return write_staged(queue, (hal_range){buffer, offset, bytes}, data);
}

/* Submits the copy of a piece to staging memory; that of the only one is submitted by its wait. */
static hal_status read_piece_begin(transfer *t, uint64_t number)
{
    transfer_piece *piece;
    hal_status status = piece_prepare(t, number, HAL_MEMORY_DOWNLOAD, &piece);
    if (status == HAL_OK) {
        status = piece_record(t, piece, false);
    }
    return status == HAL_OK && t->count > 1 ? hal_flush_untimed(t->queue, &piece->point) : status;
}

/* Lets helpers begin to empty a piece, when the device has filled it. */
static hal_status read_piece_arrive(transfer *t, uint64_t number)
{
    transfer_piece *piece = &t->pieces[number % PIECES_IN_FLIGHT];
    hal_status status = number + 1 == t->count ? hal_queue_wait(t->queue, HAL_WAIT_FOREVER)
                                               : hal_point_wait(piece->point, HAL_WAIT_FOREVER);
    if (status == HAL_OK) {
        status = hal_buffer_map_begin(piece->staging, &piece->pointer);
    }
    if (status == HAL_OK) {
        hal_copy_workers_add(t->workers, t->data + piece->offset, piece->pointer, piece->length);
    }
    return status;
}

static hal_status read_by_workers(transfer *t)
{
    hal_status status = HAL_OK;
    for (uint64_t i = 0; status == HAL_OK && i < t->count && i < PIECES_IN_FLIGHT; i++) {
        status = read_piece_begin(t, i);
    }
    if (status == HAL_OK) {
        status = read_piece_arrive(t, 0);
    }
    for (uint64_t i = 0; status == HAL_OK && i < t->count; i++) {
        const bool helped = t->workers->helper_count > 0 && i + 1 < t->count;
        status = helped ? read_piece_arrive(t, i + 1) : HAL_OK;
        hal_copy_workers_finish(t->workers);
        piece_unmap(&t->pieces[i % PIECES_IN_FLIGHT]);
        if (status == HAL_OK && i + PIECES_IN_FLIGHT < t->count) {
            status = read_piece_begin(t, i + PIECES_IN_FLIGHT);
        }
        if (status == HAL_OK && !helped && i + 1 < t->count) {
            status = read_piece_arrive(t, i + 1);
        }
    }
    return status;
}

/* Through staging memory; the device fills the next pieces while the host empties one. */
static hal_status read_staged(hal_queue *queue, hal_range source, char *data)
{
    hal_copy_workers workers;
    hal_copy_workers_begin(&workers, source.length);
    transfer t = {.queue = queue, .range = source, .data = data, .workers = &workers};
    t.piece = workers.helper_count > 0 ? piece_bytes(source.length) : PIECE_ALONE;
    t.count = (source.length + t.piece - 1) / t.piece;
    const hal_status status = read_by_workers(&t);
    transfer_end(&t);
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
    const bool mapped = status == HAL_OK && hal_buffer_is_mapped_kind(buffer);
    if (mapped) { /* no command will be recorded, so the waits are flushed alone */
        status = hal_flush_waits(queue, NULL);
    }
    if (status == HAL_OK && (mapped || bytes == 0)) {
        status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
    }
    if (status != HAL_OK || bytes == 0) {
        return status;
    }
    hal_copy_count(&queue->copied, bytes);
    if (mapped) {
        hal_hook_host_access(queue, &(hal_range){buffer, offset, bytes}, HAL_ACCESS_READ);
        void *pointer = NULL;
        HAL_TRY(hal_buffer_view(buffer, &pointer));
        HAL_TRY(hal_buffer_invalidate(buffer, offset, bytes));
        copy_directly(buffer->device, data, (const char *)pointer + offset, bytes);
        return HAL_OK;
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
    if (from == to) {
        return record_copy(from, source, target);
    }
    HAL_TRY(hal_flush_waits(to, &point));
    const bool is_relay = point.value == to->relay && to->relayed.timeline == &from->timeline;
    if (!is_relay) {
        HAL_TRY(hal_queue_wait_point(from, point));
    }
    HAL_TRY(record_copy(from, source, target));
    HAL_TRY(hal_flush_untimed(from, &point));
    hal_status status = HAL_OK;
    /* The target's queue keeps its device and memory until the copy has run. If hal holds the copy
     * for a third device, nothing keeps the queue, and the copy is waited for. */
    const hal_last_use copy = {&from->timeline, point.value};
    if (!hal_timeline_has_submitted(copy.timeline, copy.value) ||
        hal_submit_add_dependent(to, copy) != HAL_OK) {
        status = hal_point_wait(point, HAL_WAIT_FOREVER);
        status = status == HAL_OK ? hal_deferred_take_error(from) : status;
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
    HAL_TRY(hal_hook_enter(HAL_OBJECT_QUEUE, source_queue, "hal_queue_transfer"));
    hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, target_queue, "hal_queue_transfer");
    if (status == HAL_OK) {
        status = queue_transfer(source_queue, (hal_range){source, source_offset, bytes},
                                target_queue, (hal_range){target, target_offset, bytes});
        hal_hook_leave(HAL_OBJECT_QUEUE, target_queue, status);
    }
    return hal_hook_leave(HAL_OBJECT_QUEUE, source_queue, status);
}

/* Collectives: each is a sequence of pieces, each piece one or two steps (step.h) with the commands
 * between them. All ranks cut a collective into the same pieces. */
#include "core/flush.h"
#include "core/graph.h"
#include "core/hooks.h"
#include "core/record.h"
#include "backend.h"
#include "comm.h"
#include "ordered.h"
#include "reduce.h"
#include "step.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of all contributions together up to which every rank reduces all of them itself: one step
 * instead of two. */
#define ONE_STEP_BYTES (UINT64_C(64) << 10)
#define ONE_STEP_LINK_BYTES (UINT64_C(256) << 10) /* over a transport, where a step costs more */
/* Bytes of a contribution up to which the host copies it, and the device the result, so that a
 * reduction has whole work-groups only. */
#define PADDED_BYTES (UINT64_C(8) << 10)
#define PIECE_ALIGNMENT UINT64_C(256) /* bytes; pieces begin at multiples of it */

/* A checked collective in recording. */
typedef struct collective_plan {
    hal_comm *comm;
    hal_queue *queue;
    hal_comm_stage *stage;
    hal_mailbox_call call;
    uint64_t size;  /* of an element */
    uint64_t bytes; /* count * size */
    uint64_t since;
    uint64_t padded_stride; /* of an all_reduce in one step with whole work-groups; 0: not that */
    hal_range send, recv;   /* of exact lengths, or {0} */
} collective_plan;

/* A collective that a graph records. */
typedef struct collective_call {
    hal_graph_call call; /* must be first */
    hal_comm *comm;
    hal_collective what;
    uint64_t count;
    int has[2]; /* send, recv */
} collective_call;

static uint64_t min_u64(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static hal_range range_part(hal_range range, uint64_t offset, uint64_t bytes)
{
    return (hal_range){range.buffer, range.offset + offset, bytes};
}

/* The host's view of a range if the host can read or write the buffer without a copy, else null.
 * The batch in recording uses the memory. */
static hal_status range_map(const collective_plan *of, hal_range range, uint32_t access,
                            hal_segments *segments)
{
    hal_memory *memory = NULL;
    void *mapped = NULL;
    segments->host = NULL;
    if (!(of->comm->device->info.features & HAL_FEATURE_MAP_DEVICE)) {
        return HAL_OK;
    }
    hal_status status = hal_buffer_use(range.buffer, &of->queue->recorder, &memory);
    if (status == HAL_OK) {
        pthread_mutex_lock(&memory->uses.lock);
        status = hal_memory_map(of->comm->device, memory, &mapped);
        pthread_mutex_unlock(&memory->uses.lock);
    }
    if (status == HAL_OK) {
        hal_hook_host_access(of->queue, &range, access);
        segments->host = (uint8_t *)mapped + range.offset;
        segments->buffer = range.buffer;
        segments->memory = memory;
        segments->offset = range.offset;
    }
    return status;
}

/* The segments are in the staging buffer whose host view is given. */
static void segments_set_staged(hal_segments *segments, hal_buffer *stage, uint8_t *host)
{
    segments->host = host;
    segments->buffer = NULL;
    segments->memory = atomic_load(&stage->memory);
    segments->offset = 0;
}

/* Makes segments of a buffer readable for the host, by its own view or by copies to the outbox.
 * `out` has everything but the host's pointer; its stride is that of the buffer. */
static hal_status segments_stage_out(const collective_plan *of, hal_range range, hal_segments *out)
{
    hal_status status = range_map(of, range, HAL_ACCESS_READ, out);
    if (status != HAL_OK || out->host) {
        return status;
    }
    hal_segments staged = *out;
    segments_set_staged(&staged, of->stage->outbox, of->stage->outbox_host);
    staged.stride = out->slot_stride;
    for (uint32_t q = 0; status == HAL_OK && q < out->count; q++) {
        const uint64_t bytes = hal_segment_bytes(out, q);
        if (!out->skip_own || q != of->comm->rank) {
            status = hal_reduce_copy(of->queue, range_part(range, q * out->stride, bytes),
                                     (hal_range){of->stage->outbox, q * staged.stride, bytes});
        }
    }
    /* Segments with another stride all have the same length. */
    if (staged.stride != out->stride) {
        staged.total = out->count * staged.stride;
    }
    *out = staged;
    return status;
}

/* Records a step. The batch after its fence uses the buffers that the fence reads and writes, so
 * that the pool does not reuse one that the program releases before. */
static hal_status step_record(const collective_plan *of, const hal_step_description *step)
{
    const hal_segments *both[] = {&step->out, &step->in};
    hal_memory *memory = NULL;
    hal_status status = hal_step_record(of->comm, of->queue, step);
    for (uint32_t i = 0; status == HAL_OK && i < 2; i++) {
        if (both[i]->buffer) {
            status = hal_buffer_use(both[i]->buffer, &of->queue->recorder, &memory);
        }
    }
    return status;
}

/* Records a step that receives into the inbox. */
static hal_status step_to_inbox(const collective_plan *of, hal_step_description *step)
{
    step->call = of->call;
    step->since = of->since;
    segments_set_staged(&step->in, of->stage->inbox, of->stage->inbox_host);
    hal_status status = step_record(of, step);
    if (status == HAL_OK && step->in.count > 0) {
        const hal_range inbox = {of->stage->inbox, 0, of->comm->mailbox->slot_bytes};
        hal_hook_host_access(of->queue, &inbox, HAL_ACCESS_WRITE);
    }
    return status;
}

/* Records a step that receives into a buffer, whose segments `step->in` describes. */
static hal_status step_to_buffer(const collective_plan *of, hal_step_description *step,
                                 hal_range target)
{
    hal_segments *in = &step->in;
    const uint64_t stride = in->stride;
    const bool from_all = step->sources == HAL_STEP_ALL;
    step->call = of->call;
    step->since = of->since;
    hal_status status = range_map(of, target, HAL_ACCESS_WRITE, in);
    const bool direct = in->host != NULL;
    if (!direct) {
        segments_set_staged(in, of->stage->inbox, of->stage->inbox_host);
        in->stride = in->bytes;
        in->total = in->total > 0 ? min_u64(in->total, in->count * in->bytes) : 0;
    }
    if (status == HAL_OK) {
        status = step_record(of, step);
    }
    if (status == HAL_OK && direct) {
        return range_map(of, target, HAL_ACCESS_WRITE, in); /* written in the next batch */
    }
    for (uint32_t q = 0; status == HAL_OK && q < in->count; q++) {
        if (!from_all || q != of->comm->rank) {
            const uint64_t bytes = hal_segment_bytes(in, q);
            status =
                hal_reduce_copy(of->queue, (hal_range){of->stage->inbox, q * in->stride, bytes},
                                range_part(target, q * stride, bytes));
        }
    }
    return status;
}

/* ---- The kinds: each function records one piece of `bytes` bytes from `at` on ---- */

static hal_segments one_segment(uint64_t bytes)
{
    return (hal_segments){.count = 1, .bytes = bytes, .total = bytes};
}

static hal_status reduce_piece(const collective_plan *of, uint64_t stride, hal_range own,
                               hal_range result)
{
    const hal_range others = {of->stage->inbox, 0, of->comm->count * stride};
    return hal_reduce_record(of->comm, of->queue, of->stage, (hal_type)of->call.type,
                             of->call.reduction, others, stride / of->size, own, result,
                             own.length / of->size);
}

static uint64_t align_piece(uint64_t bytes)
{
    return (bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

/* Every rank receives and reduces everything. */
static hal_status all_reduce_small(const collective_plan *of)
{
    const uint64_t stride = of->padded_stride > 0 ? of->padded_stride : align_piece(of->bytes);
    hal_step_description step = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .keeps_own = of->padded_stride > 0,
        .out = one_segment(of->bytes),
        .in = {.count = of->comm->count,
               .stride = stride,
               .bytes = of->bytes,
               .total = of->comm->count * stride},
    };
    hal_status status = segments_stage_out(of, of->send, &step.out);
    if (status == HAL_OK) {
        status = step_to_inbox(of, &step);
    }
    if (status == HAL_OK && of->padded_stride > 0) {
        return hal_reduce_record_padded(of->comm, of->queue, of->stage, (hal_type)of->call.type,
                                        of->call.reduction, stride / of->size, of->recv,
                                        of->call.count);
    }
    return status == HAL_OK ? reduce_piece(of, stride, of->send, of->recv) : status;
}

/* Each rank reduces one chunk, then all gather the chunks. */
static hal_status all_reduce_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const uint32_t ranks = of->comm->count, rank = of->comm->rank;
    const uint64_t chunk = align_piece((bytes + ranks - 1) / ranks);
    const uint64_t begin = min_u64(rank * chunk, bytes), own = min_u64(chunk, bytes - begin);
    hal_step_description scatter = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .out = {.count = ranks,
                .stride = chunk,
                .bytes = chunk,
                .total = bytes,
                .slot_stride = chunk,
                .skip_own = true},
        .in = {.count = ranks,
               .stride = chunk,
               .bytes = own,
               .total = ranks * chunk,
               .slot_offset = rank * chunk},
    };
    hal_step_description gather = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .out = one_segment(own),
        .in = {.count = ranks, .stride = chunk, .bytes = chunk, .total = bytes},
    };
    const hal_range result = range_part(of->recv, at + begin, own);
    hal_status status = segments_stage_out(of, range_part(of->send, at, bytes), &scatter.out);
    if (status == HAL_OK) {
        status = step_to_inbox(of, &scatter);
    }
    if (status == HAL_OK) {
        status = reduce_piece(of, chunk, range_part(of->send, at + begin, own), result);
    }
    if (status == HAL_OK) {
        status = segments_stage_out(of, result, &gather.out);
    }
    return status == HAL_OK ? step_to_buffer(of, &gather, range_part(of->recv, at, bytes)) : status;
}

static hal_status all_gather_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const uint32_t ranks = of->comm->count;
    hal_step_description step = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .out = one_segment(bytes),
        .in = {.count = ranks, .stride = of->bytes, .bytes = bytes, .total = ranks * of->bytes},
    };
    hal_status status = segments_stage_out(of, range_part(of->send, at, bytes), &step.out);
    return status == HAL_OK
               ? step_to_buffer(of, &step, range_part(of->recv, at, of->recv.length - at))
               : status;
}

/* The parts of send for all ranks, as a scattered reduction or all_to_all publishes them. */
static hal_status parts_stage_out(const collective_plan *of, uint64_t at, uint64_t bytes,
                                  uint64_t slot_stride, hal_segments *out)
{
    *out = (hal_segments){.count = of->comm->count,
                          .stride = of->bytes,
                          .bytes = bytes,
                          .total = of->comm->count * of->bytes,
                          .slot_stride = slot_stride,
                          .skip_own = true};
    return segments_stage_out(of, range_part(of->send, at, of->send.length - at), out);
}

static hal_status reduce_scatter_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const uint32_t ranks = of->comm->count, rank = of->comm->rank;
    const uint64_t stride = align_piece(bytes);
    hal_step_description step = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .in = {.count = ranks,
               .stride = stride,
               .bytes = bytes,
               .total = ranks * stride,
               .slot_offset = rank * stride},
    };
    hal_status status = parts_stage_out(of, at, bytes, stride, &step.out);
    if (status == HAL_OK) {
        status = step_to_inbox(of, &step);
    }
    return status == HAL_OK
               ? reduce_piece(of, stride, range_part(of->send, rank * of->bytes + at, bytes),
                              range_part(of->recv, at, bytes))
               : status;
}

static hal_status all_to_all_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const uint32_t ranks = of->comm->count, rank = of->comm->rank;
    const uint64_t stride = align_piece(bytes);
    hal_step_description step = {
        .sources = HAL_STEP_ALL,
        .targets = HAL_STEP_ALL,
        .in = {.count = ranks,
               .stride = of->bytes,
               .bytes = bytes,
               .total = ranks * of->bytes,
               .slot_offset = rank * stride},
    };
    hal_status status = parts_stage_out(of, at, bytes, stride, &step.out);
    return status == HAL_OK
               ? step_to_buffer(of, &step, range_part(of->recv, at, of->recv.length - at))
               : status;
}

static hal_status broadcast_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const bool is_root = of->call.root == of->comm->rank;
    hal_step_description step = {.sources = is_root ? HAL_STEP_NONE : of->call.root,
                                 .targets = is_root ? HAL_STEP_ALL : HAL_STEP_NONE};
    if (!is_root) {
        step.in = one_segment(bytes);
        return step_to_buffer(of, &step, range_part(of->recv, at, bytes));
    }
    step.out = one_segment(bytes);
    hal_status status = segments_stage_out(of, range_part(of->send, at, bytes), &step.out);
    return status == HAL_OK ? step_to_inbox(of, &step) : status;
}

static hal_status reduce_to_root_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const bool is_root = of->call.root == of->comm->rank;
    const uint64_t stride = align_piece(bytes);
    const hal_range own = range_part(of->send, at, bytes);
    hal_step_description step = {.sources = is_root ? HAL_STEP_ALL : HAL_STEP_NONE,
                                 .targets = is_root ? HAL_STEP_NONE : of->call.root};
    hal_status status = HAL_OK;
    if (is_root) {
        step.in = (hal_segments){.count = of->comm->count,
                                 .stride = stride,
                                 .bytes = bytes,
                                 .total = of->comm->count * stride};
    } else {
        step.out = one_segment(bytes);
        status = segments_stage_out(of, own, &step.out);
    }
    if (status == HAL_OK) {
        status = step_to_inbox(of, &step);
    }
    return status == HAL_OK && is_root
               ? reduce_piece(of, stride, own, range_part(of->recv, at, bytes))
               : status;
}

static hal_status exchange_piece(const collective_plan *of, uint64_t at, uint64_t bytes)
{
    const bool alone = of->call.root == of->comm->rank;
    const uint32_t partner = alone ? HAL_STEP_NONE : of->call.root;
    hal_step_description step = {.sources = partner, .targets = partner};
    if (alone) {
        return step_to_inbox(of, &step);
    }
    step.out = one_segment(bytes);
    step.in = one_segment(bytes);
    hal_status status = segments_stage_out(of, range_part(of->send, at, bytes), &step.out);
    return status == HAL_OK ? step_to_buffer(of, &step, range_part(of->recv, at, bytes)) : status;
}

/* ---- Tables and checks ---- */

enum { /* sizes of send and recv: none, count, N * count */
       NOTHING,
       COUNT,
       TIMES_RANKS
};

static const struct {
    hal_status (*piece)(const collective_plan *of, uint64_t at, uint64_t bytes);
    uint8_t send, recv;                /* sizes */
    uint8_t root_sends, root_receives; /* 1: only the root */
    uint8_t reduces, has_root;
    uint8_t divides; /* 1: a slot or the inbox holds a piece for each rank */
} kinds[] = {
    [HAL_COLLECTIVE_ALL_REDUCE] = {all_reduce_piece, COUNT, COUNT, 0, 0, 1, 0, 0},
    [HAL_COLLECTIVE_ALL_GATHER] = {all_gather_piece, COUNT, TIMES_RANKS, 0, 0, 0, 0, 1},
    [HAL_COLLECTIVE_REDUCE_SCATTER] = {reduce_scatter_piece, TIMES_RANKS, COUNT, 0, 0, 1, 0, 1},
    [HAL_COLLECTIVE_BROADCAST] = {broadcast_piece, COUNT, COUNT, 1, 0, 0, 1, 0},
    [HAL_COLLECTIVE_REDUCE] = {reduce_to_root_piece, COUNT, COUNT, 0, 1, 1, 1, 1},
    [HAL_COLLECTIVE_ALL_TO_ALL] = {all_to_all_piece, TIMES_RANKS, TIMES_RANKS, 0, 0, 0, 0, 1},
    [HAL_COLLECTIVE_EXCHANGE] = {exchange_piece, COUNT, COUNT, 0, 0, 0, 1, 0},
};

/* Bytes of a piece, the same on all ranks. All_reduce needs room for the rounding of chunks. */
static uint64_t piece_bytes(const collective_plan *of)
{
    const uint64_t slot = of->comm->mailbox->slot_bytes, ranks = of->comm->count;
    const uint64_t most = kinds[of->call.kind].divides ? slot / ranks
                          : of->call.kind == HAL_COLLECTIVE_ALL_REDUCE
                              ? slot - ranks * PIECE_ALIGNMENT
                              : slot;
    return most / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
}

static hal_status check_range(const collective_plan *of, const char *argument, hal_range *range,
                              uint64_t bytes)
{
    const hal_device *device = of->comm->device;
    const hal_buffer *buffer = range->buffer;
    if (!buffer) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: %s: expected a buffer, got null", argument);
    }
    if (buffer->device != device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: %s: expected a buffer of %s:%u, the rank's device, "
                        "got \"%s\" of %s:%u",
                        argument, device->plugin->name, device->index, buffer->label,
                        buffer->device->plugin->name, buffer->device->index);
    }
    const uint64_t rest = range->offset <= buffer->bytes ? buffer->bytes - range->offset : 0;
    const uint64_t length = range->length == HAL_WHOLE ? rest : range->length;
    if (range->offset > buffer->bytes || length > rest || bytes > length) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: %s: expected at least %llu bytes within the %llu "
                        "bytes of \"%s\", got offset %llu and length %llu",
                        argument, (unsigned long long)bytes, (unsigned long long)buffer->bytes,
                        buffer->label, (unsigned long long)range->offset,
                        (unsigned long long)length);
    }
    if (range->offset % of->size != 0) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: %s: expected an offset that is a multiple of the "
                        "%llu bytes of an element, got %llu",
                        argument, (unsigned long long)of->size, (unsigned long long)range->offset);
    }
    range->length = bytes;
    return HAL_OK;
}

/* Where the own part is within send and recv. */
static void own_parts(const collective_plan *of, hal_range *sent, hal_range *received)
{
    const uint64_t begin = of->comm->rank * of->bytes;
    *sent = range_part(of->send, kinds[of->call.kind].send == TIMES_RANKS ? begin : 0, of->bytes);
    *received =
        range_part(of->recv, kinds[of->call.kind].recv == TIMES_RANKS ? begin : 0, of->bytes);
}

static hal_status check_overlap(const collective_plan *of)
{
    hal_range sent, received;
    if (of->send.buffer != of->recv.buffer || !of->send.buffer ||
        of->send.offset >= of->recv.offset + of->recv.length ||
        of->recv.offset >= of->send.offset + of->send.length) {
        return HAL_OK;
    }
    own_parts(of, &sent, &received);
    if (sent.offset == received.offset && of->call.kind != HAL_COLLECTIVE_ALL_TO_ALL &&
        of->call.kind != HAL_COLLECTIVE_EXCHANGE) {
        return HAL_OK;
    }
    return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                    "hal_queue_collective: recv: expected no overlap with send, or the same place "
                    "of the rank's part, got offsets %llu and %llu in one buffer",
                    (unsigned long long)of->recv.offset, (unsigned long long)of->send.offset);
}

static hal_status check_ranges(collective_plan *of)
{
    static const uint64_t none = 0;
    const uint64_t sizes[] = {none, of->bytes, of->comm->count * of->bytes};
    const hal_collective_kind kind = of->call.kind;
    const bool is_root = of->call.root == of->comm->rank;
    hal_status status = HAL_OK;
    if (!kinds[kind].root_sends || is_root) {
        status = check_range(of, "send", &of->send, sizes[kinds[kind].send]);
    } else {
        of->send = (hal_range){0};
    }
    const bool may_omit = kind == HAL_COLLECTIVE_BROADCAST && is_root && !of->recv.buffer;
    if (status == HAL_OK && (!kinds[kind].root_receives || is_root) && !may_omit) {
        status = check_range(of, "recv", &of->recv, sizes[kinds[kind].recv]);
    } else if (status == HAL_OK) {
        of->recv = (hal_range){0};
    }
    return status == HAL_OK ? check_overlap(of) : status;
}

/* Fills `of`. Errors: INVALID_ARGUMENT, UNSUPPORTED; the communicator continues. */
static hal_status collective_check(hal_queue *queue, hal_comm *comm, const hal_collective *what,
                                   hal_range send, hal_range recv, uint64_t count,
                                   collective_plan *of)
{
    const uint64_t size = what->type < HAL_TYPE_COUNT ? hal_type_size(what->type) : 0;
    if (queue->timeline.device != comm->device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: queue: expected one of %s:%u, the rank's device, "
                        "got one of %s:%u",
                        comm->device->plugin->name, comm->device->index,
                        queue->timeline.device->plugin->name, queue->timeline.device->index);
    }
    if (what->kind > HAL_COLLECTIVE_EXCHANGE || size == 0 || what->reduction > HAL_REDUCE_MAX) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: collective: expected a kind up to %u, a reduction "
                        "up to %u and a type of hal, got %u, %u and %u",
                        HAL_COLLECTIVE_EXCHANGE, HAL_REDUCE_MAX, what->kind, what->reduction,
                        what->type);
    }
    if (count > UINT64_MAX / size / comm->count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: count: expected fewer elements, got %llu",
                        (unsigned long long)count);
    }
    *of = (collective_plan){.comm = comm,
                            .queue = queue,
                            .size = size,
                            .bytes = count * size,
                            .call = {.kind = what->kind, .type = what->type, .count = count},
                            .send = send,
                            .recv = recv};
    of->call.reduction = kinds[what->kind].reduces ? what->reduction : 0;
    of->call.root = kinds[what->kind].has_root ? what->root : 0;
    of->call.any_order = what->any_order != 0;
    if (of->call.root >= comm->count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: root: expected a rank below %u, got %u", comm->count,
                        of->call.root);
    }
    return check_ranges(of);
}

/* The rank's own part, where it only has to be copied. */
static hal_status copy_own(const collective_plan *of)
{
    hal_range sent, received;
    const hal_collective_kind kind = of->call.kind;
    const bool is_alone = of->comm->count == 1;
    const bool is_root = of->call.root == of->comm->rank;
    own_parts(of, &sent, &received);
    if (!of->send.buffer || !of->recv.buffer ||
        !(is_alone || kind == HAL_COLLECTIVE_ALL_GATHER || kind == HAL_COLLECTIVE_ALL_TO_ALL ||
          ((kind == HAL_COLLECTIVE_BROADCAST || kind == HAL_COLLECTIVE_EXCHANGE) && is_root))) {
        return HAL_OK;
    }
    return hal_reduce_copy(of->queue, sent, received);
}

/* Whether every rank receives all contributions at once; equally on all ranks. */
static bool is_one_step(const collective_plan *of)
{
    const uint64_t most = of->comm->mailbox->transport ? ONE_STEP_LINK_BYTES : ONE_STEP_BYTES;
    return of->call.kind == HAL_COLLECTIVE_ALL_REDUCE &&
           of->comm->count * align_piece(of->bytes) <= most;
}

/* The stride of contributions in the inbox if whole work-groups are worth their copies, else 0. */
static uint64_t padded_stride(const collective_plan *of)
{
    const hal_device *device = of->comm->device;
    const uint64_t padded = hal_reduce_padded_count(device, of->call.count);
    const uint64_t stride = align_piece(padded * of->size);
    return (device->info.features & HAL_FEATURE_MAP_DEVICE) && is_one_step(of) &&
                   of->bytes <= PADDED_BYTES && padded != of->call.count &&
                   of->comm->count * stride <= of->comm->mailbox->slot_bytes
               ? stride
               : 0;
}

static hal_status collective_record(const collective_plan *of)
{
    hal_status status = copy_own(of);
    if (of->comm->count == 1) {
        return status;
    }
    if (is_one_step(of)) {
        status = status == HAL_OK ? all_reduce_small(of) : status;
    } else {
        const uint64_t most = piece_bytes(of);
        for (uint64_t at = 0; status == HAL_OK && (at < of->bytes || at == 0); at += most) {
            status = kinds[of->call.kind].piece(of, at, min_u64(most, of->bytes - at));
        }
    }
    /* The last fence has to be among the held batches, which are polled. */
    return status == HAL_OK ? hal_flush_waits(of->queue, NULL) : status;
}

/* A backend copies the rank's own part, except for a rank that exchanges with itself. */
static hal_status backend_record(const collective_plan *of)
{
    hal_status status = hal_backend_compare(of->comm, of->queue, &of->call, of->since);
    if (status == HAL_OK && of->call.kind == HAL_COLLECTIVE_EXCHANGE) {
        status = copy_own(of);
    }
    if (hal_backend_varies(of->comm, &of->call)) {
        atomic_store(&of->comm->has_varied, 1);
    }
    return status == HAL_OK
               ? hal_backend_record(of->comm, of->queue, &of->call, of->send, of->recv, of->since)
               : status;
}

/* The backend moves what hal adds. */
static hal_status ordered_record(const collective_plan *of)
{
    hal_status status = hal_backend_compare(of->comm, of->queue, &of->call, of->since);
    if (status == HAL_OK) {
        status = hal_ordered_record(of->comm, of->queue, &of->call, of->send, of->recv, of->since,
                                    HAL_ORDERED_LIMITS);
    }
    return status == HAL_OK ? hal_flush_waits(of->queue, NULL) : status;
}

/* Records a checked collective; an error ends the communicator on all ranks. */
static hal_status collective_run(collective_plan *of)
{
    hal_status (*record)(const collective_plan *of) = collective_record;
    HAL_TRY(hal_comm_check(of->comm, "hal_queue_collective"));
    if (hal_backend_takes(of->comm, &of->call)) {
        record = backend_record;
    } else if (of->comm->backend && of->call.count > 0) {
        record = ordered_record;
    }
    if (of->comm->count > 1 && record != backend_record) {
        if (kinds[of->call.kind].reduces) {
            of->padded_stride = record == collective_record ? padded_stride(of) : 0;
            HAL_TRY(hal_reduce_prepare(of->comm, (hal_type)of->call.type, of->call.reduction,
                                       of->padded_stride > 0));
        }
        HAL_TRY(hal_comm_stage_for(of->comm, of->queue, &of->stage));
    }
    of->since = atomic_load(&of->queue->timeline.submitted) + 1;
    const hal_status status = record(of);
    return status == HAL_OK ? HAL_OK : hal_comm_fail(of->comm, status);
}

static hal_status call_record(hal_graph_call *call, hal_queue *queue, const hal_range *ranges)
{
    const collective_call *what = (const collective_call *)call;
    collective_plan of;
    hal_status status =
        collective_check(queue, what->comm, &what->what, what->has[0] ? ranges[0] : (hal_range){0},
                         what->has[1] ? ranges[what->has[0]] : (hal_range){0}, what->count, &of);
    return status == HAL_OK ? collective_run(&of) : status;
}

static void call_destroy(hal_graph_call *call)
{
    collective_call *what = (collective_call *)call;
    hal_comm_unref(what->comm);
    free(what);
}

/* Makes the collective part of the graph that the queue records. */
static hal_status graph_append(const collective_plan *of, const hal_collective *what)
{
    static const uint8_t access[2] = {HAL_ACCESS_READ, HAL_ACCESS_WRITE};
    collective_call *call = malloc(sizeof *call);
    if (!call) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "hal_queue_collective: no host memory");
    }
    *call = (collective_call){.call = {.record = call_record, .destroy = call_destroy},
                              .comm = of->comm,
                              .what = *what,
                              .count = of->call.count,
                              .has = {of->send.buffer != NULL, of->recv.buffer != NULL}};
    hal_range ranges[2] = {of->send, of->recv};
    ranges[0] = call->has[0] ? ranges[0] : of->recv;
    const hal_action action = {.kind = HAL_COMMAND_COPY,
                               .range_count = (uint16_t)(call->has[0] + call->has[1]),
                               .grid = {1, 1, 1},
                               .ranges = ranges,
                               .access = call->has[0] ? access : access + 1,
                               .call = &call->call};
    hal_comm_ref(of->comm);
    const hal_status status = hal_graph_append(of->queue->graph, &action);
    if (status != HAL_OK) {
        call_destroy(&call->call);
    }
    return status;
}

static hal_status queue_collective(hal_queue *queue, hal_comm *comm, const hal_collective *what,
                                   hal_range send, hal_range recv, uint64_t count)
{
    collective_plan of;
    if (!queue || !comm || !what) {
        return hal_null_argument("hal_queue_collective", !queue ? "queue"
                                                         : comm ? "collective"
                                                                : "comm");
    }
    HAL_TRY(hal_device_check(queue->timeline.device, "hal_queue_collective"));
    if (send.buffer) {
        HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, send.buffer, "hal_queue_collective"));
    }
    if (recv.buffer) {
        HAL_TRY(hal_hook_use(HAL_OBJECT_BUFFER, recv.buffer, "hal_queue_collective"));
    }
    HAL_TRY(collective_check(queue, comm, what, send, recv, count, &of));
    return queue->graph ? graph_append(&of, what) : collective_run(&of);
}

hal_status hal_queue_collective(hal_queue *queue, hal_comm *comm, const hal_collective *collective,
                                hal_range send, hal_range recv, uint64_t count)
{
    const hal_status status = hal_hook_enter(HAL_OBJECT_QUEUE, queue, "hal_queue_collective");
    return status == HAL_OK
               ? hal_hook_leave(HAL_OBJECT_QUEUE, queue,
                                queue_collective(queue, comm, collective, send, recv, count))
               : status;
}

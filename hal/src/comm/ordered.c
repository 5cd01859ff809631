/* Reductions in the order of the ranks on a backend, see ordered.h. Two forms: gathered, where each
 * rank receives all contributions and adds all elements, and scattered, where it receives those of
 * its chunk, adds them, and all gather the chunks (R. Rabenseifner, "Optimization of Collective
 * Reduction Operations", 2004). */
#include "ordered.h"

#include "backend.h"
#include "reduce.h"

#include "base/status.h"

#define CHUNK_ALIGNMENT UINT64_C(256) /* bytes */

typedef struct ordered_plan {
    hal_comm *comm;
    hal_queue *queue;
    hal_comm_stage *stage;
    const hal_mailbox_call *call;
    hal_range send, recv;
    uint64_t since;
    uint64_t size;  /* of an element */
    uint64_t bytes; /* count * size */
    const hal_ordered_limits *limits;
} ordered_plan;

static hal_range range_part(hal_range range, uint64_t offset, uint64_t bytes)
{
    return (hal_range){range.buffer, range.offset + offset, bytes};
}

static hal_status scratch_range(const ordered_plan *of, uint32_t which, uint64_t bytes,
                                hal_range *range)
{
    *range = (hal_range){.length = bytes};
    return hal_comm_scratch(of->comm, of->stage, which, bytes, &range->buffer);
}

/* Every rank keeps the result, but of a reduce only the root does. */
static bool has_result(const ordered_plan *of)
{
    return of->call->kind != HAL_COLLECTIVE_REDUCE || of->call->root == of->comm->rank;
}

/* Moves `bytes` bytes of each rank, or for each. */
static hal_status backend_move(const ordered_plan *of, hal_collective_kind kind, uint64_t bytes,
                               hal_range send, hal_range recv)
{
    const hal_mailbox_call call = {.kind = kind, .type = of->call->type, .count = bytes / of->size};
    return hal_backend_record(of->comm, of->queue, &call, send, recv, of->since);
}

/* `received` has a contribution of own.length bytes for each rank. */
static hal_status contributions_add(const ordered_plan *of, hal_range received, hal_range own,
                                    hal_range result)
{
    const uint64_t count = own.length / of->size;
    return hal_reduce_record(of->comm, of->queue, of->stage, (hal_type)of->call->type,
                             of->call->reduction, received, count, own, result, count);
}

static hal_status gathered_piece(const ordered_plan *of, uint64_t at, uint64_t bytes)
{
    const hal_range own = range_part(of->send, at, bytes);
    hal_range received;
    hal_status status = scratch_range(of, HAL_SCRATCH_RECEIVED, of->comm->count * bytes, &received);
    if (status == HAL_OK) {
        status = backend_move(of, HAL_COLLECTIVE_ALL_GATHER, bytes, own, received);
    }
    return status == HAL_OK && has_result(of)
               ? contributions_add(of, received, own, range_part(of->recv, at, bytes))
               : status;
}

/* `bytes` is a multiple of the number of ranks. */
static hal_status scattered_piece(const ordered_plan *of, uint64_t at, uint64_t bytes)
{
    const uint64_t chunk = bytes / of->comm->count, begin = of->comm->rank * chunk;
    const hal_range sent = range_part(of->send, at, bytes);
    hal_range received, result = range_part(of->recv, at, bytes);
    hal_status status = scratch_range(of, HAL_SCRATCH_RECEIVED, bytes, &received);
    if (status == HAL_OK && !has_result(of)) {
        status = scratch_range(of, HAL_SCRATCH_SENT, bytes, &result);
    }
    if (status == HAL_OK) {
        status = backend_move(of, HAL_COLLECTIVE_ALL_TO_ALL, chunk, sent, received);
    }
    const hal_range own = range_part(result, begin, chunk);
    if (status == HAL_OK) {
        status = contributions_add(of, received, range_part(sent, begin, chunk), own);
    }
    return status == HAL_OK ? backend_move(of, HAL_COLLECTIVE_ALL_GATHER, chunk, own, result)
                            : status;
}

/* An all_reduce or reduce. */
static hal_status whole_reduce(const ordered_plan *of)
{
    const uint64_t ranks = of->comm->count, parts = ranks * CHUNK_ALIGNMENT;
    const uint64_t most_gathered = of->limits->received_bytes / parts * CHUNK_ALIGNMENT;
    const uint64_t most_scattered = of->limits->received_bytes / parts * parts;
    hal_status status = HAL_OK;
    for (uint64_t at = 0; status == HAL_OK && at < of->bytes;) {
        const uint64_t rest = of->bytes - at;
        const bool gathers =
            ranks == 2 || ranks * rest <= of->limits->gathered_bytes || rest < parts;
        const uint64_t most = gathers ? most_gathered : most_scattered;
        uint64_t bytes = rest < most ? rest : most;
        bytes = gathers ? bytes : bytes / parts * parts;
        status = gathers ? gathered_piece(of, at, bytes) : scattered_piece(of, at, bytes);
        at += bytes;
    }
    return status;
}

/* The parts of all ranks at `at`, which the backend sends, side by side. */
static hal_status parts_pack(const ordered_plan *of, uint64_t at, uint64_t bytes, hal_range *packed)
{
    hal_status status = scratch_range(of, HAL_SCRATCH_SENT, of->comm->count * bytes, packed);
    for (uint32_t q = 0; status == HAL_OK && q < of->comm->count; q++) {
        status = hal_reduce_copy(of->queue, range_part(of->send, q * of->bytes + at, bytes),
                                 range_part(*packed, q * bytes, bytes));
    }
    return status;
}

static hal_status scatter_piece(const ordered_plan *of, uint64_t at, uint64_t bytes)
{
    hal_range received, sent = of->send;
    hal_status status = scratch_range(of, HAL_SCRATCH_RECEIVED, of->comm->count * bytes, &received);
    if (status == HAL_OK && bytes < of->bytes) {
        status = parts_pack(of, at, bytes, &sent);
    }
    if (status == HAL_OK) {
        status = backend_move(of, HAL_COLLECTIVE_ALL_TO_ALL, bytes, sent, received);
    }
    return status == HAL_OK
               ? contributions_add(of, received,
                                   range_part(of->send, of->comm->rank * of->bytes + at, bytes),
                                   range_part(of->recv, at, bytes))
               : status;
}

static hal_status reduce_scatter(const ordered_plan *of)
{
    const uint64_t parts = of->comm->count * CHUNK_ALIGNMENT;
    const uint64_t most = of->limits->received_bytes / parts * CHUNK_ALIGNMENT;
    hal_status status = HAL_OK;
    for (uint64_t at = 0; status == HAL_OK && at < of->bytes; at += most) {
        const uint64_t rest = of->bytes - at;
        status = scatter_piece(of, at, rest < most ? rest : most);
    }
    return status;
}

hal_status hal_ordered_record(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *call,
                              hal_range send, hal_range recv, uint64_t since,
                              const hal_ordered_limits *limits)
{
    ordered_plan of = {.comm = comm,
                       .queue = queue,
                       .call = call,
                       .send = send,
                       .recv = recv,
                       .since = since,
                       .limits = limits,
                       .size = hal_type_size((hal_type)call->type)};
    of.bytes = call->count * of.size;
    HAL_TRY(hal_comm_stage_for(comm, queue, &of.stage));
    return call->kind == HAL_COLLECTIVE_REDUCE_SCATTER ? reduce_scatter(&of) : whole_reduce(&of);
}

/* Ranks of communicators, whose collectives NCCL runs. Entries of the plugin's table; queue.c
 * submits collectives.
 *
 * The ranks of a communicator in this process form a clique. NCCL takes the calls of one thread for
 * several devices as one unit (ncclGroupStart, ncclGroupEnd), so a collective waits in its rank
 * until all ranks of the clique have one: then the thread that has the last one runs the round.
 * Communicators are blocking: after the unit its kernels are on the streams, the points of the
 * batches are recorded, and the queues may go on. A unit does not wait for other processes, since
 * all ranks were connected when the communicators were created.
 *
 * Two communicators on one device may each hold a part of it and wait for the rest. So all rounds
 * of the process begin under one lock, in the same order on all devices, and a device runs one
 * after the other: a stream waits for the last collective of its device if another queue has it. */
#include "collectives/comm.h"

#include "collectives/comm_lifecycle.h"
#include "collectives/peer_sum.h"
#include "memory.h"
#include "point.h"

#include <kit/fork.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOCAL = 128 }; /* ranks of a clique; hal has as many in a communicator */

typedef struct clique {
    struct clique *next;
    hal_plugin_comm_id id;
    hal_plugin_comm *ranks; /* a list */
    uint32_t rank_count;
    bool is_incomplete; /* a rank has left: no round begins any more */
    hal_status failure; /* OK, or why the communicator has ended */
    char message[320];
    bool is_asked, adds;       /* whether the devices can add by themselves is known; they can */
    cuda_peer_sum *sum;        /* null until it is needed */
    nccl_comm left[MAX_LOCAL]; /* of ranks that were destroyed before others of the clique */
    uint32_t left_count;
} clique;

struct hal_plugin_comm {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_comm *next; /* of the clique */
    hal_plugin_device *device;
    clique *clique;
    cuda_creation *creation; /* of the communicator; null: it exists, or has ended */
    nccl_comm comm;          /* null: none, or ended */
    uint32_t rank, count;
    /* The collective that has not begun. */
    hal_plugin_queue *queue; /* null: none */
    uint64_t value;
    hal_plugin_collective call;
    cuda_address send, recv;
    uint64_t send_bytes, recv_bytes;
};

static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static clique *cliques;

static void cliques_reset(void)
{
    cliques = NULL;
}
KIT_FORK_RESET(comms_lock, cliques_reset)

/* ---- Failures; the caller holds the lock ---- */

/* Records the point of a rank's collective, whose kernels are on the stream or never will be. */
static hal_status rank_release_queue(hal_plugin_comm *rank)
{
    hal_plugin_queue *queue = rank->queue;
    rank->queue = NULL;
    hal_status status = cuda_context_push(rank->device);
    if (status == HAL_OK) {
        status = cuda_point_submit(queue, rank->value);
        cuda_context_pop();
    }
    rank->device->last_collective = (hal_plugin_wait){.queue = queue, .value = rank->value};
    atomic_store(&queue->deferred, 0);
    return status;
}

static void creation_end(hal_plugin_comm *rank)
{
    if (rank->creation) {
        cuda_creation_leave(rank->creation);
        rank->creation = NULL;
    }
}

/* Ends all ranks of the clique. The first reason is kept. */
static void clique_end(clique *of, hal_status status, const char *message)
{
    nccl_comm comms[MAX_LOCAL];
    uint32_t count = 0;
    if (of->failure != HAL_OK) {
        return;
    }
    of->failure = status;
    snprintf(of->message, sizeof of->message, "%s", message);
    for (hal_plugin_comm *rank = of->ranks; rank != NULL; rank = rank->next) {
        if (rank->comm) {
            comms[count++] = rank->comm;
        }
        rank->comm = NULL;
        creation_end(rank);
    }
    for (uint32_t i = 0; i < of->left_count; i++) {
        comms[count++] = of->left[i];
    }
    of->left_count = 0;
    if (of->sum) {
        cuda_peer_sum_abort(of->sum);
    }
    cuda_communicators_end(comms, count, cuda_nccl()->ncclCommAbort);
    for (hal_plugin_comm *rank = of->ranks; rank != NULL; rank = rank->next) {
        if (rank->queue) {
            rank_release_queue(rank);
        }
    }
}

/* Ends the clique for a result of NCCL; `comm` may be null. */
static void clique_fail(clique *of, nccl_comm comm, nccl_result result, const char *attempt)
{
    const nccl_library *nccl = cuda_nccl();
    const char *last = nccl->ncclGetLastError(comm);
    char message[320];
    snprintf(message, sizeof message, "cuda: NCCL: %s: %s%s%.160s", attempt,
             nccl->ncclGetErrorString(result), last && *last != 0 ? ": " : "",
             last != NULL ? last : "");
    clique_end(of,
               result == NCCL_SYSTEM_ERROR || result == NCCL_REMOTE_ERROR ? HAL_ERROR_IO
                                                                          : HAL_ERROR_INTERNAL,
               message);
}

/* ---- Rounds; the caller holds the lock ---- */

/* The parts of all_to_all as messages; that to the rank itself is one as well. */
static nccl_result all_to_all_call(const hal_plugin_comm *rank)
{
    const nccl_library *nccl = cuda_nccl();
    const uint64_t bytes = rank->send_bytes / rank->count;
    nccl_result result = NCCL_SUCCESS;
    for (uint32_t q = 0; q < rank->count && result == NCCL_SUCCESS; q++) {
        result = nccl->ncclSend((const void *)(uintptr_t)(rank->send + q * bytes), bytes, NCCL_U8,
                                (int)q, rank->comm, rank->queue->stream);
        if (result == NCCL_SUCCESS) {
            result = nccl->ncclRecv((void *)(uintptr_t)(rank->recv + q * bytes), bytes, NCCL_U8,
                                    (int)q, rank->comm, rank->queue->stream);
        }
    }
    return result;
}

/* A rank that exchanges with itself has nothing to do: hal has copied. */
static nccl_result exchange_call(const hal_plugin_comm *rank)
{
    const nccl_library *nccl = cuda_nccl();
    const int root = (int)rank->call.root;
    if (rank->call.root == rank->rank) {
        return NCCL_SUCCESS;
    }
    const nccl_result result = nccl->ncclSend((const void *)(uintptr_t)rank->send, rank->send_bytes,
                                              NCCL_U8, root, rank->comm, rank->queue->stream);
    return result != NCCL_SUCCESS ? result
                                  : nccl->ncclRecv((void *)(uintptr_t)rank->recv, rank->recv_bytes,
                                                   NCCL_U8, root, rank->comm, rank->queue->stream);
}

/* Kinds that only move data move bytes, so that they take all types. */
static nccl_result rank_call(const hal_plugin_comm *rank)
{
    const nccl_library *nccl = cuda_nccl();
    const hal_plugin_collective *call = &rank->call;
    const cuda_stream stream = rank->queue->stream;
    const void *send = (const void *)(uintptr_t)rank->send;
    void *recv = (void *)(uintptr_t)rank->recv;
    const int type = cuda_nccl_type(call->type), root = (int)call->root;
    const int reduction = cuda_nccl_reduction(call->reduction);
    switch (call->kind) {
    case HAL_COLLECTIVE_ALL_REDUCE:
        return nccl->ncclAllReduce(send, recv, call->count, type, reduction, rank->comm, stream);
    case HAL_COLLECTIVE_REDUCE_SCATTER:
        return nccl->ncclReduceScatter(send, recv, call->count, type, reduction, rank->comm,
                                       stream);
    case HAL_COLLECTIVE_REDUCE:
        return nccl->ncclReduce(send, recv, call->count, type, reduction, root, rank->comm, stream);
    case HAL_COLLECTIVE_ALL_GATHER:
        return nccl->ncclAllGather(send, recv, rank->send_bytes, NCCL_U8, rank->comm, stream);
    case HAL_COLLECTIVE_BROADCAST:
        return nccl->ncclBroadcast(send, rank->recv_bytes > 0 ? recv : (void *)(uintptr_t)send,
                                   rank->recv_bytes > 0 ? rank->recv_bytes : rank->send_bytes,
                                   NCCL_U8, root, rank->comm, stream);
    case HAL_COLLECTIVE_ALL_TO_ALL:
        return all_to_all_call(rank);
    default:
        return exchange_call(rank);
    }
}

/* The rank's queue continues after the last collective of the device. The context is current. */
static hal_status rank_follow(const hal_plugin_comm *rank)
{
    const hal_plugin_wait *last = &rank->device->last_collective;
    return last->queue && last->queue != rank->queue ? cuda_point_follow(rank->queue, last, 1)
                                                     : HAL_OK;
}

/* Makes a rank's call of NCCL. */
static nccl_result rank_begin(hal_plugin_comm *rank, hal_status *status)
{
    nccl_result result = NCCL_SUCCESS;
    *status = cuda_context_push(rank->device);
    if (*status == HAL_OK) {
        *status = rank_follow(rank);
        result = *status == HAL_OK ? rank_call(rank) : result;
        cuda_context_pop();
    }
    return result;
}

/* Whether the ranks add by writes to each other's memory (peer_sum.h); hal relies on its order. */
static bool round_is_sum(clique *of)
{
    const hal_plugin_comm *rank = of->ranks;
    const hal_plugin_collective *call = &rank->call;
    if (!of->is_asked) {
        of->is_asked = true;
        of->adds = of->rank_count == rank->count && rank->count <= CUDA_PEER_RANKS &&
                   cuda_peer_sum_is_offered();
    }
    return of->adds && call->kind == HAL_COLLECTIVE_ALL_REDUCE &&
           (call->reduction == HAL_REDUCE_SUM || call->reduction == HAL_REDUCE_MEAN) &&
           (cuda_peer_types & HAL_TYPE_BIT(call->type)) != 0 && rank->send_bytes <= CUDA_PEER_BYTES;
}

static hal_status sum_create(clique *of)
{
    hal_plugin_device *devices[CUDA_PEER_RANKS];
    for (hal_plugin_comm *rank = of->ranks; rank != NULL; rank = rank->next) {
        devices[rank->rank] = rank->device;
    }
    return cuda_peer_sum_create(devices, of->rank_count, &of->sum);
}

static hal_status round_sum(clique *of)
{
    const hal_plugin_collective *call = &of->ranks->call;
    cuda_peer_part parts[CUDA_PEER_RANKS];
    hal_status status = !of->sum ? sum_create(of) : HAL_OK;
    for (hal_plugin_comm *rank = of->ranks; rank && status == HAL_OK; rank = rank->next) {
        parts[rank->rank] =
            (cuda_peer_part){rank->device, rank->queue->stream, rank->send, rank->recv};
        status = cuda_context_push(rank->device);
        if (status == HAL_OK) {
            status = rank_follow(rank);
            cuda_context_pop();
        }
    }
    return status == HAL_OK ? cuda_peer_sum_run(of->sum, parts, call->type,
                                                call->reduction == HAL_REDUCE_MEAN, call->count)
                            : status;
}

/* The calls of all ranks of the clique; false: the clique has failed. */
static bool round_call(clique *of)
{
    const nccl_library *nccl = cuda_nccl();
    nccl_comm failed = NULL;
    hal_status status = HAL_OK;
    if (round_is_sum(of)) {
        status = round_sum(of);
        if (status != HAL_OK) {
            clique_end(of, status, "cuda: the kernels of a sum could not be launched");
        }
        return status == HAL_OK;
    }
    nccl_result result = nccl->ncclGroupStart();
    if (result != NCCL_SUCCESS) {
        clique_fail(of, NULL, result, "beginning a unit of calls");
        return false;
    }
    for (hal_plugin_comm *rank = of->ranks; rank && result == NCCL_SUCCESS && status == HAL_OK;
         rank = rank->next) {
        result = rank_begin(rank, &status);
        failed = rank->comm;
    }
    const nccl_result end = nccl->ncclGroupEnd();
    if (status != HAL_OK) {
        clique_end(of, status,
                   "cuda: a queue could not wait for the last collective of the device");
    } else if (result != NCCL_SUCCESS || end != NCCL_SUCCESS) {
        failed = result != NCCL_SUCCESS ? failed : of->ranks->comm;
        clique_fail(of, failed, result != NCCL_SUCCESS ? result : end, "starting a collective");
    }
    return of->failure == HAL_OK;
}

/* Afterwards the kernels of all ranks are on their streams. */
static void round_run(clique *of)
{
    hal_status status = HAL_OK;
    if (!round_call(of)) {
        return;
    }
    for (hal_plugin_comm *rank = of->ranks; rank != NULL; rank = rank->next) {
        const hal_status one = rank_release_queue(rank);
        status = status == HAL_OK ? one : status;
    }
    if (status != HAL_OK) {
        clique_end(of, status, "cuda: the point of a collective could not be recorded");
    }
}

/* Runs a round if all ranks have a collective. */
static void clique_advance(clique *of)
{
    if (of->failure != HAL_OK || of->is_incomplete) {
        return;
    }
    for (const hal_plugin_comm *rank = of->ranks; rank != NULL; rank = rank->next) {
        if (!rank->queue) {
            return;
        }
    }
    round_run(of);
}

static hal_status fail_ended(const clique *of)
{
    return kit_fail(of->failure, "%s", of->message);
}

hal_status cuda_comm_submit(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value)
{
    const hal_command *command = &batch->commands[0];
    const hal_binding *bindings = batch->bindings + command->binding_first;
    hal_plugin_collective call;
    memcpy(&call, batch->scalars + command->scalar_first, sizeof call);
    hal_plugin_comm *rank = call.comm;
    hal_status status = HAL_OK;
    pthread_mutex_lock(&comms_lock);
    if (rank->clique->failure != HAL_OK) {
        status = fail_ended(rank->clique);
    } else {
        rank->call = call;
        rank->send = bindings[0].length > 0 ? bindings[0].memory->address + bindings[0].offset : 0;
        rank->recv = bindings[1].length > 0 ? bindings[1].memory->address + bindings[1].offset : 0;
        rank->send_bytes = bindings[0].length;
        rank->recv_bytes = bindings[1].length;
        rank->queue = queue;
        rank->value = value;
        atomic_store(&queue->deferred, value);
        clique_advance(rank->clique);
    }
    pthread_mutex_unlock(&comms_lock);
    return status;
}

void cuda_comm_forget_queue(hal_plugin_queue *queue)
{
    pthread_mutex_lock(&comms_lock);
    if (queue->device->last_collective.queue == queue) {
        queue->device->last_collective = (hal_plugin_wait){.queue = NULL};
    }
    pthread_mutex_unlock(&comms_lock);
}

/* ---- Creation ---- */

/* The bytes of an id after NCCL's are 0. */
hal_status cuda_comm_id(hal_plugin_instance *instance, hal_plugin_comm_id *id)
{
    nccl_id made;
    (void)instance;
    HAL_TRY(cuda_nccl_load());
    const nccl_result result = cuda_nccl()->ncclGetUniqueId(&made);
    if (result != NCCL_SUCCESS) {
        return kit_fail(HAL_ERROR_IO, "cuda: NCCL: making an id: %s",
                        cuda_nccl()->ncclGetErrorString(result));
    }
    memset(id, 0, sizeof *id);
    memcpy(id->bytes, made.bytes, sizeof made.bytes);
    return HAL_OK;
}

/* The clique of an id, made for its first rank; null without memory. */
static clique *clique_for(const hal_plugin_comm_id *id)
{
    clique *found = cliques;
    while (found && memcmp(&found->id, id, sizeof *id) != 0) {
        found = found->next;
    }
    if (!found && (found = calloc(1, sizeof *found)) != NULL) {
        found->id = *id;
        found->next = cliques;
        cliques = found;
    }
    return found;
}

static void clique_remove(clique *of)
{
    clique **at = &cliques;
    while (*at != of) {
        at = &(*at)->next;
    }
    *at = of->next;
    free(of);
}

/* Takes a rank out of its clique. The last one ends the communicators of all. */
static void rank_leave(hal_plugin_comm *rank)
{
    clique *of = rank->clique;
    hal_plugin_comm **at = &of->ranks;
    while (*at != rank) {
        at = &(*at)->next;
    }
    *at = rank->next;
    of->rank_count--;
    of->is_incomplete = true;
    creation_end(rank);
    cuda_peer_sum_destroy(of->sum); /* while all of its devices are open */
    of->sum = NULL;
    if (rank->comm) {
        of->left[of->left_count++] = rank->comm;
    }
    if (of->rank_count == 0) {
        cuda_communicators_end(of->left, of->left_count, cuda_nccl()->ncclCommDestroy);
        clique_remove(of);
    }
    free(rank);
}

static hal_status communicator_begin(hal_plugin_comm *rank)
{
    nccl_id id;
    memcpy(id.bytes, rank->clique->id.bytes, sizeof id.bytes);
    hal_status status = cuda_context_push(rank->device);
    if (status == HAL_OK) {
        status = cuda_creation_begin(rank->device, &id, rank->rank, rank->count, &rank->creation);
        cuda_context_pop();
    }
    return status;
}

hal_status cuda_comm_create(hal_plugin_device *device, const hal_plugin_comm_id *id, uint32_t rank,
                            uint32_t count, hal_plugin_comm **comm)
{
    *comm = NULL;
    HAL_TRY(cuda_nccl_load());
    hal_plugin_comm *made = calloc(1, sizeof *made);
    pthread_mutex_lock(&comms_lock);
    clique *of = made ? clique_for(id) : NULL;
    if (!of || of->rank_count == MAX_LOCAL) {
        pthread_mutex_unlock(&comms_lock);
        free(made);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a communicator");
    }
    *made = (hal_plugin_comm){
        .next = of->ranks, .device = device, .clique = of, .rank = rank, .count = count};
    of->ranks = made;
    of->rank_count++;
    hal_status status = communicator_begin(made);
    if (status != HAL_OK) {
        rank_leave(made);
        made = NULL;
    }
    pthread_mutex_unlock(&comms_lock);
    *comm = made;
    return status;
}

/* ---- Entries for communicators that exist ---- */

/* Takes the communicator if it is created. */
static void creation_poll(hal_plugin_comm *rank)
{
    const nccl_result result = cuda_creation_poll(rank->creation, &rank->comm);
    if (result == NCCL_SUCCESS) {
        creation_end(rank);
    } else if (result != NCCL_IN_PROGRESS) {
        clique_fail(rank->clique, NULL, result, "creating a communicator");
    }
}

/* NCCL reports errors of running collectives with the communicator. */
static void communicator_check(hal_plugin_comm *rank)
{
    nccl_result now = NCCL_SUCCESS;
    const nccl_result asked = cuda_nccl()->ncclCommGetAsyncError(rank->comm, &now);
    now = asked != NCCL_SUCCESS ? asked : now;
    if (now != NCCL_SUCCESS && now != NCCL_IN_PROGRESS) {
        clique_fail(rank->clique, rank->comm, now, "running a collective");
    }
}

hal_status cuda_comm_poll(hal_plugin_comm *comm)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&comms_lock);
    if (comm->queue) {
        clique_advance(comm->clique);
    } else if (comm->clique->failure == HAL_OK && comm->creation) {
        creation_poll(comm);
    } else if (comm->clique->failure == HAL_OK) {
        communicator_check(comm);
    }
    if (comm->clique->failure != HAL_OK) {
        status = fail_ended(comm->clique);
    } else if (comm->queue || comm->creation) {
        status = HAL_ERROR_TIMEOUT;
    }
    pthread_mutex_unlock(&comms_lock);
    return status;
}

void cuda_comm_abort(hal_plugin_comm *comm)
{
    pthread_mutex_lock(&comms_lock);
    clique_end(comm->clique, HAL_ERROR_INVALID_STATE, "cuda: NCCL: the communicator was aborted");
    pthread_mutex_unlock(&comms_lock);
}

void cuda_comm_destroy(hal_plugin_comm *comm)
{
    if (comm) {
        pthread_mutex_lock(&comms_lock);
        rank_leave(comm);
        pthread_mutex_unlock(&comms_lock);
    }
}

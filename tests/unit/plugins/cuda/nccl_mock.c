/* The library of nccl_mock.h. The plugin finds it where it looks for the real one. */
#include "nccl_mock.h"

#include "cuda_mock.h"

#include <cuda/collectives/nccl.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* Every function as the plugin declares it; what does not agree does not compile. */
#define SYMBOL(name, parameters) EXPORT nccl_result name parameters;
#define TEXT(name, parameters) EXPORT const char *name parameters;
#include <cuda/collectives/nccl_symbols.inl>
#undef SYMBOL
#undef TEXT

enum { RANKS = 8, QUEUED = 64, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

/* The ranks that were created with one id. */
typedef struct world {
    char id[128];
    int count, joined;
    int has_failed; /* a rank could not be created: the others fail, too */
    nccl_comm comms[RANKS];
} world;

struct ncclComm {
    world *of;
    int rank;
    int is_created;
    const void *unit; /* that its calls are in, the address of the thread's depth; null: none */
    int is_ended;     /* the unit waits for those of other ranks */
    nccl_mock_call queue[QUEUED];
    int queued;
};

extern EXPORT nccl_mock nccl_mock_state;
nccl_mock nccl_mock_state = {.version = 22703};
static nccl_mock *const mock = &nccl_mock_state;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static world worlds[64];
static int world_count;
static unsigned char last_id;
static _Thread_local int depth;       /* of units */
static _Thread_local int unit_failed; /* a call in the unit failed */

static nccl_result misuse(const char *what)
{
    if (mock->misuses++ == 0) {
        snprintf(mock->misuse, sizeof mock->misuse, "%s", what);
    }
    return INVALID_USAGE;
}

static int fails(int function)
{
    return mock->fails_in[function] > 0 && --mock->fails_in[function] == 0;
}

static void *driver_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

/* The state of the driver that the plugin uses. */
static cuda_mock *driver(void)
{
    static cuda_mock none;
    cuda_mock *found = driver_symbol(CUDA_MOCK_SYMBOL);
    return found ? found : &none;
}

static int has_context(void)
{
    int (*depth_of)(void) = NULL;
    void *symbol = driver_symbol(CUDA_MOCK_DEPTH_SYMBOL);
    memcpy(&depth_of, &symbol, sizeof symbol);
    return depth_of && depth_of() > 0;
}

/* Lets other threads in for a moment; the caller holds the lock. */
static void step_aside(void)
{
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){0, 200000}, NULL);
    pthread_mutex_lock(&lock);
}

nccl_result ncclGetVersion(int *version)
{
    *version = mock->version;
    return 0;
}

const char *ncclGetErrorString(nccl_result result)
{
    static char text[64];
    snprintf(text, sizeof text, "result %d of the mock", result);
    return text;
}

const char *ncclGetLastError(nccl_comm comm)
{
    return "last words of the mock";
}

nccl_result ncclGetUniqueId(nccl_id *id)
{
    if (fails(NCCL_MOCK_ID)) {
        return mock->fail_with;
    }
    memset(id->bytes, ++last_id, sizeof id->bytes);
    return 0;
}

static world *world_of(const nccl_id *id, int count)
{
    for (int i = 0; i < world_count; i++) {
        if (memcmp(worlds[i].id, id->bytes, sizeof id->bytes) == 0) {
            return &worlds[i];
        }
    }
    world *made = &worlds[world_count++ % (int)(sizeof worlds / sizeof worlds[0])];
    world_count = world_count < (int)(sizeof worlds / sizeof worlds[0]) ? world_count : 0;
    *made = (world){.count = count};
    memcpy(made->id, id->bytes, sizeof id->bytes);
    return made;
}

static void comm_free(nccl_comm comm)
{
    comm->of->comms[comm->rank] = NULL;
    mock->live--;
    free(comm);
}

nccl_result ncclCommInitRankConfig(nccl_comm *comm, int count, nccl_id id, int rank,
                                   nccl_config *config)
{
    nccl_result result = NCCL_SUCCESS;
    pthread_mutex_lock(&lock);
    world *of = world_of(&id, count);
    if (fails(NCCL_MOCK_INIT)) {
        result = mock->fail_with;
    } else if (config->size != 24 || config->magic != 0xcafebeef || config->version != 21400 ||
               config->is_blocking != 1 || config->padding != INT_MIN) {
        result = misuse("a configuration that is not that of 2.14 with blocking");
    } else if (rank < 0 || rank >= count || count > RANKS || of->comms[rank]) {
        result = misuse("a rank twice or out of range");
    } else if (!has_context()) {
        result = misuse("a communicator without a current context");
    } else {
        *comm = calloc(1, sizeof **comm);
        (*comm)->of = of;
        (*comm)->rank = rank;
        of->comms[rank] = *comm;
        of->joined++;
        mock->live++;
        while (mock->hold || (of->joined < of->count && !of->has_failed)) {
            step_aside();
        }
        (*comm)->is_created = 1;
        if (of->has_failed) {
            comm_free(*comm);
            *comm = NULL;
            result = mock->fail_with;
        }
    }
    of->has_failed |= result != NCCL_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

nccl_result ncclCommGetAsyncError(nccl_comm comm, nccl_result *result)
{
    pthread_mutex_lock(&lock);
    const int failed = fails(NCCL_MOCK_ASK);
    *result = mock->async_error;
    if (!comm->is_created) {
        misuse("a question to a communicator that is not created");
    }
    pthread_mutex_unlock(&lock);
    return failed ? mock->fail_with : 0;
}

nccl_result ncclCommAbort(nccl_comm comm)
{
    while (mock->holds_abort) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    pthread_mutex_lock(&lock);
    if (depth == 0) {
        misuse("an abort outside of a unit");
    }
    mock->aborted++;
    driver()->hold = 0; /* kernels that wait for other ranks end */
    comm_free(comm);
    pthread_mutex_unlock(&lock);
    return 0;
}

nccl_result ncclCommDestroy(nccl_comm comm)
{
    pthread_mutex_lock(&lock);
    if (!comm->is_created || comm->queued > 0) {
        misuse("the end of a communicator that is in use");
    }
    mock->destroyed++;
    comm_free(comm);
    pthread_mutex_unlock(&lock);
    return 0;
}

nccl_result ncclGroupStart(void)
{
    pthread_mutex_lock(&lock);
    const int failed = fails(NCCL_MOCK_START);
    depth += !failed;
    pthread_mutex_unlock(&lock);
    return failed ? mock->fail_with : 0;
}

/* ---- What the calls do ---- */

static size_t size_of(int type)
{
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < (int)sizeof sizes ? sizes[type] : 0;
}

static double combine(double one, double other, int reduction)
{
    return reduction == NCCL_MIN   ? (one < other ? one : other)
           : reduction == NCCL_MAX ? (one > other ? one : other)
                                   : one + other;
}

static double element_get(const void *data, int type, size_t at)
{
    switch (type) {
    case NCCL_I8:
        return ((const int8_t *)data)[at];
    case NCCL_U8:
        return ((const uint8_t *)data)[at];
    case NCCL_I32:
        return ((const int32_t *)data)[at];
    case NCCL_U32:
        return ((const uint32_t *)data)[at];
    case NCCL_I64:
        return (double)((const int64_t *)data)[at];
    case NCCL_U64:
        return (double)((const uint64_t *)data)[at];
    case NCCL_F32:
        return (double)((const float *)data)[at];
    default:
        return ((const double *)data)[at];
    }
}

static void element_set(void *data, int type, size_t at, double value)
{
    switch (type) {
    case NCCL_I8:
        ((int8_t *)data)[at] = (int8_t)value;
        break;
    case NCCL_U8:
        ((uint8_t *)data)[at] = (uint8_t)value;
        break;
    case NCCL_I32:
        ((int32_t *)data)[at] = (int32_t)value;
        break;
    case NCCL_U32:
        ((uint32_t *)data)[at] = (uint32_t)value;
        break;
    case NCCL_I64:
        ((int64_t *)data)[at] = (int64_t)value;
        break;
    case NCCL_U64:
        ((uint64_t *)data)[at] = (uint64_t)value;
        break;
    case NCCL_F32:
        ((float *)data)[at] = (float)value;
        break;
    default:
        ((double *)data)[at] = value;
    }
}

/* Elements `from` to `from + count` of the reduction go to `recv`; in the reverse order of the
 * ranks, which NCCL may use as well as any other. */
static void reduce(const world *of, size_t from, size_t count, double *result)
{
    const nccl_mock_call *call = &of->comms[0]->queue[0];
    for (size_t i = 0; i < count; i++) {
        double value = element_get(of->comms[of->count - 1]->queue[0].send, call->type, from + i);
        for (int q = of->count - 2; q >= 0; q--) {
            value = combine(value, element_get(of->comms[q]->queue[0].send, call->type, from + i),
                            call->reduction);
        }
        result[i] = call->reduction == NCCL_MEAN ? value / of->count : value;
    }
}

static void reduction_run(const world *of)
{
    const nccl_mock_call *first = &of->comms[0]->queue[0];
    const size_t count = first->count;
    const int scatters = first->kind == NCCL_MOCK_REDUCE_SCATTER;
    double *all = calloc(count * (scatters ? (size_t)of->count : 1) + 1, sizeof *all);
    reduce(of, 0, count * (scatters ? (size_t)of->count : 1), all);
    for (int q = 0; q < of->count; q++) {
        const nccl_mock_call *call = &of->comms[q]->queue[0];
        if (call->kind != NCCL_MOCK_REDUCE || q == call->root) {
            for (size_t i = 0; i < count; i++) {
                element_set(call->recv, call->type, i, all[(scatters ? (size_t)q * count : 0) + i]);
            }
        }
    }
    free(all);
}

static void gather_run(const world *of)
{
    const size_t bytes = of->comms[0]->queue[0].count * size_of(of->comms[0]->queue[0].type);
    for (int p = 0; p < of->count; p++) {
        for (int q = 0; q < of->count; q++) {
            memmove((char *)of->comms[q]->queue[0].recv + (size_t)p * bytes,
                    of->comms[p]->queue[0].send, bytes);
        }
    }
}

static void broadcast_run(const world *of)
{
    const nccl_mock_call *root = &of->comms[of->comms[0]->queue[0].root]->queue[0];
    for (int q = 0; q < of->count; q++) {
        memmove(of->comms[q]->queue[0].recv, root->send, root->count * size_of(root->type));
    }
}

/* Calls of a kind with a partner in the units of a rank that have ended. */
static int messages_count(const world *of, int rank, int kind, int partner)
{
    int count = 0;
    const nccl_comm comm = of->comms[rank];
    for (int i = 0; comm && comm->is_ended && i < comm->queued; i++) {
        count += comm->queue[i].kind == kind && comm->queue[i].root == partner;
    }
    return count;
}

/* Whether each message has its other side. */
static int messages_are_paired(const world *of)
{
    int paired = 1;
    for (int p = 0; p < of->count; p++) {
        for (int q = 0; q < of->count; q++) {
            paired &= messages_count(of, p, NCCL_MOCK_SEND, q) ==
                      messages_count(of, q, NCCL_MOCK_RECV, p);
        }
    }
    return paired;
}

/* Moves each send to the first receive of its target from its rank. */
static void messages_run(const world *of)
{
    for (int p = 0; p < of->count; p++) {
        for (int i = 0; of->comms[p] && of->comms[p]->is_ended && i < of->comms[p]->queued; i++) {
            const nccl_mock_call *send = &of->comms[p]->queue[i];
            nccl_mock_call *recv = NULL;
            if (send->kind != NCCL_MOCK_SEND) {
                continue;
            }
            const nccl_comm target = of->comms[send->root];
            for (int j = 0; j < target->queued && !recv; j++) {
                nccl_mock_call *one = &target->queue[j];
                recv = one->kind == NCCL_MOCK_RECV && one->root == p && one->recv ? one : NULL;
            }
            if (!recv || recv->count != send->count) {
                misuse("messages of different lengths");
                return;
            }
            memmove(recv->recv, send->send, send->count * size_of(send->type));
            recv->recv = NULL;
        }
    }
}

static void collective_run(const world *of)
{
    const nccl_mock_call *first = &of->comms[0]->queue[0];
    for (int q = 0; q < of->count; q++) {
        const nccl_mock_call *call = &of->comms[q]->queue[0];
        if (of->comms[q]->queued != 1 || call->kind != first->kind || call->count != first->count ||
            call->type != first->type || call->reduction != first->reduction ||
            call->root != first->root) {
            misuse("ranks that call different collectives");
            return;
        }
    }
    switch (first->kind) {
    case NCCL_MOCK_ALL_GATHER:
        gather_run(of);
        break;
    case NCCL_MOCK_BROADCAST:
        broadcast_run(of);
        break;
    default:
        reduction_run(of);
    }
}

/* Whether the ranks have called all that the units that have ended need; a rank may have called
 * nothing in a unit of messages. */
static int world_is_ready(const world *of)
{
    int has_messages = 0, has_collectives = 0, missing = 0;
    for (int q = 0; q < of->count; q++) {
        const nccl_comm comm = of->comms[q];
        const int is_ended = comm && comm->is_ended && comm->queued > 0;
        has_messages |= is_ended && comm->queue[0].kind >= NCCL_MOCK_SEND;
        has_collectives |= is_ended && comm->queue[0].kind < NCCL_MOCK_SEND;
        missing += !is_ended;
    }
    return has_collectives ? !missing : has_messages && messages_are_paired(of);
}

static void world_run(world *of)
{
    int has_messages = 0;
    for (int q = 0; q < of->count; q++) {
        const nccl_comm comm = of->comms[q];
        has_messages |= comm && comm->is_ended && comm->queue[0].kind >= NCCL_MOCK_SEND;
    }
    if (has_messages) {
        messages_run(of);
    } else {
        collective_run(of);
    }
    for (int q = 0; q < of->count; q++) {
        if (of->comms[q] && of->comms[q]->is_ended) {
            of->comms[q]->queued = 0;
            of->comms[q]->unit = NULL;
            of->comms[q]->is_ended = 0;
        }
    }
}

/* Whether the world has calls of this thread's unit. */
static int world_has_unit(const world *of)
{
    int has_unit = 0;
    for (int q = 0; q < of->count; q++) {
        has_unit |= of->comms[q] && of->comms[q]->unit == &depth;
    }
    return has_unit;
}

/* Waits for the other ranks of a world, which call in units of other threads. */
static void unit_wait(world *of)
{
    for (int tries = 0; world_has_unit(of); tries++) {
        if (world_is_ready(of)) {
            world_run(of);
        } else if (tries == 50000) {
            misuse("a unit without a call of each rank");
            return;
        } else {
            step_aside();
        }
    }
}

nccl_result ncclGroupEnd(void)
{
    int has_calls = 0;
    pthread_mutex_lock(&lock);
    if (depth == 0) {
        misuse("the end of a unit that did not begin");
    }
    depth--;
    const int failed = fails(NCCL_MOCK_END) || unit_failed;
    unit_failed = 0;
    for (int w = 0; w < world_count; w++) {
        for (int q = 0; q < worlds[w].count; q++) {
            const nccl_comm comm = worlds[w].comms[q];
            if (comm && comm->unit == &depth) {
                has_calls = 1;
                comm->is_ended = !failed;
                comm->unit = failed ? NULL : comm->unit;
                comm->queued = failed ? 0 : comm->queued;
            }
        }
    }
    for (int w = 0; w < world_count && !failed; w++) {
        unit_wait(&worlds[w]);
    }
    mock->units += (uint32_t)has_calls;
    mock->ends++;
    pthread_mutex_unlock(&lock);
    return failed ? mock->fail_with : NCCL_SUCCESS;
}

static nccl_result call_add(nccl_comm comm, nccl_mock_call call)
{
    nccl_result result = NCCL_SUCCESS;
    pthread_mutex_lock(&lock);
    call.rank = comm->rank;
    if (fails(NCCL_MOCK_CALL)) {
        result = mock->fail_with;
        unit_failed = 1;
    } else if (depth == 0) {
        result = misuse("a call outside of a unit");
    } else if (!comm->is_created || comm->is_ended) {
        result = misuse("a call of a communicator that is in progress");
    } else if (call.type < 0 || call.type > NCCL_BF16 || call.count == 0 || !call.stream) {
        result = misuse("wrong arguments of a call");
    } else {
        comm->unit = &depth;
        comm->queue[comm->queued++] = call;
        mock->calls[mock->call_count++ % NCCL_MOCK_CALLS] = call;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

nccl_result ncclAllReduce(const void *send, void *recv, size_t count, int type, int reduction,
                          nccl_comm comm, cuda_stream stream)
{
    return call_add(comm, (nccl_mock_call){NCCL_MOCK_ALL_REDUCE, 0, send, recv, count, type,
                                           reduction, 0, stream});
}

nccl_result ncclReduceScatter(const void *send, void *recv, size_t count, int type, int reduction,
                              nccl_comm comm, cuda_stream stream)
{
    return call_add(comm, (nccl_mock_call){NCCL_MOCK_REDUCE_SCATTER, 0, send, recv, count, type,
                                           reduction, 0, stream});
}

nccl_result ncclReduce(const void *send, void *recv, size_t count, int type, int reduction,
                       int root, nccl_comm comm, cuda_stream stream)
{
    return call_add(comm, (nccl_mock_call){NCCL_MOCK_REDUCE, 0, send, recv, count, type, reduction,
                                           root, stream});
}

nccl_result ncclAllGather(const void *send, void *recv, size_t count, int type, nccl_comm comm,
                          cuda_stream stream)
{
    return call_add(
        comm, (nccl_mock_call){NCCL_MOCK_ALL_GATHER, 0, send, recv, count, type, 0, 0, stream});
}

nccl_result ncclBroadcast(const void *send, void *recv, size_t count, int type, int root,
                          nccl_comm comm, cuda_stream stream)
{
    return call_add(
        comm, (nccl_mock_call){NCCL_MOCK_BROADCAST, 0, send, recv, count, type, 0, root, stream});
}

nccl_result ncclSend(const void *data, size_t count, int type, int peer, nccl_comm comm,
                     cuda_stream stream)
{
    return call_add(comm,
                    (nccl_mock_call){NCCL_MOCK_SEND, 0, data, NULL, count, type, 0, peer, stream});
}

nccl_result ncclRecv(void *data, size_t count, int type, int peer, nccl_comm comm,
                     cuda_stream stream)
{
    return call_add(comm,
                    (nccl_mock_call){NCCL_MOCK_RECV, 0, NULL, data, count, type, 0, peer, stream});
}

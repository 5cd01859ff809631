/* The library of nccl_mock.h. The plugin finds it where it looks for the real one. */
#include "nccl_mock.h"

#include "cuda_mock.h"

#include <cuda/nccl.h>
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
#include <cuda/nccl_symbols.inl>
#undef SYMBOL
#undef TEXT

enum { RANKS = 8, QUEUED = 64, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

/* The ranks that were created with one id. */
typedef struct world {
    char id[128];
    int count, joined;
    nccl_comm comms[RANKS];
} world;

struct ncclComm {
    world *of;
    int rank;
    int is_working;
    int questions; /* until the work that it has begun is done */
    int in_unit;   /* has calls in the unit */
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

/* The state of the driver that the plugin uses. */
static cuda_mock *driver(void)
{
    static cuda_mock none;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    cuda_mock *found = library ? dlsym(library, CUDA_MOCK_SYMBOL) : NULL;
    return found ? found : &none;
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

nccl_result ncclCommInitRankConfig(nccl_comm *comm, int count, nccl_id id, int rank,
                                   nccl_config *config)
{
    nccl_result result = NCCL_IN_PROGRESS;
    pthread_mutex_lock(&lock);
    world *of = world_of(&id, count);
    if (fails(NCCL_MOCK_INIT)) {
        result = mock->fail_with;
    } else if (config->size != 24 || config->magic != 0xcafebeef || config->version != 21400 ||
               config->is_blocking != 0 || config->padding != INT_MIN) {
        result = misuse("a configuration that is not that of 2.14 without blocking");
    } else if (rank < 0 || rank >= count || count > RANKS || of->comms[rank] != NULL) {
        result = misuse("a rank twice or out of range");
    } else if (driver()->contexts == 0) {
        result = misuse("a communicator without a current context");
    } else {
        *comm = calloc(1, sizeof **comm);
        (*comm)->of = of;
        (*comm)->rank = rank;
        (*comm)->is_working = 1;
        (*comm)->questions = mock->delay;
        of->comms[rank] = *comm;
        of->joined++;
        mock->live++;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static nccl_result state_of(nccl_comm comm)
{
    if (mock->async_error) {
        return mock->async_error;
    }
    comm->is_working = comm->is_working &&
                       (mock->hold || comm->of->joined < comm->of->count || comm->questions > 0);
    return comm->is_working ? NCCL_IN_PROGRESS : NCCL_SUCCESS;
}

nccl_result ncclCommGetAsyncError(nccl_comm comm, nccl_result *result)
{
    pthread_mutex_lock(&lock);
    const int failed = fails(NCCL_MOCK_ASK);
    *result = state_of(comm);
    comm->questions -= comm->questions > 0;
    pthread_mutex_unlock(&lock);
    return failed ? mock->fail_with : 0;
}

static void comm_free(nccl_comm comm)
{
    comm->of->comms[comm->rank] = NULL;
    mock->live--;
    free(comm);
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
    if (state_of(comm) != NCCL_SUCCESS || comm->queued > 0) {
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

/* Pairs each send with the first receive of its target from its rank. */
static int messages_run(const world *of)
{
    for (int p = 0; p < of->count; p++) {
        for (int i = 0; i < of->comms[p]->queued; i++) {
            const nccl_mock_call *send = &of->comms[p]->queue[i];
            nccl_mock_call *recv = NULL;
            if (send->kind != NCCL_MOCK_SEND) {
                continue;
            }
            const nccl_comm target = of->comms[send->root];
            for (int j = 0; j < target->queued && recv == NULL; j++) {
                nccl_mock_call *one = &target->queue[j];
                recv = one->kind == NCCL_MOCK_RECV && one->root == p && one->recv ? one : NULL;
            }
            if (recv == NULL || recv->count != send->count) {
                misuse("a message without its other side");
                return 0;
            }
            memmove(recv->recv, send->send, send->count * size_of(send->type));
            recv->recv = NULL;
        }
    }
    return 1;
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

/* Runs what the ranks have called if all have; a rank may have called nothing in a unit of
 * messages. */
static void world_run(const world *of)
{
    int has_messages = 0, missing = 0;
    for (int q = 0; q < of->count; q++) {
        missing += of->comms[q] == NULL;
        has_messages |= of->comms[q] && of->comms[q]->queued > 0 &&
                        of->comms[q]->queue[0].kind >= NCCL_MOCK_SEND;
    }
    for (int q = 0; q < of->count && !missing; q++) {
        missing += !has_messages && of->comms[q]->queued == 0;
    }
    if (missing) {
        misuse("a unit without a call of each rank");
        return;
    }
    if (has_messages) {
        messages_run(of);
    } else {
        collective_run(of);
    }
}

nccl_result ncclGroupEnd(void)
{
    nccl_result result = NCCL_SUCCESS;
    int has_calls = 0;
    pthread_mutex_lock(&lock);
    if (depth == 0) {
        misuse("the end of a unit that did not begin");
    }
    depth--;
    const int failed = fails(NCCL_MOCK_END) || unit_failed;
    unit_failed = 0;
    for (int w = 0; w < world_count; w++) {
        int used = 0;
        for (int q = 0; q < worlds[w].count; q++) {
            used |= worlds[w].comms[q] && worlds[w].comms[q]->in_unit;
        }
        if (used && !failed) {
            world_run(&worlds[w]);
            result = mock->hold || mock->delay > 0 ? NCCL_IN_PROGRESS : NCCL_SUCCESS;
        }
        for (int q = 0; q < worlds[w].count && used; q++) {
            if (worlds[w].comms[q]) {
                worlds[w].comms[q]->queued = 0;
                worlds[w].comms[q]->in_unit = 0;
                worlds[w].comms[q]->questions = mock->delay;
                worlds[w].comms[q]->is_working = 1;
            }
        }
        has_calls |= used;
    }
    mock->units += (uint32_t)has_calls;
    mock->ends++;
    pthread_mutex_unlock(&lock);
    return failed ? mock->fail_with : result;
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
    } else if (state_of(comm) != NCCL_SUCCESS) {
        result = misuse("a call of a communicator that is in progress");
    } else if (call.type < 0 || call.type > NCCL_BF16 || call.count == 0 || call.stream == NULL) {
        result = misuse("wrong arguments of a call");
    } else {
        comm->in_unit = 1;
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

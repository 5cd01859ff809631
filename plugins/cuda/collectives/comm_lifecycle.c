/* Threads that create and end communicators, see collectives/comm_lifecycle.h. */
#include "collectives/comm_lifecycle.h"

#include "device.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_ENDED = 128
}; /* communicators that end at once; hal has as many ranks in a communicator
                           * */

static const uint64_t max_end_ns = 3000000000; /* for the end of communicators */

/* ---- Creation ---- */

struct cuda_creation {
    pthread_mutex_t lock; /* of what follows */
    bool is_done;
    bool is_left; /* the thread frees the creation */
    nccl_result result;
    nccl_comm comm;
    /* Of the thread, until it is done. */
    cuda_context context;
    nccl_id id;
    uint32_t rank, count;
    cuda_address bytes; /* a byte to each rank, a byte from each */
    cuda_stream stream;
};

/* The device's context is current. */
static void creation_free(cuda_creation *of)
{
    if (of->stream) {
        cuda_functions()->cuStreamDestroy_v2(of->stream);
    }
    if (of->bytes != 0) {
        cuda_functions()->cuMemFree_v2(of->bytes);
    }
    pthread_mutex_destroy(&of->lock);
    free(of);
}

static bool creation_is_left(cuda_creation *of)
{
    pthread_mutex_lock(&of->lock);
    const bool is_left = of->is_left;
    pthread_mutex_unlock(&of->lock);
    return is_left;
}

static nccl_result creation_init(cuda_creation *of, nccl_comm *comm)
{
    nccl_config config = {.size = sizeof config,
                          .magic = NCCL_CONFIG_MAGIC,
                          .version = NCCL_CONFIG_VERSION,
                          .is_blocking = 1,
                          .padding = INT_MIN};
    return cuda_nccl()->ncclCommInitRankConfig(comm, (int)of->count, of->id, (int)of->rank,
                                               &config);
}

/* NCCL connects two ranks at their first message, which waits for the other one; later units do
 * not wait. */
static nccl_result messages_send(const cuda_creation *of, nccl_comm comm)
{
    const nccl_library *nccl = cuda_nccl();
    nccl_result result = nccl->ncclGroupStart();
    if (result != NCCL_SUCCESS) {
        return result;
    }
    for (uint32_t q = 0; q < of->count && result == NCCL_SUCCESS; q++) {
        const cuda_address sent = of->bytes + q, received = of->bytes + of->count + q;
        result =
            nccl->ncclSend((const void *)(uintptr_t)sent, 1, NCCL_U8, (int)q, comm, of->stream);
        if (result == NCCL_SUCCESS) {
            result =
                nccl->ncclRecv((void *)(uintptr_t)received, 1, NCCL_U8, (int)q, comm, of->stream);
        }
    }
    const nccl_result end = nccl->ncclGroupEnd();
    return result != NCCL_SUCCESS ? result : end;
}

/* Waits for the messages while the communicator is wanted. */
static nccl_result messages_await(cuda_creation *of)
{
    const struct timespec pause = {0, 50000};
    cuda_result result = cuda_functions()->cuStreamQuery(of->stream);
    while (result == CUDA_NOT_READY && !creation_is_left(of)) {
        nanosleep(&pause, NULL);
        result = cuda_functions()->cuStreamQuery(of->stream);
    }
    return result == 0 ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

/* No other thread uses the communicator. */
static void comm_abort(nccl_comm comm)
{
    cuda_nccl()->ncclGroupStart();
    cuda_nccl()->ncclCommAbort(comm);
    cuda_nccl()->ncclGroupEnd();
}

static void *creation_run(void *argument)
{
    cuda_creation *of = argument;
    nccl_comm comm = NULL;
    nccl_result result = NCCL_SYSTEM_ERROR;
    const bool has_context = cuda_functions()->cuCtxPushCurrent_v2(of->context) == 0;
    if (has_context) {
        result = creation_init(of, &comm);
        result = result == NCCL_SUCCESS ? messages_send(of, comm) : result;
        result = result == NCCL_SUCCESS ? messages_await(of) : result;
    }
    pthread_mutex_lock(&of->lock);
    const bool is_left = of->is_left;
    const bool is_wanted = !is_left && result == NCCL_SUCCESS;
    of->result = result;
    of->comm = is_wanted ? comm : NULL;
    of->is_done = !is_left; /* and the owner may free it */
    pthread_mutex_unlock(&of->lock);
    if (comm && !is_wanted) {
        comm_abort(comm);
    }
    if (is_left) {
        creation_free(of);
    }
    if (has_context) {
        cuda_context_pop();
    }
    return NULL;
}

hal_status cuda_creation_begin(hal_plugin_device *device, const nccl_id *id, uint32_t rank,
                               uint32_t count, cuda_creation **creation)
{
    pthread_t thread;
    cuda_creation *of = calloc(1, sizeof *of);
    hal_status status = HAL_OK;
    if (!of) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a communicator");
    }
    *of = (cuda_creation){.context = device->context, .id = *id, .rank = rank, .count = count};
    pthread_mutex_init(&of->lock, NULL);
    status = cuda_check(cuda_functions()->cuStreamCreate(&of->stream, CUDA_STREAM_NON_BLOCKING),
                        "creating a stream");
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuMemAlloc_v2(&of->bytes, 2 * (size_t)count),
                            "memory of a communicator's first messages");
    }
    if (status == HAL_OK && pthread_create(&thread, NULL, creation_run, of) != 0) {
        status = kit_fail(HAL_ERROR_OUT_OF_MEMORY,
                          "cuda: the system has no thread that creates a communicator");
    }
    if (status != HAL_OK) {
        creation_free(of);
        return status;
    }
    pthread_detach(thread);
    *creation = of;
    return HAL_OK;
}

nccl_result cuda_creation_poll(cuda_creation *of, nccl_comm *comm)
{
    pthread_mutex_lock(&of->lock);
    const nccl_result result = of->is_done ? of->result : NCCL_IN_PROGRESS;
    *comm = of->comm;
    pthread_mutex_unlock(&of->lock);
    return result;
}

void cuda_creation_leave(cuda_creation *of)
{
    pthread_mutex_lock(&of->lock);
    const bool is_done = of->is_done;
    of->is_left = true;
    pthread_mutex_unlock(&of->lock);
    if (is_done && cuda_functions()->cuCtxPushCurrent_v2(of->context) == 0) {
        creation_free(of);
        cuda_context_pop();
    }
}

/* ---- The end of communicators ---- */

/* Communicators that a thread ends, since NCCL may wait there for ever. */
typedef struct ending {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done, is_left; /* left: the thread frees it */
    nccl_result (*end)(nccl_comm comm);
    uint32_t count;
    nccl_comm comms[MAX_ENDED];
} ending;

static void ending_free(ending *of)
{
    pthread_cond_destroy(&of->done);
    pthread_mutex_destroy(&of->lock);
    free(of);
}

/* In one unit, so that no communicator is waited for before all know of the end. */
static void *ending_run(void *argument)
{
    ending *of = argument;
    cuda_nccl()->ncclGroupStart();
    for (uint32_t i = 0; i < of->count; i++) {
        of->end(of->comms[i]);
    }
    cuda_nccl()->ncclGroupEnd();
    pthread_mutex_lock(&of->lock);
    of->is_done = true;
    const bool is_left = of->is_left;
    pthread_cond_signal(&of->done);
    pthread_mutex_unlock(&of->lock);
    if (is_left) {
        ending_free(of);
    }
    return NULL;
}

/* Waits for the thread up to the limit. */
static void ending_await(ending *of)
{
    struct timespec limit;
    int result = 0;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += (time_t)(max_end_ns / 1000000000);
    pthread_mutex_lock(&of->lock);
    while (!of->is_done && result == 0) {
        result = pthread_cond_timedwait(&of->done, &of->lock, &limit);
    }
    of->is_left = !of->is_done;
    const bool is_left = of->is_left;
    pthread_mutex_unlock(&of->lock);
    if (is_left) {
        kit_log(HAL_LOG_WARN,
                "cuda: NCCL has not ended a communicator within 3 s; its memory stays "
                "allocated");
    } else {
        ending_free(of);
    }
}

void cuda_communicators_end(const nccl_comm *comms, uint32_t count,
                            nccl_result (*end)(nccl_comm comm))
{
    pthread_condattr_t attributes;
    pthread_t thread;
    ending *of = count > 0 ? calloc(1, sizeof *of) : NULL;
    if (!of) {
        return; /* without memory the communicators stay */
    }
    of->end = end;
    of->count = count;
    memcpy(of->comms, comms, count * sizeof *comms);
    pthread_mutex_init(&of->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&of->done, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&thread, NULL, ending_run, of) != 0) {
        ending_run(of);
    } else {
        pthread_detach(thread);
    }
    ending_await(of);
}

/* NCCL without hal. The types repeat the library's documented interface, so that the build needs
 * none of it. Communicators are blocking, as most programs use them. */
#include "peers/raw/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/library.h"
#include "peers/raw/cuda_calls.h"

enum { MOST_RANKS = 64, F32 = 7, SUM = 0 };

typedef struct nccl_calls {
    int (*init_all)(void **comms, int count, const int *devices);
    int (*destroy)(void *comm);
    int (*start)(void);
    int (*end)(void);
    int (*all_reduce)(const void *send, void *recv, size_t count, int type, int reduction,
                      void *comm, void *stream);
    int (*reduce_scatter)(const void *send, void *recv, size_t count, int type, int reduction,
                          void *comm, void *stream);
    int (*reduce)(const void *send, void *recv, size_t count, int type, int reduction, int root,
                  void *comm, void *stream);
    int (*all_gather)(const void *send, void *recv, size_t count, int type, void *comm,
                      void *stream);
    int (*broadcast)(const void *send, void *recv, size_t count, int type, int root, void *comm,
                     void *stream);
    int (*send)(const void *data, size_t count, int type, int peer, void *comm, void *stream);
    int (*recv)(void *data, size_t count, int type, int peer, void *comm, void *stream);
} nccl_calls;

struct raw_collectives {
    nccl_calls nccl;
    uint32_t ranks, kind;
    uint64_t count;
    cuda_calls cuda[MOST_RANKS];
    void *comms[MOST_RANKS];
    uint64_t send[MOST_RANKS], recv[MOST_RANKS];
    char message[128]; /* of the first failure */
};

static bool well(raw_collectives *raw, int code, const char *call)
{
    if (code != 0 && raw->message[0] == 0) {
        snprintf(raw->message, sizeof raw->message, "%s: expected success, got %d", call, code);
    }
    return code == 0;
}

static bool load(nccl_calls *nccl, char *message, size_t bytes)
{
    const library_symbol symbols[] = {
        {&nccl->init_all, "ncclCommInitAll"},
        {&nccl->destroy, "ncclCommDestroy"},
        {&nccl->start, "ncclGroupStart"},
        {&nccl->end, "ncclGroupEnd"},
        {&nccl->all_reduce, "ncclAllReduce"},
        {&nccl->reduce_scatter, "ncclReduceScatter"},
        {&nccl->reduce, "ncclReduce"},
        {&nccl->all_gather, "ncclAllGather"},
        {&nccl->broadcast, "ncclBroadcast"},
        {&nccl->send, "ncclSend"},
        {&nccl->recv, "ncclRecv"},
    };
    /* The one that hal has opened, if it has, whatever its path. */
    return library_open("libnccl.so.2", symbols, sizeof symbols / sizeof symbols[0], message,
                        bytes);
}

static bool rank_make(raw_collectives *raw, uint32_t r, uint64_t bytes)
{
    cuda_calls *cuda = &raw->cuda[r];
    return well(raw, cuda->context_set(cuda->context), "cuCtxSetCurrent") &&
           well(raw, cuda->allocate(&raw->send[r], (size_t)bytes), "cuMemAlloc") &&
           well(raw, cuda->allocate(&raw->recv[r], (size_t)bytes), "cuMemAlloc");
}

raw_collectives *raw_collectives_open(hal_device *const *devices, uint32_t ranks, uint64_t bytes,
                                      char *message, size_t message_bytes)
{
    raw_collectives *raw = calloc(1, sizeof *raw);
    int ordinals[MOST_RANKS] = {0};
    if (!raw || ranks > MOST_RANKS || strcmp(hal_device_get_plugin_name(devices[0]), "cuda") != 0) {
        snprintf(message, message_bytes, "%s",
                 !raw ? "out of memory"
                      : "--raw of collectives: expected devices of cuda, for NCCL");
        free(raw);
        return NULL;
    }
    raw->ranks = ranks;
    bool is_well = load(&raw->nccl, message, message_bytes);
    for (uint32_t r = 0; r < ranks && is_well; r++) {
        is_well = cuda_open(&raw->cuda[r], hal_device_get_info(devices[r]), message, message_bytes);
        ordinals[r] = raw->cuda[r].device;
    }
    bool is_made = is_well;
    for (uint32_t r = 0; r < ranks && is_made; r++) {
        is_made = rank_make(raw, r, bytes);
    }
    is_made = is_made &&
              well(raw, raw->nccl.init_all(raw->comms, (int)ranks, ordinals), "ncclCommInitAll");
    if (!is_made) {
        if (is_well) {
            snprintf(message, message_bytes, "%s", raw->message);
        }
        raw_collectives_close(raw);
        return NULL;
    }
    return raw;
}

void raw_collectives_close(raw_collectives *raw)
{
    if (!raw) {
        return;
    }
    for (uint32_t r = 0; r < raw->ranks; r++) {
        cuda_calls *cuda = &raw->cuda[r];
        if (raw->comms[r]) {
            raw->nccl.destroy(raw->comms[r]);
        }
        if (cuda->context) {
            cuda->context_set(cuda->context);
            cuda->release(raw->send[r]);
            cuda->release(raw->recv[r]);
            cuda_close(cuda);
        }
    }
    free(raw);
}

void raw_collectives_choose(raw_collectives *raw, uint32_t kind, uint64_t count)
{
    raw->kind = kind;
    raw->count = count;
}

/* A message to a rank and one from it. */
static bool messages_call(raw_collectives *raw, uint32_t r, uint32_t peer, uint64_t from,
                          uint64_t to)
{
    void *stream = raw->cuda[r].stream;
    return well(raw,
                raw->nccl.send((const void *)(uintptr_t)(raw->send[r] + from), raw->count, F32,
                               (int)peer, raw->comms[r], stream),
                "ncclSend") &&
           well(raw,
                raw->nccl.recv((void *)(uintptr_t)(raw->recv[r] + to), raw->count, F32, (int)peer,
                               raw->comms[r], stream),
                "ncclRecv");
}

static bool all_to_all_call(raw_collectives *raw, uint32_t r)
{
    const uint64_t bytes = raw->count * sizeof(float);
    bool is_well = true;
    for (uint32_t q = 0; q < raw->ranks && is_well; q++) {
        is_well = messages_call(raw, r, q, q * bytes, q * bytes);
    }
    return is_well;
}

static bool rank_call(raw_collectives *raw, uint32_t r)
{
    const nccl_calls *nccl = &raw->nccl;
    const void *send = (const void *)(uintptr_t)raw->send[r];
    void *recv = (void *)(uintptr_t)raw->recv[r], *comm = raw->comms[r];
    void *stream = raw->cuda[r].stream;
    const size_t count = (size_t)raw->count;
    const uint32_t peer = (r ^ 1u) < raw->ranks ? r ^ 1u : r;
    switch (raw->kind) {
    case HAL_COLLECTIVE_ALL_REDUCE:
        return well(raw, nccl->all_reduce(send, recv, count, F32, SUM, comm, stream),
                    "ncclAllReduce");
    case HAL_COLLECTIVE_REDUCE_SCATTER:
        return well(raw, nccl->reduce_scatter(send, recv, count, F32, SUM, comm, stream),
                    "ncclReduceScatter");
    case HAL_COLLECTIVE_REDUCE:
        return well(raw, nccl->reduce(send, recv, count, F32, SUM, 0, comm, stream), "ncclReduce");
    case HAL_COLLECTIVE_ALL_GATHER:
        return well(raw, nccl->all_gather(send, recv, count, F32, comm, stream), "ncclAllGather");
    case HAL_COLLECTIVE_BROADCAST:
        return well(raw, nccl->broadcast(send, recv, count, F32, 0, comm, stream), "ncclBroadcast");
    case HAL_COLLECTIVE_ALL_TO_ALL:
        return all_to_all_call(raw, r);
    default:
        return messages_call(raw, r, peer, 0, 0);
    }
}

void raw_collectives_run(void *user, int calls)
{
    raw_collectives *raw = user;
    for (int i = 0; i < calls && raw->message[0] == 0; i++) {
        if (well(raw, raw->nccl.start(), "ncclGroupStart")) {
            for (uint32_t r = 0; r < raw->ranks && rank_call(raw, r); r++) {
            }
            well(raw, raw->nccl.end(), "ncclGroupEnd");
        }
    }
    for (uint32_t r = 0; r < raw->ranks; r++) {
        if (well(raw, raw->cuda[r].context_set(raw->cuda[r].context), "cuCtxSetCurrent")) {
            well(raw, raw->cuda[r].stream_wait(raw->cuda[r].stream), "cuStreamSynchronize");
        }
    }
}

const char *raw_collectives_failure(const raw_collectives *raw)
{
    return raw->message[0] != 0 ? raw->message : NULL;
}

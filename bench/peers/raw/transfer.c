/* cuMemcpyPeerAsync. */
#include "peers/raw/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/raw/cuda_calls.h"

struct raw_transfer {
    cuda_calls from, to;
    uint64_t source, target, bytes;
    char message[128]; /* of the first failure */
};

static bool well(raw_transfer *t, int code, const char *call)
{
    if (code != 0 && t->message[0] == 0) {
        snprintf(t->message, sizeof t->message, "%s: expected success, got %d", call, code);
    }
    return code == 0;
}

/* The plugin may have enabled peer access already, in the same context; the error of enabling it
 * again is ignored. */
static bool make(raw_transfer *t)
{
    const bool there = well(t, t->to.context_set(t->to.context), "cuCtxSetCurrent") &&
                       well(t, t->to.allocate(&t->target, (size_t)t->bytes), "cuMemAlloc");
    return well(t, t->from.context_set(t->from.context), "cuCtxSetCurrent") && there &&
           (t->from.peer_enable(t->to.context, 0), true) &&
           well(t, t->from.allocate(&t->source, (size_t)t->bytes), "cuMemAlloc");
}

raw_transfer *raw_transfer_open(const char *plugin, const hal_device_info *from,
                                const hal_device_info *to, uint64_t bytes, char *message,
                                size_t message_bytes)
{
    raw_transfer *t = calloc(1, sizeof *t);
    if (!t || strcmp(plugin, "cuda") != 0) {
        snprintf(message, message_bytes, "%s",
                 !t ? "out of memory"
                    : "--raw of transfer: expected a device of cuda, whose driver it calls");
        free(t);
        return NULL;
    }
    t->bytes = bytes;
    if (!cuda_open(&t->to, to, message, message_bytes) ||
        !cuda_open(&t->from, from, message, message_bytes)) {
        raw_transfer_close(t);
        return NULL;
    }
    if (!make(t)) {
        snprintf(message, message_bytes, "%s", t->message);
        raw_transfer_close(t);
        return NULL;
    }
    return t;
}

void raw_transfer_close(raw_transfer *t)
{
    if (!t) {
        return;
    }
    cuda_calls *sides[2] = {&t->from, &t->to};
    const uint64_t memories[2] = {t->source, t->target};
    for (int i = 0; i < 2; i++) {
        if (memories[i] != 0) {
            sides[i]->release(memories[i]);
        }
        if (sides[i]->context) {
            cuda_close(sides[i]);
        }
    }
    free(t);
}

static void run(raw_transfer *t, const cuda_calls *side, int calls)
{
    if (!well(t, side->context_set(side->context), "cuCtxSetCurrent")) {
        return;
    }
    for (int i = 0; i < calls; i++) {
        if (!well(t,
                  side->copy_peer(t->target, t->to.context, t->source, t->from.context,
                                  (size_t)t->bytes, side->stream),
                  "cuMemcpyPeerAsync")) {
            break;
        }
    }
    well(t, side->stream_wait(side->stream), "cuStreamSynchronize");
    well(t, t->from.context_set(t->from.context), "cuCtxSetCurrent");
}

void raw_transfer_run(void *user, int calls)
{
    raw_transfer *t = user;
    run(t, &t->from, calls);
}

void raw_transfer_run_by_target(void *user, int calls)
{
    raw_transfer *t = user;
    run(t, &t->to, calls);
}

const char *raw_transfer_failure(const raw_transfer *transfer)
{
    return transfer->message[0] != 0 ? transfer->message : NULL;
}

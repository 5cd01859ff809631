/* Backends of ranks: what a plugin's own library for collectives is (hal/plugin.h, comm_backend),
 * and its creation and end. All ranks of a communicator have a backend, or none. */
#ifndef HAL_SRC_COMM_BACKEND_CREATE_H
#define HAL_SRC_COMM_BACKEND_CREATE_H

#include "rank.h"

#include <stdbool.h>

struct backend_call;

struct hal_backend {
    hal_plugin_comm *handle;
    hal_plugin_comm_backend is;
    bool compares; /* calls of all ranks are compared before data moves */
    /* Guarded by the lock of backend.c. */
    struct backend_call *first, *last; /* collectives in flight; the first one is watched */
    bool is_aborted;
    _Atomic uint64_t completed;
    /* Of the thread that records. */
    uint64_t recorded;
};

/* Creates the backends of new ranks, all of the calling thread, where all ranks of their
 * communicators offer the same one on different devices; waits for the other ranks. A rank without
 * one is no error; the log says why. Null entries are passed over. Errors: those of the
 * communicators, TIMEOUT. */
hal_status hal_backend_create(hal_comm *const *comms, uint32_t count, const char *function);

/* Of the last reference to the communicator, whose collectives have ended. Nothing without a
 * backend. */
void hal_backend_destroy(hal_comm *comm);

/* "nccl"; null without a backend. */
static inline const char *hal_backend_name(const hal_comm *comm)
{
    return comm->backend ? comm->backend->is.name : NULL;
}

/* Collectives that have ended. Threads: any. */
static inline uint64_t hal_backend_completed(const hal_comm *comm)
{
    return comm->backend ? atomic_load(&comm->backend->completed) : 0;
}

#endif

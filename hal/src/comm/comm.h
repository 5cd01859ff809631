/* The lives of ranks: their creation, references and end. */
#ifndef HAL_SRC_COMM_COMM_H
#define HAL_SRC_COMM_COMM_H

#include "rank.h"

/* Creates a rank; takes the mailbox. Errors: OUT_OF_MEMORY; the mailbox is closed. */
hal_status hal_comm_make(hal_device *device, hal_mailbox *mailbox, uint32_t rank, uint32_t count,
                         uint64_t time_limit_ns, const char *function, hal_comm **comm);

/* Creates the backends (backend_create.h) of new ranks, all of the calling thread; waits for the
 * others. Null entries are passed over. Errors: those of hal_backend_create; the communicators are
 * destroyed. */
hal_status hal_comm_start(hal_comm **comms, uint32_t count, const char *function);

/* The calling thread has recorded the rank's last step. */
void hal_comm_set_thread(hal_comm *comm);

/* The functions of hal_fence_peers (core/host_fence.h) for steps that are not recorded yet, of
 * ranks in groups of processes. Threads: any. */
bool hal_comm_has_left(const uint64_t group[4], uint32_t rank, uint64_t step);
void hal_comm_write_left(const hal_wait_chain *waits);

/* Internal references. Threads: any. */
void hal_comm_ref(hal_comm *comm);
void hal_comm_unref(hal_comm *comm);

#endif

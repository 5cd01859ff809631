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

/* Internal references. Threads: any. */
void hal_comm_ref(hal_comm *comm);
void hal_comm_unref(hal_comm *comm);

#endif

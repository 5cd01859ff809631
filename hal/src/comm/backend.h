/* Collectives that the backend of a rank runs (backend_create.h), in place of steps. */
#ifndef HAL_SRC_COMM_BACKEND_H
#define HAL_SRC_COMM_BACKEND_H

#include "backend_create.h"

#include <stdbool.h>

/* Whether the backend computes a collective with the bits that the program asks for. The answer is
 * the same on all ranks. */
bool hal_backend_takes(const hal_comm *comm, const hal_mailbox_call *call);

/* Whether the order of additions is not that of the ranks there. */
bool hal_backend_varies(const hal_comm *comm, const hal_mailbox_call *call);

/* Compares the calls of the ranks before data moves, where a rank's layers or log ask for it.
 * Threads: the queue's. Errors: those of hal_step_record. */
hal_status hal_backend_compare(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *call,
                               uint64_t since);

/* Records a collective, which hal_backend_takes. Ranges have exact lengths or are {0}. Flushes the
 * batches before it, of which those from `since` on belong to it. Threads: the queue's.
 * Errors: OUT_OF_MEMORY, those of the flush. */
hal_status hal_backend_record(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *call,
                              hal_range send, hal_range recv, uint64_t since);

#endif

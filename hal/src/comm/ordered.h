/* Reductions in the order of the ranks on a backend: the backend moves the contributions, and each
 * rank adds them with hal's kernel, so the bits are those of hal's own collectives. */
#ifndef HAL_SRC_COMM_ORDERED_H
#define HAL_SRC_COMM_ORDERED_H

#include "rank.h"

/* Records an all_reduce, reduce_scatter or reduce of at least one element, whose kernels exist
 * (hal_reduce_prepare). Ranges have exact lengths or are {0}. Temporary memory: at most 64 MiB for
 * what is received, again as much for a long reduce_scatter or reduce, and at offsets that no
 * binding may have, for the rank's own contribution and its result of a piece. Threads: the
 * queue's. Errors: OUT_OF_MEMORY, those of hal_backend_record. */
hal_status hal_ordered_record(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *call,
                              hal_range send, hal_range recv, uint64_t since);

#endif

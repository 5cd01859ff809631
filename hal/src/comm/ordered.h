/* Reductions in the order of the ranks on a backend: the backend moves the contributions, and each
 * rank adds them with hal's kernel, so the bits are those of hal's own collectives. */
#ifndef HAL_SRC_COMM_ORDERED_H
#define HAL_SRC_COMM_ORDERED_H

#include "rank.h"

/* Where a reduction is divided; the same on all ranks. */
typedef struct hal_ordered_limits {
    uint64_t received_bytes; /* at most received at once; at least 256 for each rank */
    uint64_t gathered_bytes; /* of all contributions, up to which each rank receives all of them */
} hal_ordered_limits;

/* Up to 2 MiB a second call costs more than the data. */
#define HAL_ORDERED_LIMITS \
    (&(const hal_ordered_limits){.received_bytes = 64 << 20, .gathered_bytes = 2 << 20})

/* Records an all_reduce, reduce_scatter or reduce of at least one element, whose kernels exist
 * (hal_reduce_prepare). Ranges have exact lengths or are {0}. Temporary memory: at most
 * `limits->received_bytes`, again as much for a long reduce_scatter or reduce, and at offsets that
 * no binding may have, for the rank's own contribution and its result of a piece. Threads: the
 * queue's. Errors: OUT_OF_MEMORY, those of hal_backend_record. */
hal_status hal_ordered_record(hal_comm *comm, hal_queue *queue, const hal_mailbox_call *call,
                              hal_range send, hal_range recv, uint64_t since,
                              const hal_ordered_limits *limits);

#endif

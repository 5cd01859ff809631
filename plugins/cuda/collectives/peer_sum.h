/* Sums of few elements by the devices of one process, which write to each other's memory: each rank
 * sends its contribution to an inbox of all others, waits for theirs, and adds all in the order of
 * the ranks. One kernel a rank; for small data less than half of the time of a ring. */
#ifndef PLUGINS_CUDA_COLLECTIVES_PEER_SUM_H
#define PLUGINS_CUDA_COLLECTIVES_PEER_SUM_H

#include "device.h"

enum { CUDA_PEER_RANKS = 8, CUDA_PEER_BYTES = 64 << 10 }; /* at most */

/* Types whose sums and means are added so, as bits of HAL_TYPE_BIT; the values are those of hal's
 * own kernel. */
extern const uint32_t cuda_peer_types;

/* A rank's part of a sum. */
typedef struct cuda_peer_part {
    hal_plugin_device *device;
    cuda_stream stream;
    cuda_address send, recv; /* the same or disjoint */
} cuda_peer_part;

/* The inboxes and kernels of the ranks of a communicator. */
typedef struct cuda_peer_sum cuda_peer_sum;

/* Whether all devices of the process can write to each other's memory, and have the instructions.
 * Threads: any. */
bool cuda_peer_sum_is_offered(void);

/* Errors: OUT_OF_MEMORY, the driver's. The devices are those of the ranks in order. */
hal_status cuda_peer_sum_create(hal_plugin_device *const *devices, uint32_t ranks,
                                cuda_peer_sum **sum);

/* Puts the kernels of all ranks on their streams. At most CUDA_PEER_BYTES. Threads: one at a time.
 * Errors: the driver's; then some ranks may wait until the sum is aborted. */
hal_status cuda_peer_sum_run(cuda_peer_sum *sum, const cuda_peer_part *parts, uint32_t type,
                             bool is_mean, uint64_t count);

/* Kernels that wait for other ranks end, with any data. Threads: any. */
void cuda_peer_sum_abort(cuda_peer_sum *sum);

/* After all kernels have ended. */
void cuda_peer_sum_destroy(cuda_peer_sum *sum);

#endif

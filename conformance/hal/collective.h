/* collective.h: random collectives with their references, for the cases of hal/comm. Every rank
 * makes the inputs of all ranks from the seed of the collective and so checks its own result. */
#ifndef CONFORMANCE_HAL_COLLECTIVE_H
#define CONFORMANCE_HAL_COLLECTIVE_H

#include "case/case.h"
#include "math/random.h"

typedef struct collective {
    hal_collective what;
    uint64_t count;
    uint64_t seed;      /* of the inputs */
    uint32_t offset[2]; /* of send and recv, in elements */
    bool in_place;
} collective;

/* One rank of a communicator, with its queue. */
typedef struct collective_rank {
    case_run *run; /* of the rank's thread */
    hal_comm *comm;
    hal_queue *queue;
    uint32_t rank, ranks;
} collective_rank;

/* A collective in flight on a rank. */
typedef struct collective_flight {
    collective_rank *on;
    collective is;
    hal_buffer *buffers[2]; /* send and recv, the same one in place */
} collective_flight;

/* Rank and count from hal_comm_get_status. */
collective_rank collective_rank_of(case_run *run, hal_comm *comm, hal_queue *queue);

/* A random collective that the device can do, of at most `most` elements on all ranks together. All
 * ranks draw the same from equal states. */
collective collective_random(random_state *random, const hal_device_info *info, uint32_t ranks,
                             uint64_t most);

/* Writes the inputs and records the collective. */
collective_flight collective_start(collective_rank *on, const collective *is);

/* Reads the result, compares every element with the reference, and releases the buffers. */
void collective_finish(collective_flight *flight);

#endif

/* Creation and end of NCCL's communicators. They are blocking: a collective of one that does not
 * block costs 100 us more, for a thread that NCCL starts. Creation and end may wait for other
 * processes, so threads of the plugin do them. */
#ifndef PLUGINS_CUDA_COLLECTIVES_COMM_LIFECYCLE_H
#define PLUGINS_CUDA_COLLECTIVES_COMM_LIFECYCLE_H

#include "collectives/nccl.h"

/* A communicator that a thread creates. */
typedef struct cuda_creation cuda_creation;

/* Begins to create the communicator of a rank. The device's context is current. Threads: any.
 * Errors: OUT_OF_MEMORY. */
hal_status cuda_creation_begin(hal_plugin_device *device, const nccl_id *id, uint32_t rank,
                               uint32_t count, cuda_creation **creation);

/* NCCL_IN_PROGRESS; NCCL_SUCCESS with the communicator, which is the caller's; or the failure.
 * After the end it answers the same each time. */
nccl_result cuda_creation_poll(cuda_creation *creation, nccl_comm *comm);

/* Frees the creation. One in progress continues by itself and ends what it makes. */
void cuda_creation_leave(cuda_creation *creation);

/* Ends communicators by ncclCommAbort or ncclCommDestroy, in one unit. Waits for up to 3 s; then
 * their memory stays allocated, which the log says. Threads: any. */
void cuda_communicators_end(const nccl_comm *comms, uint32_t count,
                            nccl_result (*end)(nccl_comm comm));

#endif

/* Ranks of communicators, whose collectives NCCL runs, see nccl.h. */
#ifndef PLUGINS_CUDA_COLLECTIVES_COMM_H
#define PLUGINS_CUDA_COLLECTIVES_COMM_H

#include "queue.h"

hal_status cuda_comm_id(hal_plugin_instance *instance, hal_plugin_comm_id *id);
hal_status cuda_comm_create(hal_plugin_device *device, const hal_plugin_comm_id *id, uint32_t rank,
                            uint32_t count, hal_plugin_comm **comm);
hal_status cuda_comm_poll(hal_plugin_comm *comm);
void cuda_comm_abort(hal_plugin_comm *comm);
void cuda_comm_destroy(hal_plugin_comm *comm);
/* Submits a batch that is a collective. Its point is recorded when the collective begins, which may
 * be in a later call for the communicator. The context is current. */
hal_status cuda_comm_submit(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value);
/* The queue is about to be destroyed. */
void cuda_comm_forget_queue(hal_plugin_queue *queue);

#endif

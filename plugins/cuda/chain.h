/* Long runs of dispatches as graphs of the driver: a chain is an executable graph of kernel nodes,
 * one after the other, that a queue keeps and uses again for any other run of dispatches that is
 * not longer. A node is told its kernel and parameters only where they differ from what it has, so
 * that the same run a second time costs one call. Called by queue.c. */
#ifndef HALYARD_CUDA_CHAIN_H
#define HALYARD_CUDA_CHAIN_H

#include "cuda_plugin.h"

#define CUDA_CHAIN_MOST 1024u

/* How many of the next dispatches, at most CUDA_CHAIN_MOST, are best run together: where a run
 * repeats itself, as a loop's does, it is cut where earlier ones were, so that whole turns come
 * again as the same run though batches end anywhere. */
uint32_t cuda_chain_piece(hal_plugin_queue *queue, const hal_batch *batch,
                          const hal_command *commands, uint32_t count);

/* Runs up to CUDA_CHAIN_MOST dispatches on the queue's stream, in order. The device's context is
 * current.
 * Errors: OUT_OF_MEMORY, DEVICE_LOST. Nothing runs then. */
hal_status cuda_chain_run(hal_plugin_queue *queue, const hal_batch *batch,
                          const hal_command *commands, uint32_t count);

/* Gives back every chain of a queue whose work is done. */
void cuda_chain_end(hal_plugin_queue *queue);

/* The parameters of a dispatch: addresses, then scalars. Gives their bytes (queue.c). */
uint32_t cuda_fill_block(const hal_batch *batch, const hal_command *command, uint8_t *block);

#endif

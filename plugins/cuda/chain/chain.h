/* Chains: long runs of dispatches as graphs of the driver. A queue keeps its chains and uses them
 * again: for the same run, which then costs one call, or for another one that is not longer.
 *
 * A node of an executable graph keeps the size of the clusters of a kernel that it once held. A
 * later kernel without clusters then runs in such clusters, too, and loses the groups of a row of
 * the grid that do not fill one (driver 580.159.04; the documentation of CUDA 13.0 says nothing).
 * So no node changes between kernels with and without clusters: runs with clusters have dedicated
 * chains only.
 *
 * Nor may a node have held a kernel whose module was unloaded, though it holds another one by now:
 * kernels of such a graph read and write at wrong addresses (the same driver, most often while
 * other processes use the GPU). So a queue makes new chains when a module was unloaded. */
#ifndef PLUGINS_CUDA_CHAIN_CHAIN_H
#define PLUGINS_CUDA_CHAIN_CHAIN_H

#include "chain/period.h"
#include "chain/run.h"

/* How many dispatches of the run, which has at most CUDA_CHAIN_MAX, to submit together: up to the
 * end of whole iterations where the run repeats itself. */
uint32_t cuda_chain_cut(hal_plugin_queue *queue, const cuda_run *run);

/* Submits a run of at most CUDA_CHAIN_MAX dispatches to the queue's stream, in order. The device's
 * context is current. `submitted` is false where the run has no chain: without memory for one, and
 * for a run with clusters that was not repeated often enough.
 * Errors: DEVICE_LOST. Nothing runs then. */
hal_status cuda_chain_submit(hal_plugin_queue *queue, const cuda_run *run, bool *submitted);

/* Destroys the chains of a queue that is idle. */
void cuda_chain_destroy_all(hal_plugin_queue *queue);

#endif

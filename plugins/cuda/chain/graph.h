/* An executable graph of the driver with one kernel node after the other. A node is told its kernel
 * and parameters only where they differ from those that it holds, and nodes after the end of a run
 * are disabled. */
#ifndef PLUGINS_CUDA_CHAIN_GRAPH_H
#define PLUGINS_CUDA_CHAIN_GRAPH_H

#include "chain/run.h"

/* What a node of the executable graph holds. */
typedef struct cuda_graph_node {
    cuda_node node;
    uint64_t kernel; /* serial number; 0: unknown */
    uint32_t grid[3];
    uint32_t bytes; /* of the parameters */
    uint32_t capacity;
    uint8_t *parameters;
} cuda_graph_node;

typedef struct cuda_chain_graph {
    cuda_graph graph;
    cuda_executable executable;
    uint32_t capacity; /* nodes */
    uint32_t enabled;  /* the first nodes, which run */
    bool early_start;  /* a kernel may start before the one before it ends */
    cuda_graph_node *nodes;
} cuda_chain_graph;

/* Creates a graph for a queue, whose first nodes hold the run, and whose others hold its first
 * dispatch. All are enabled.
 * Errors: OUT_OF_MEMORY, DEVICE_LOST. The graph is empty then. */
hal_status cuda_chain_graph_create(const hal_plugin_queue *queue, uint32_t capacity,
                                   bool early_start, const cuda_run *run, cuda_chain_graph *graph);
void cuda_chain_graph_destroy(cuda_chain_graph *graph);

/* Lets the first nodes hold the run. `changed`: whether it differs from what they held. No node has
 * held a kernel whose module was unloaded since. The device's `unloading` is held. */
hal_status cuda_chain_graph_set(const hal_plugin_queue *queue, cuda_chain_graph *graph,
                                const cuda_run *run, bool *changed);

#endif

/* Recording of graphs, as the sources of queues see it. */
#ifndef HAL_SRC_CORE_GRAPH_H
#define HAL_SRC_CORE_GRAPH_H

#include "queue.h"
#include "record.h"

/* Appends a checked command to a graph in recording; after success the graph owns the action's
 * call. Threads: the queue's.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_graph_append(hal_graph *graph, const hal_action *action);

/* Drops the graph in recording on the queue. Threads: the queue's. */
void hal_graph_abandon(hal_queue *queue);

#endif

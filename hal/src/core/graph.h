/* A graph in recording, as the queue sees it. */
#ifndef HAL_SRC_CORE_GRAPH_H
#define HAL_SRC_CORE_GRAPH_H

#include "queue.h"

/* Keeps a checked command. Threads: the queue's. Errors: OUT_OF_MEMORY. */
hal_status hal_graph_keep(hal_graph *graph, const hal_action *action);

/* Drops what is being recorded on the queue. Threads: the queue's. */
void hal_graph_abandon(hal_queue *queue);

#endif

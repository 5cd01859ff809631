/* Graphs: batches that were kept.
 *
 * Between begin and end, what is recorded on a queue is not run but kept. A graph can be launched
 * as often as wanted, on any queue of its device, with other buffers in its slots. */
#ifndef HAL_GRAPH_H
#define HAL_GRAPH_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_graph hal_graph;

/* Begins to keep what is recorded on `queue`; what was recorded before is flushed. In between,
 * dispatch, copy and fill are kept; write, read, transfer, flush, waits, launches and a second
 * begin are INVALID_STATE.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, INVALID_STATE, what the flush meets. */
HAL_API hal_status hal_graph_begin(hal_queue *queue);

/* Ends the recording. `slots` are buffers among those recorded that each launch may replace.
 * Ownership: the graph is the caller's, until hal_graph_destroy; it keeps its kernels and all
 * buffers alive. Threads: the queue's.
 * Errors: INVALID_STATE without a begin, INVALID_ARGUMENT for a slot that is null, there twice or
 * used by no command, OUT_OF_MEMORY; the recording is dropped then. */
HAL_API hal_status hal_graph_end(hal_queue *queue, hal_buffer *const *slots, uint32_t slot_count,
                                 HAL_OUT hal_graph **graph);

/* Frees a graph; launches under way are not touched. Null is allowed.
 * Threads: any, when no other thread uses the graph. Errors: none. */
HAL_API void hal_graph_destroy(hal_graph *graph);

/* Records the graph's commands on a queue of its device, with `buffers` in its slots (a null entry
 * keeps the recorded one, a count of 0 keeps all), each at least as large as the one it stands for.
 * Threads: the queue's; a graph may be launched by one thread at a time.
 * Errors: as hal_queue_dispatch; nothing is recorded then. */
HAL_API hal_status hal_graph_launch(hal_queue *queue, hal_graph *graph, hal_buffer *const *buffers,
                                    uint32_t buffer_count);

/* The number of commands that were kept.
 * Threads: any. Errors: none; null gives 0. */
HAL_API uint32_t hal_graph_get_command_count(const hal_graph *graph);

#ifdef __cplusplus
}
#endif
#endif

/* Graphs: recorded commands that can be launched many times.
 *
 * Between begin and end the commands recorded on a queue do not run; they become the graph. It can
 * be launched any number of times, on any queue of its device, with other buffers in its slots. */
#ifndef HAL_GRAPH_H
#define HAL_GRAPH_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_graph hal_graph;

/* Starts a graph on `queue` and flushes earlier commands. Until the end, dispatch, copy and fill
 * are recorded in the graph; write, read, transfer, flush, waits, launches and a second begin fail
 * with INVALID_STATE.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, INVALID_STATE, those of the flush. */
HAL_API hal_status hal_graph_begin(hal_queue *queue);

/* Ends the graph. `slots` are recorded buffers that a launch may replace.
 * Ownership: the graph is the caller's, until hal_graph_destroy; it keeps its kernels and buffers
 * alive. Threads: the queue's.
 * Errors: INVALID_STATE without a begin, INVALID_ARGUMENT for a slot that is null, that occurs
 * twice or that no command uses, OUT_OF_MEMORY. An error drops the recording. */
HAL_API hal_status hal_graph_end(hal_queue *queue, hal_buffer *const *slots, uint32_t slot_count,
                                 HAL_OUT hal_graph **graph);

/* Destroys a graph; launches in flight are not affected. Null is allowed.
 * Threads: any, when no other thread uses the graph. Errors: none. */
HAL_API void hal_graph_destroy(hal_graph *graph);

/* Records the graph's commands on a queue of its device, with `buffers` in its slots, each at least
 * as large as the recorded buffer. A null entry keeps the recorded buffer, a count of 0 keeps all.
 * Threads: the queue's; a graph may be launched by one thread at a time.
 * Errors: as hal_queue_dispatch; nothing is recorded after an error. */
HAL_API hal_status hal_graph_launch(hal_queue *queue, hal_graph *graph, hal_buffer *const *buffers,
                                    uint32_t buffer_count);

/* Returns the number of commands of the graph.
 * Threads: any. Errors: none; null returns 0. */
HAL_API uint32_t hal_graph_get_command_count(const hal_graph *graph);

#ifdef __cplusplus
}
#endif
#endif

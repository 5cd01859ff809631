/* Graphs over arrays: a step that is recorded once and launched with other inputs.
 *
 * Between begin and end, operations on the context's arrays are recorded and not executed. A launch
 * costs the host little more than submitting the graph's kernels.
 *
 *     ops_scope_begin(context);
 *     ops_graph_begin(context);
 *     ops_array *next = ops_tanh(ops_matmul(state, w));
 *     ops_graph_end(context, &state, 1, &next, 1, &graph);
 *     ops_scope_end(context);                  // releases what was recorded
 *     for (int i = 0; i < steps; i++) {
 *         ops_graph_launch(graph, &state, 1, &next, 1);
 *         ops_array_release(state);
 *         state = next;
 *     } */
#ifndef OPS_GRAPH_H
#define OPS_GRAPH_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ops_graph ops_graph;

/* Begins a recording. Arrays that are still deferred are computed first. Reading an array is
 * INVALID_STATE until the recording ends.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, INVALID_STATE during another recording, errors of
 * the evaluation. */
HAL_API hal_status ops_graph_begin(ops_context *context);

/* Ends the recording, which computes `outputs`. Each launch may replace `inputs`: arrays that were
 * made before the recording, that it reads, and that fill their memory (ops_array_copy makes such
 * an array of a view or constant). Arrays that were made during the recording hold nothing
 * afterwards; using them is INVALID_STATE, and they are still to be released.
 * Ownership: the graph is the caller's, until ops_graph_destroy, and keeps what it uses alive.
 * Threads: the queue's.
 * Errors: INVALID_STATE without a begin; INVALID_ARGUMENT for another kind of input, for an empty
 * one, for one that is given twice, and for an output that was not made during the recording;
 * errors of the evaluation. The recording is dropped then. */
HAL_API hal_status ops_graph_end(ops_context *context, ops_array *const *inputs,
                                 uint32_t input_count, ops_array *const *outputs,
                                 uint32_t output_count, HAL_OUT ops_graph **graph);

/* Launches the graph with `inputs` in place of the recorded ones (null: the recorded one), of the
 * same types and shapes, and makes its outputs anew. An input that does not start its buffer, has
 * gaps, or has its axes in another order in memory than the recorded one is copied.
 * Ownership: outputs are arrays of the innermost scope or of the caller. Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes, OUT_OF_MEMORY, errors of dispatches; INVALID_STATE for
 * lost inputs (docs/errors.md), and where an array that the recording reads was lost later. */
HAL_API hal_status ops_graph_launch(ops_graph *graph, ops_array *const *inputs,
                                    uint32_t input_count, HAL_OUT ops_array **outputs,
                                    uint32_t output_count);

/* Destroys a graph; launches in flight complete. Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_graph_destroy(ops_graph *graph);

/* Compiles the kernels that a piece of program needs ahead of its first run: calls `program` while
 * a graph is recorded, and drops the graph. Arrays that the program makes hold nothing afterwards,
 * as with ops_graph_end.
 * Threads: the queue's. Errors: as ops_graph_begin, the status of `program`. */
HAL_API hal_status ops_prepare(ops_context *context,
                               hal_status (*program)(ops_context *context, void *user), void *user);

#ifdef __cplusplus
}
#endif
#endif

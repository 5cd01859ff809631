/* Graphs over arrays: a step that is recorded once and run again with other inputs.
 *
 * Between begin and end, what the thread computes with arrays of the context is recorded and not
 * run. A launch then costs the host no more than handing its kernels over.
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

/* Begins to record. What arrays stood for before is computed first. In between, reading is
 * INVALID_STATE.
 * Threads: the queue's. Errors: INVALID_ARGUMENT, INVALID_STATE when a graph is being recorded,
 * what the evaluation meets. */
HAL_API hal_status ops_graph_begin(ops_context *context);

/* Ends the recording: `outputs` are computed in it; `inputs` are arrays made before, which every
 * launch may replace. Arrays that were made in between hold nothing then, and using them is
 * INVALID_STATE; they are still to be released.
 * Ownership: the graph is the caller's, until ops_graph_destroy, and keeps what it uses alive.
 * Threads: the queue's.
 * Errors: INVALID_STATE without a begin; INVALID_ARGUMENT for an input that is not used, is not
 * contiguous in the whole of its memory or is a constant (ops_array_full: all of one value
 * share memory), and for an output that was not made in between; what the evaluation meets. The
 * recording is dropped then. */
HAL_API hal_status ops_graph_end(ops_context *context, ops_array *const *inputs,
                                 uint32_t input_count, ops_array *const *outputs,
                                 uint32_t output_count, ops_graph **graph);

/* Records the graph's kernels with `inputs` in place of those of the recording (null: the recorded
 * one), of the same type and shape, and makes its outputs anew.
 * Ownership: outputs are arrays of the innermost scope or of the caller. Threads: the queue's.
 * Errors: INVALID_ARGUMENT with the shapes, OUT_OF_MEMORY, what dispatches meet. */
HAL_API hal_status ops_graph_launch(ops_graph *graph, ops_array *const *inputs,
                                    uint32_t input_count, ops_array **outputs,
                                    uint32_t output_count);

/* Frees a graph; launches under way are not touched. Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void ops_graph_destroy(ops_graph *graph);

/* Makes the kernels that a piece of program will need, ahead of its first run: calls `program`
 * while a graph is recorded, and drops the graph. Whatever arrays the program makes hold nothing
 * afterwards, as in ops_graph_end.
 * Threads: the queue's. Errors: as ops_graph_begin, what `program` answers. */
HAL_API hal_status ops_prepare(ops_context *context,
                               hal_status (*program)(ops_context *context, void *user),
                               void *user);

#ifdef __cplusplus
}
#endif
#endif

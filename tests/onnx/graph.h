/* Runs a case: node after node, then compares what came out. */
#ifndef TESTS_ONNX_GRAPH_H
#define TESTS_ONNX_GRAPH_H

#include "compare.h"

/* `reason` is of a case that does not pass, with its end. */
onnx_verdict onnx_run(ops_context *context, const onnx_case *item, char *reason, size_t bytes);

/* The graph that an attribute names; null, and the call is skipped, where it names none. */
const onnx_graph *onnx_graph_of(onnx_call *call, const char *attribute);

/* Runs such a graph: inputs to outputs, as many as the graph has. False where a node fails, or is
 * not covered: then the call is skipped. */
bool onnx_graph_call(onnx_call *call, const onnx_graph *graph, ops_array *const *inputs,
                     ops_array **outputs);

#endif

/* Runs a case: node after node, then compares what came out. */
#ifndef TESTS_ONNX_GRAPH_H
#define TESTS_ONNX_GRAPH_H

#include "compare.h"

/* `reason` is of a case that does not pass, with its end. */
onnx_verdict onnx_run(ops_context *context, const onnx_case *item, char *reason, size_t bytes);

#endif

/* What a graph gave, next to what the case expects. */
#ifndef TESTS_ONNX_COMPARE_H
#define TESTS_ONNX_COMPARE_H

#include "call.h"

typedef enum onnx_verdict {
    ONNX_PASS,
    ONNX_FAIL,
    ONNX_NOT_COVERED,
    ONNX_VERDICT_COUNT
} onnx_verdict;

/* Passes floats with |actual - expected| <= absolute + relative |expected|, and NaN for NaN;
 * integers and booleans that are equal. The tolerance is below the distance of two numbers of a
 * narrow type: where only neighbours differ, the case is not covered. Else it fails. Writes the
 * reason unless it passes. */
onnx_verdict onnx_compare(ops_array *actual, const onnx_tensor *expected, double relative,
                          double absolute, char *reason, size_t bytes);

#endif

/* The table of ONNX operators and what maps them to calls of ops. */
#ifndef TESTS_ONNX_OPERATORS_H
#define TESTS_ONNX_OPERATORS_H

#include "call.h"

typedef struct onnx_operator {
    const char *name;
    onnx_mapping map;
} onnx_operator;

/* The mapping of an operator; null: it has none. */
onnx_mapping onnx_operator_find(const char *name);

/* The parts of the table, one per family; each ends with a null name. */
extern const onnx_operator onnx_elementwise_operators[];
extern const onnx_operator onnx_activation_operators[];
extern const onnx_operator onnx_reduce_operators[];
extern const onnx_operator onnx_shape_operators[];
extern const onnx_operator onnx_index_operators[];
extern const onnx_operator onnx_matrix_operators[];
extern const onnx_operator onnx_network_operators[];
extern const onnx_operator onnx_window_operators[];
extern const onnx_operator onnx_norm_operators[];
extern const onnx_operator onnx_control_operators[];

#endif

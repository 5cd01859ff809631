/* Looks an operator up in the parts of the table. */
#include "operators.h"

#include <string.h>

onnx_mapping onnx_operator_find(const char *name)
{
    static const onnx_operator *const parts[] = {
        onnx_elementwise_operators, onnx_activation_operators, onnx_reduce_operators,
        onnx_shape_operators,       onnx_index_operators,      onnx_matrix_operators,
        onnx_network_operators,     onnx_window_operators,     onnx_norm_operators,
        onnx_control_operators,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (const onnx_operator *item = parts[i]; item->name; item++) {
            if (strcmp(item->name, name) == 0) {
                return item->map;
            }
        }
    }
    return NULL;
}

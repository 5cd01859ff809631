/* Quantised weights by expressions: a product by ops_array_dequantise, or by cast(q) * scales of
 * bytes, becomes one node that reads them as they are. */
#ifndef OPS_SRC_ARRAY_QUANTISED_MATCH_H
#define OPS_SRC_ARRAY_QUANTISED_MATCH_H

#include "node.h"

#include <ops/quantised.h>

/* Makes a deferred product, whose second operand is quantised weights that nothing else reads, a
 * product of values and scales. Returns whether it did. */
bool ops_quantised_match(ops_array *matmul);

/* The weights of a form from the views of its operands; `zeros` may be null, and holds what
 * weights->zeros points to. False where the views have no strides for it. */
bool ops_quantised_form_weights(const ops_quantised_form *form, const ops_tensor *values,
                                const ops_tensor *scales, ops_tensor *zeros,
                                ops_quantised *weights);

#endif

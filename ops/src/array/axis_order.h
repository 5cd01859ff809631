/* The order of axes in memory that a result takes from its operands, so that a kernel reads and
 * writes neighbours where its operands have them. */
#ifndef OPS_SRC_ARRAY_AXIS_ORDER_H
#define OPS_SRC_ARRAY_AXIS_ORDER_H

#include "node.h"

/* Sets the strides of a new node whose shape and operands are set: an elementwise operation,
 * reduction or softmax. The operand of the most bytes decides; of equal ones the one in row-major
 * order, then the first. Axes along which it has no order (of length 1, or stretched) follow the
 * other operands, and then the row-major order. */
void ops_axis_order_set(ops_array *node);

#endif

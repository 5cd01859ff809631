/* View maps: how the operands of an operation are read so that a view of its result can be computed
 * in place of the result. */
#ifndef OPS_SRC_ARRAY_VIEW_MAP_H
#define OPS_SRC_ARRAY_VIEW_MAP_H

#include "tensor/shape.h"

/* `base` is without gaps and offset, `view` is a view of its memory (its offset and strides), and x
 * broadcasts to the shape of `base`. Sets *mapped to the elements of x that the view's elements are
 * computed from, in the view's shape. False where no strides express that, and without elements. */
bool ops_view_map(const ops_tensor *base, const ops_tensor *view, const ops_tensor *x,
                  ops_tensor *mapped);

#endif

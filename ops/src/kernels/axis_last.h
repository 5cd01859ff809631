/* Temporary tensors whose lines along an axis are contiguous. */
#ifndef OPS_SRC_KERNELS_AXIS_LAST_H
#define OPS_SRC_KERNELS_AXIS_LAST_H

#include <ops/tensor.h>

/* A tensor of the shape without a buffer: row-major with the axis last in memory. */
static inline ops_tensor ops_axis_last(const ops_tensor *shape, uint32_t axis, hal_type type)
{
    ops_tensor made = *shape;
    int64_t stride = shape->shape[axis];
    made.buffer = NULL;
    made.type = type;
    made.offset = 0;
    for (uint32_t i = shape->rank; i-- > 0;) {
        made.stride[i] = i == axis ? 1 : stride;
        stride *= i == axis ? 1 : shape->shape[i];
    }
    return made;
}

#endif

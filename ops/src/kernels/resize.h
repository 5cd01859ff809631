/* Resizing along several axes in one kernel, and its gradient. */
#ifndef OPS_SRC_KERNELS_RESIZE_H
#define OPS_SRC_KERNELS_RESIZE_H

#include <ops/tensor.h>

#include <stdbool.h>

#define OPS_RESIZE_AXES 3u

/* The coordinate of element i of an axis is (slope i + start) / divisor, not below 0 and not beyond
 * the last element of x. Slope and divisor are at least 2. */
typedef struct ops_resize_coordinate {
    int64_t slope, start, divisor;
} ops_resize_coordinate;

/* Of `axes` neighbouring axes from `first` on; unused ones are 0, as this is part of keys. */
typedef struct ops_resize_form {
    uint32_t first, axes, is_linear, is_gradient;
    ops_resize_coordinate along[OPS_RESIZE_AXES];
} ops_resize_form;

/* Whether the kernel has 31 bits for what it divides, on an axis of `from` elements of x and `to`
 * of the result. */
bool ops_resize_fits(const ops_resize_coordinate *along, int64_t from, int64_t to);

/* y = the elements of x at the coordinates rounded down, with their bits, or with is_linear (1 - t)
 * x[low] + t x[low + 1], in F32 for narrow floats, one axis after the other, rounded once. With
 * is_gradient x is the gradient of the result and y that of x: each element adds, in the order of
 * the result, what came from it. */
hal_status ops_resize(ops_context *context, const ops_resize_form *form, const ops_tensor *x,
                      const ops_tensor *y);

#endif

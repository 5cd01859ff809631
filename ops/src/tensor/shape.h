/* Shapes, strides and spans of tensors, without a context. */
#ifndef OPS_SRC_TENSOR_SHAPE_H
#define OPS_SRC_TENSOR_SHAPE_H

#include <ops/tensor.h>
#include <stdbool.h>

/* Sets INVALID_ARGUMENT with a formatted message, and returns it. */
#define ops_invalid(...) hal_status_set(HAL_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

#define OPS_TEXT_BYTES 160u

/* "f32[3, 4]" into `text`, which is returned. */
const char *ops_describe(const ops_tensor *tensor, char text[OPS_TEXT_BYTES]);

/* Checks an axis of a tensor, which may count from the end as in NumPy, and writes it counted from
 * the start. `function` and `argument` name it in the message. */
hal_status ops_check_axis(const char *function, const char *argument, const ops_tensor *tensor,
                          int32_t axis, uint32_t *checked);

/* The strides of a tensor broadcast to a shape that it fits. */
void ops_broadcast_strides(const ops_tensor *tensor, uint32_t rank, const int64_t *shape,
                           int64_t *strides);

bool ops_same_shape(const ops_tensor *x, const ops_tensor *y);

/* The tensor with row-major strides, which are counted as if it had elements, and no offset. */
ops_tensor ops_row_major(const ops_tensor *tensor);

/* Whether some axes are in memory in another order than the row-major one. Axes of length 1 and of
 * stride 0 have no place in the order. */
bool ops_is_reordered(const ops_tensor *tensor);

/* Whether the elements of two tensors of one shape have the same places except for the offset. */
bool ops_same_strides(const ops_tensor *x, const ops_tensor *y);

/* Whether the elements fill memory without gaps, in any order of axes. */
bool ops_is_dense(const ops_tensor *tensor);

/* The lowest and one beyond the highest element that a tensor touches, in elements. */
void ops_span(const ops_tensor *tensor, int64_t *first, int64_t *end);

/* The same for tensors that come from outside. False for a negative length, and where elements or
 * places are beyond what 63 bits count, even if other axes have a length of 0; a tensor without
 * elements spans nothing. `count`: the product of the lengths, 0 taken for 1. */
bool ops_extent(const ops_tensor *tensor, int64_t *first, int64_t *end, int64_t *count);

#endif

/* Arrays padded, mirrored, shifted and repeated. */
#ifndef OPS_SHAPE_H
#define OPS_SHAPE_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_pad_mode {
    OPS_PAD_CONSTANT, /* a value */
    OPS_PAD_EDGE,     /* the element at the edge */
    OPS_PAD_REFLECT,  /* mirrored at the element at the edge, which is not repeated */
    OPS_PAD_WRAP,     /* from the other end */
    OPS_PAD_MODE_COUNT
} ops_pad_mode;

/* x with `before` and `after` elements more at the ends of each axis, of which both have one
 * number; a negative number removes elements. `value`, rounded to x's type, is that of CONSTANT.
 * The other modes take padding of any length from an axis that has elements after the removal.
 * CONSTANT takes one or two kernels, the others one for each axis that is padded.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT with
 * the shapes; as ops_array_gather and ops_array_update. */
HAL_API ops_array *ops_array_pad(ops_pad_mode mode, const int64_t *before, const int64_t *after,
                                 double value, ops_array *x);

/* x with the axes backwards, a view; x with the elements of an axis moved by `shift` places towards
 * its end, and those beyond it to its start; x repeated along each axis, `repeats` of them.
 * Ownership, Threads: as ops_array_pad. Errors: null, INVALID_ARGUMENT with the shapes. */
HAL_API ops_array *ops_array_flip(const int32_t *axes, uint32_t axis_count, ops_array *x);
HAL_API ops_array *ops_array_roll(int32_t axis, int64_t shift, ops_array *x);
HAL_API ops_array *ops_array_tile(const int64_t *repeats, ops_array *x);

/* x with zeros for the elements (i, j) of its last two axes with j > i + offset (lower), or with
 * j < i + offset (upper).
 * Ownership, Threads, Errors: as ops_array_pad. */
HAL_API ops_array *ops_array_lower_triangle(int64_t offset, ops_array *x);
HAL_API ops_array *ops_array_upper_triangle(int64_t offset, ops_array *x);

#ifdef __cplusplus
}
#endif
#endif

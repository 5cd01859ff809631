/* Resizing of arrays along their last axes, with gradients. */
#ifndef OPS_RESIZE_H
#define OPS_RESIZE_H

#include <ops/array.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_resize_kind {
    OPS_RESIZE_NEAREST, /* the element at the coordinate, rounded down; with HALF, where the centre
                           of the result's element is */
    OPS_RESIZE_LINEAR,  /* between the two elements around the coordinate; of floats */
    OPS_RESIZE_KIND_COUNT
} ops_resize_kind;

/* The coordinate in x of element i of an axis of m elements, where x has n. */
typedef enum ops_resize_places {
    OPS_RESIZE_CORNER, /* i n / m */
    OPS_RESIZE_HALF,   /* (i + 1/2) n / m - 1/2, of NEAREST (i + 1/2) n / m */
    OPS_RESIZE_ALIGN,  /* i (n - 1) / (m - 1), of NEAREST to the nearest element, halves upwards; 0
                          for m = 1 */
    OPS_RESIZE_PLACES_COUNT
} ops_resize_places;

/* x with other lengths of its last `axis_count` axes, 1 to 3, or with channels_last of those before
 * its last one. Coordinates are exact and limited to x; LINEAR is (1 - t) x[low] + t x[high] with t
 * in F32, or F64 of F64, one axis after the other, and rounded once. NEAREST of any
 * type keeps the bits. PyTorch's nearest is CORNER, nearest-exact HALF, bilinear HALF or, with
 * align_corners, ALIGN.
 * Ownership: the scope's or the caller's. Threads: the queue's. Errors: null, INVALID_ARGUMENT with
 * the shapes: lengths of 1 to 2^31 - 1, and of x as well. */
HAL_API ops_array *ops_array_resize(ops_resize_kind kind, ops_resize_places places,
                                    uint32_t axis_count, const int64_t *lengths, int channels_last,
                                    ops_array *x);

/* The gradient by x from dy, that of the result, a float type; `lengths` are those of x. The sums
 * of an element are added in the order of the result.
 * Ownership, Threads, Errors: as ops_array_resize. */
HAL_API ops_array *ops_array_resize_gradient(ops_resize_kind kind, ops_resize_places places,
                                             uint32_t axis_count, const int64_t *lengths,
                                             int channels_last, ops_array *dy);

#ifdef __cplusplus
}
#endif
#endif

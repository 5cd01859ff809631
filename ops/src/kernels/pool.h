/* Pooling by windows in one kernel, in which coordinates beyond x are tested, and its gradient. */
#ifndef OPS_SRC_KERNELS_POOL_H
#define OPS_SRC_KERNELS_POOL_H

#include <ops/windows.h>

/* Elements of a window at most: each is emitted. */
#define OPS_POOL_ELEMENTS 64u

/* What sums are divided by. */
typedef enum ops_pool_divisor {
    OPS_POOL_MAXIMA,  /* maxima, not sums */
    OPS_POOL_VOLUME,  /* the elements of a window */
    OPS_POOL_INSIDE,  /* those of them that are in x */
    OPS_POOL_COUNTED, /* those, and the padding that counts */
    OPS_POOL_PLACES,  /* not sums: where the maxima are */
} ops_pool_divisor;

/* The windows, one number for each spatial axis; unused ones are 0, as this is part of keys. */
typedef struct ops_pool_form {
    uint32_t rank, divisor;
    double least; /* of the type, with OPS_POOL_MAXIMA; else 0 */
    int64_t window[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    int64_t before[OPS_MAX_SPATIAL];  /* padding before x */
    int64_t counted[OPS_MAX_SPATIAL]; /* padding after x, with OPS_POOL_COUNTED */
} ops_pool_form;

/* y [N, C, places] = the maximum or average of each window of x [N, C, lengths], of one type, or
 * the place (I64) of the maximum in the spatial axes of x: the first one, or that of the last NaN.
 * Elements are combined in the order of the window, F32 for narrow floats, and rounded once. */
hal_status ops_pool_windows(ops_context *context, const ops_pool_form *form, const ops_tensor *x,
                            const ops_tensor *y);

/* dx [N, C, lengths] = for each element the sum over the windows that it is in, in their order, of
 * dy [N, C, places] over what the average was divided by, or with OPS_POOL_PLACES of those whose
 * maximum is at `places`, which is null otherwise. F32 for narrow floats, rounded once. */
hal_status ops_pool_gradient(ops_context *context, const ops_pool_form *form, const ops_tensor *dy,
                             const ops_tensor *places, const ops_tensor *dx);

/* The windows that an element is in, at most: that of ops_pool_gradient is OPS_POOL_ELEMENTS. */
int64_t ops_pool_windows_of_element(const ops_pool_form *form);

#endif

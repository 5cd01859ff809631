/* Pooling by windows in one kernel, in which coordinates beyond x are tested. */
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
} ops_pool_divisor;

/* The windows, one number for each spatial axis; unused ones are 0, as this is part of keys. */
typedef struct ops_pool_form {
    uint32_t rank, divisor;
    double least; /* of the type, with OPS_POOL_MAXIMA */
    int64_t window[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    int64_t before[OPS_MAX_SPATIAL];  /* padding before x */
    int64_t counted[OPS_MAX_SPATIAL]; /* padding after x, with OPS_POOL_COUNTED */
} ops_pool_form;

/* y [N, C, places] = the maximum or average of each window of x [N, C, lengths], of one type.
 * Elements are combined in the order of the window, F32 for narrow floats, and rounded once. */
hal_status ops_pool_windows(ops_context *context, const ops_pool_form *form, const ops_tensor *x,
                            const ops_tensor *y);

#endif

/* What describes a pooling, for its kernels and for who defers them. */
#ifndef OPS_SRC_KERNELS_POOL_FORM_H
#define OPS_SRC_KERNELS_POOL_FORM_H

#include <ops/windows.h>

#include <math.h>
#include <stdbool.h>

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

/* Whether a division by a count is a multiplication with the same bits: by a power of 2. */
static inline bool ops_pool_divides_exactly(double count)
{
    int exponent;
    return frexp(count, &exponent) == 0.5;
}

#endif

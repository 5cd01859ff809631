/* The gradient by the weights of convolutions with few results per group, without a copy of x. */
#ifndef OPS_SRC_KERNELS_DEPTHWISE_WEIGHTS_H
#define OPS_SRC_KERNELS_DEPTHWISE_WEIGHTS_H

#include <ops/windows.h>

/* Sums that a work-item keeps, at most. */
#define OPS_DEPTHWISE_SUMS 72u

/* One number for each spatial axis; unused ones are 0, as this is part of keys. The window has at
 * most OPS_DEPTHWISE_ELEMENTS elements. */
typedef struct ops_depthwise_weights_form {
    uint32_t rank;
    uint32_t images, lines; /* of a work-item, at most; lines along the first of several axes */
    uint32_t groups;
    int64_t window[OPS_MAX_SPATIAL], stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    int64_t before[OPS_MAX_SPATIAL]; /* zeros before each axis; what is read after it is 0 too */
} ops_depthwise_weights_form;

/* sums [parts of images, parts of lines, groups O C, window as one axis, places of the last axis] =
 * the sums over the images and lines of a part, and all places of other axes, of the products of
 * x [N, groups C, lengths] and dy [N, groups O, places]. Sums are F32, or F64 of F64, by fused
 * multiply-adds in the order of images and places. */
hal_status ops_depthwise_weights(ops_context *context, const ops_depthwise_weights_form *form,
                                 const ops_tensor *x, const ops_tensor *dy, const ops_tensor *sums);

#endif

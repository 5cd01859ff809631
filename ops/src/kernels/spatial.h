/* Index tasks of images [N, C, lengths], whose body finds elements along the spatial axes. */
#ifndef OPS_SRC_KERNELS_SPATIAL_H
#define OPS_SRC_KERNELS_SPATIAL_H

#include "index_task.h"

/* A view in the space of `images` that has the strides of an image and a channel of another tensor,
 * or none with null, and none along spatial axes. */
ops_tensor ops_spatial_view(const ops_tensor *images, const ops_tensor *of);

/* Neighbours along channels for a work-item where these are last in both tensors; else 1. */
uint32_t ops_spatial_widest(const ops_context *context, const ops_tensor *x, const ops_tensor *y);

/* The width, at most `widest`, whose vectors stay aligned after a step. */
uint32_t ops_spatial_aligned(uint32_t widest, int64_t step);

#endif

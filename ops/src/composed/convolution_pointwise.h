/* Convolutions whose windows have one element (pointwise convolutions), also transposed: matrix
 * products of x as it is, without windows. Steps and padding select places of x
 * or of the result. */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_POINTWISE_H
#define OPS_SRC_COMPOSED_CONVOLUTION_POINTWISE_H

#include "convolution.h"

bool ops_convolution_is_pointwise(const ops_convolution_form *form);

/* The caller's result, of x [N, C, lengths] without padding; w as the caller gives it. Of a
 * transposed one the form has the steps and padding of the convolution that it is the gradient of.
 * There are images and channels. */
ops_array *ops_convolution_pointwise(const ops_convolution_form *form, bool is_transposed,
                                     ops_array *x, ops_array *w, ops_array *bias);

#endif

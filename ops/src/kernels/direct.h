/* Convolutions without a product: work-items sum windows of x, whose channels are cut into planes
 * (planes.h). composed/convolution_direct.c chooses them for processors, where groups have few
 * channels or results, or windows are steps apart. */
#ifndef OPS_SRC_KERNELS_DIRECT_H
#define OPS_SRC_KERNELS_DIRECT_H

#include "direct_form.h"

/* y[n, g O + o, p] = activation(bias[g O + o] + the sum over c and k of w[g, o, c, k] x[n, g C + c,
 * p stride + k dilation - before]), or of a transposed one, x[n, g C + c, q] where q stride + k
 * dilation - before = p. x is [N, G C, lengths], w [G, O, C, window], the bias null or [G O], y
 * [N, G O, places]; any strides of x, dense ones of w. Sums of fused multiply-adds over c, then k,
 * in F32 for narrow floats, rounded once.
 * Errors: those of dispatches and of memory. */
hal_status ops_direct(ops_context *context, const ops_direct_form *form, const ops_tensor *x,
                      const ops_tensor *w, const ops_tensor *bias, const ops_tensor *y);

#endif

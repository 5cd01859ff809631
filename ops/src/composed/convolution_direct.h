/* Convolutions whose work-items sum windows of planes of x (kernels/direct.h), without a product:
 * the choice of processors where products have few rows or windows are costly to copy. */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_DIRECT_H
#define OPS_SRC_COMPOSED_CONVOLUTION_DIRECT_H

#include "convolution.h"

/* Whether the convolution, or the transposed one whose form has the steps, dilation and padding of
 * the convolution that it is the gradient of, is computed so: as the context's choice says, or
 * where that takes less time. x [N, C, lengths] has no padding. A function of shapes, type and
 * options. */
bool ops_convolution_is_direct(const ops_convolution_form *form, bool is_transposed,
                               const ops_array *x);

/* Whether a transposed convolution takes less time by columns (ops_convolution_by_columns). */
bool ops_convolution_is_by_columns(const ops_convolution_form *form, const ops_array *x);

/* The caller's result; w as the caller gives it, [O, C, window] or [C, O, window]. */
ops_array *ops_convolution_direct(const ops_convolution_form *form, bool is_transposed,
                                  ops_array *x, ops_array *w, ops_array *bias);

#endif

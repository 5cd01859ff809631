/* Convolutions that copy no windows: the product's kernel reads them in the image (implicit GEMM,
 * gemm/windows.h). */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_IMPLICIT_H
#define OPS_SRC_COMPOSED_CONVOLUTION_IMPLICIT_H

#include "convolution.h"

/* Whether the convolution, or with is_gradient its gradient by the weights, is computed so: where
 * the device can and it takes less time than a copy of the windows and their product, or as the
 * context's choice says. A function of shapes, type and options. */
bool ops_convolution_is_implicit(const ops_convolution_form *form, const ops_array *x,
                                 bool is_gradient);

/* The channels of an image for products of windows: with zeros to whole accesses of matrix units,
 * where these multiply and there is one group. */
int64_t ops_convolution_implicit_channels(const ops_convolution_form *form, const ops_array *x);

/* As ops_convolution_place, with channels last and without gaps in memory. */
ops_array *ops_convolution_place_last(const ops_convolution_form *form, const int64_t *start,
                                      const int64_t *step, const int64_t *lengths, int64_t channels,
                                      ops_array *x);

/* The convolution of x [N, C, lengths], which ops_convolution_place_last made, with the channels of
 * ops_convolution_implicit_channels: the caller's result. */
ops_array *ops_convolution_implicit(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                    ops_array *bias);

/* Of a transposed convolution with steps, whose form has the steps and padding of the convolution
 * that it is the gradient of: whether it is computed by phases (see convolution_phases.c), at most
 * these numbers of them, and its result, of turned weights. */
#define OPS_CONVOLUTION_PHASES 8
#define OPS_CONVOLUTION_COPIED_PHASES 64
int64_t ops_convolution_phase_count(const ops_convolution_form *form); /* at most INT32_MAX */
bool ops_convolution_has_phases(const ops_convolution_form *form, bool is_implicit);
ops_array *ops_convolution_phases(const ops_convolution_form *form, bool is_implicit, ops_array *x,
                                  ops_array *w, ops_array *bias);

/* The same, with steps or without, of weights as they are, [groups C, O, window], by columns, the
 * products of x with each element of the window, which are added where windows overlap; and the
 * elements of the columns of an image, 0 where it is not computed so, with how many are added for
 * all phases, and the phases. */
double ops_convolution_column_elements(const ops_convolution_form *form, const ops_array *x,
                                       double *taps, double *phases);
ops_array *ops_convolution_by_columns(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                      ops_array *bias);

/* The gradient by the weights, of x without padding: [groups O, C, window]. */
ops_array *ops_convolution_implicit_weights(const ops_convolution_form *form, ops_array *x,
                                            ops_array *dy);

#endif

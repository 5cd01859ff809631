/* The time of a direct convolution (direct.h), and the axis of its lanes. */
#ifndef OPS_SRC_KERNELS_DIRECT_ESTIMATE_H
#define OPS_SRC_KERNELS_DIRECT_ESTIMATE_H

#include "direct_form.h"

/* Nanoseconds on one compute unit, about, and the spatial axis of lanes; -1: indices, offsets or
 * the window are too large. `line_of_x`, `line_of_y`: the axis whose elements are neighbours in
 * memory, or -1: with lanes along another one they are copied. */
double ops_direct_estimate(const ops_direct_form *form, const ops_direct_lengths *lengths,
                           const ops_convolution_tuning *tuning, int32_t line_of_x,
                           int32_t line_of_y, uint32_t *axis);

#endif

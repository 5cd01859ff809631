/* Transposed convolutions by phases, the elements of the result that are as many apart as the step:
 * these have the same elements of the window, so each phase is a convolution of x as it is, with a
 * part of the window and windows 1 apart. No zeros are multiplied. Here along one axis, for
 * direct_phase.c and composed/convolution_phases.c. */
#ifndef OPS_SRC_KERNELS_PHASES_H
#define OPS_SRC_KERNELS_PHASES_H

#include <stdbool.h>
#include <stdint.h>

/* The step, dilation and padding of the convolution of which this is the transpose, the elements of
 * its window, and the length of the result. */
typedef struct ops_phase_axis {
    int64_t step, dilation, before, window, results;
} ops_phase_axis;

/* Element first + t step of the result, for each of `places` numbers t, is the sum of `taps`
 * elements of the window, which may be none: tap, tap - tap_step, ... times elements of x from
 * position + t on, `apart` from each other. */
typedef struct ops_phase {
    int64_t first, places, taps, tap, tap_step, position, apart;
} ops_phase;

/* Phases that have elements of the window. A step may be much longer than the window. */
int64_t ops_phase_count(const ops_phase_axis *axis);

/* The phase that has element `least` of the window, less than ops_phase_count, as its first one. */
ops_phase ops_phase_of_tap(const ops_phase_axis *axis, int64_t least);

/* The phase of element `first` of the result, less than the step. */
ops_phase ops_phase_of_result(const ops_phase_axis *axis, int64_t first);

/* What all phases read of x: from -before to `end`, either of which may be outside of it. False:
 * none reads any. */
bool ops_phase_reach(const ops_phase_axis *axis, int64_t *before, int64_t *end);

/* The greatest common divisor; `b` may be 0. */
int64_t ops_common_divisor(int64_t a, int64_t b);

#endif

/* Small distortions of 8 x 8 pictures as matrices: a picture as a row of 64 times a distortion
 * matrix is the picture shifted, rotated and scaled. The device applies them by a matrix
 * product. */
#ifndef EXAMPLES_DIGITS_DISTORT_H
#define EXAMPLES_DIGITS_DISTORT_H

#include <stdint.h>

/* The largest shift in pixels, rotation in radians and change of scale. */
typedef struct distort_limits {
    double shift, turn, scale;
} distort_limits;

/* Fills `count` matrices of 64 x 64, row-major, from a seed. */
void distort_make(uint64_t seed, distort_limits limits, int64_t count, float *matrices);

#endif

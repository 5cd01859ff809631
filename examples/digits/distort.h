/* Small distortions of 8 by 8 pictures as matrices: a picture, as a row of 64, times a distortion
 * is the picture moved, turned and scaled a little. The device applies them by a matrix product. */
#ifndef DIGITS_DISTORT_H
#define DIGITS_DISTORT_H

#include <stdint.h>

/* How far a distortion may go, in pixels, radians and parts of the size. */
typedef struct distort_limits {
    double shift, turn, scale;
} distort_limits;

/* Fills `count` matrices of 64 x 64, row-major, from a seed. */
void distort_make(uint64_t seed, distort_limits limits, int64_t count, float *matrices);

#endif

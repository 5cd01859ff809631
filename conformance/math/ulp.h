/* ulp.h: how far a result is from the true value, in units in the last place of the result's
 * type. */
#ifndef CONFORMANCE_MATH_ULP_H
#define CONFORMANCE_MATH_ULP_H

/* The distance between actual and reference, with its fraction, in the unit that the type has at
 * the reference: a correctly rounded result is at most 0.5 away. Below the normal numbers the unit
 * is the smallest denormal. An infinite result counts as the power of two next after the largest
 * number, and is right where the reference rounds to it. Infinity is returned, and no distance,
 * when only one of the two is NaN, when a finite result takes the place of an infinite reference,
 * and when the reference is a zero of the other sign. Any NaN counts as NaN. Safe from any
 * thread. */
double ulp_distance_f32(float actual, double reference);
double ulp_distance_f64(double actual, long double reference);

#endif

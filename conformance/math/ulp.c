/* ulp.c: distances in units in the last place. */
#include "math/ulp.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Special cases of both types; true when `distance` is final. */
static bool is_decided(long double actual, long double reference, double *distance)
{
    if (isnan(actual) || isnan(reference)) {
        *distance = isnan(actual) && isnan(reference) ? 0.0 : (double)INFINITY;
        return true;
    }
    if (isinf(reference)) {
        *distance = actual == reference ? 0.0 : (double)INFINITY;
        return true;
    }
    if (reference == 0.0L && actual == 0.0L) {
        *distance = signbit(actual) == signbit(reference) ? 0.0 : (double)INFINITY;
        return true;
    }
    return false;
}

double ulp_distance_f32(float actual, double reference)
{
    double distance;
    if (is_decided(actual, reference, &distance)) {
        return distance;
    }
    if (isinf(actual) && (float)reference == actual) {
        return 0.0;
    }
    double value = isinf(actual) ? copysign(0x1p128, (double)actual) : (double)actual;
    /* The power of two below the reference, by its bits: 2^32 calls take a while. */
    double size = fmin(fmax(fabs(reference), 0x1p-126), 0x1p127);
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits &= UINT64_C(0x7ff0000000000000);
    double power;
    memcpy(&power, &bits, sizeof power);
    return fabs(value - reference) * 0x1p23 / power;
}

double ulp_distance_f64(double actual, long double reference)
{
    double distance;
    if (is_decided(actual, reference, &distance)) {
        return distance;
    }
    if (isinf(actual) && (double)reference == actual) {
        return 0.0;
    }
    long double value = isinf(actual) ? copysignl(0x1p1024L, (long double)actual) : actual;
    int exponent = ilogbl(fminl(fmaxl(fabsl(reference), 0x1p-1022L), 0x1p1023L));
    return (double)fabsl(ldexpl(value - reference, 52 - exponent));
}

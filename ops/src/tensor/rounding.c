/* Rounding of numbers of the host, see rounding.h. */
#include "rounding.h"

#include <math.h>

/* To nearest even with `digits` binary digits, the last of which is worth at least
 * 2^least_exponent. */
static double round_float(double value, int digits, int least_exponent, double largest)
{
    if (!isfinite(value) || value == 0) {
        return value;
    }
    int exponent;
    frexp(value, &exponent);
    int unit = exponent - digits > least_exponent ? exponent - digits : least_exponent;
    double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
    return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

double ops_round_to_integer(hal_type type, double value)
{
    int bits = 8 * (int)hal_type_size(type);
    int is_signed = hal_type_is_signed(type);
    double low = is_signed ? -ldexp(1.0, bits - 1) : 0.0;
    double high = ldexp(1.0, is_signed ? bits - 1 : bits) - (bits == 64 ? 0.0 : 1.0);
    if (isnan(value)) {
        return 0;
    }
    value = nearbyint(value);
    return value < low ? low : value > high ? high : value;
}

double ops_round_to(hal_type storage, double value)
{
    switch (storage) {
    case HAL_TYPE_F16:
        return round_float(value, 11, -24, 65504.0);
    case HAL_TYPE_BF16:
        return round_float(value, 8, -133, 0x1.fep127);
    case HAL_TYPE_F32:
        return (float)value;
    case HAL_TYPE_F64:
        return value;
    case HAL_TYPE_BOOL:
        return value != 0;
    default:
        return ops_round_to_integer(storage, value);
    }
}

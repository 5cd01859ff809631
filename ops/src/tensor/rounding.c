/* Rounding of numbers of the host, see rounding.h. */
#include "rounding.h"

#include <math.h>

/* To nearest even in the format of a narrow float. */
static double round_to_narrow(hal_type type, double value)
{
    const hal_float_format format = hal_type_float_format(type);
    const double overflow = copysign(format.infinite ? INFINITY : NAN, value);
    if (isnan(value) || value == 0) {
        return value;
    }
    if (isinf(value)) {
        return overflow;
    }
    int exponent;
    frexp(value, &exponent);
    const int last =
        exponent - format.digits > format.least ? exponent - format.digits : format.least;
    const double rounded = ldexp(nearbyint(ldexp(value, -last)), last);
    /* The significand of the largest number is all ones, or one less where all ones is NaN. */
    const double ones = ldexp(1.0, format.digits) - (format.infinite ? 1 : 2);
    const double largest = ldexp(ones, format.highest - format.digits + 1);
    return fabs(rounded) > largest ? overflow : rounded;
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
    if (hal_type_is_narrow_float(storage)) {
        return round_to_narrow(storage, value);
    }
    switch (storage) {
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

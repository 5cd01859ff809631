/* Rounding of numbers of the host, see rounding.h. */
#include "rounding.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A whole number of 2^`last` next to a finite `value`, even in a tie. Integer arithmetic, since the
 * thread may have another rounding mode. */
static double round_to_multiple(double value, int last)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    const int biased = (int)(bits >> 52 & 0x7ff);
    uint64_t significand = biased ? fraction | UINT64_C(1) << 52 : fraction;
    const int dropped = last - ((biased ? biased : 1) - 1075);
    if (dropped <= 0) {
        return value;
    }
    if (dropped > 54) {
        return copysign(0.0, value);
    }
    const uint64_t rest = significand & ((UINT64_C(1) << dropped) - 1);
    const uint64_t half = UINT64_C(1) << (dropped - 1);
    significand >>= dropped;
    significand += rest > half || (rest == half && (significand & 1));
    return copysign(ldexp((double)significand, last), value);
}

/* To nearest even in the format of a float of at most 32 bits. */
static double round_to_float(const hal_float_format *format, double value)
{
    const double overflow = copysign(format->infinite ? INFINITY : NAN, value);
    if (isnan(value) || value == 0) {
        return value;
    }
    if (isinf(value)) {
        return overflow;
    }
    int exponent;
    frexp(value, &exponent);
    const int last =
        exponent - format->digits > format->least ? exponent - format->digits : format->least;
    const double rounded = round_to_multiple(value, last);
    /* The significand of the largest number is all ones, or one less where all ones is NaN. */
    const double ones = ldexp(1.0, format->digits) - (format->infinite ? 1 : 2);
    const double largest = ldexp(ones, format->highest - format->digits + 1);
    return fabs(rounded) > largest ? overflow : rounded;
}

double ops_round_to_integer(hal_type type, double value)
{
    int bits = 8 * (int)hal_type_size(type);
    bool is_signed = hal_type_is_signed(type);
    double low = is_signed ? -ldexp(1.0, bits - 1) : 0.0;
    double high = ldexp(1.0, is_signed ? bits - 1 : bits) - (bits == 64 ? 0.0 : 1.0);
    if (isnan(value)) {
        return 0;
    }
    value = isinf(value) ? value : round_to_multiple(value, 0);
    return value < low ? low : value > high ? high : value;
}

double ops_subtract(double x, double y)
{
    /* Volatile, so that the subtraction is between the two calls. */
    volatile double from = x, taken = y, result;
    const int mode = fegetround();
    fesetround(FE_TONEAREST);
    result = from - taken;
    fesetround(mode);
    return result;
}

double ops_round_to(hal_type storage, double value)
{
    if (hal_type_is_float(storage) && storage != HAL_TYPE_F64) {
        const hal_float_format format = hal_type_float_format(storage);
        return round_to_float(&format, value);
    }
    switch (storage) {
    case HAL_TYPE_F64:
        return value;
    case HAL_TYPE_BOOL:
        return value != 0;
    default:
        return ops_round_to_integer(storage, value);
    }
}

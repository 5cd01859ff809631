/* number.c: elements of every type. */
#include "math/number.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

uint64_t number_mask(hal_type type)
{
    const uint32_t size = hal_type_size(type);
    return size >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

/* Of a narrow float: bits of the significand without the implicit one, the sign bit, and the bits
 * that numbers too large become, above which all are NaN. */
typedef struct narrow_parts {
    int mantissa;
    uint64_t sign, overflow;
    hal_float_format format;
} narrow_parts;

static inline narrow_parts narrow_parts_of(hal_type type)
{
    narrow_parts parts = {.format = hal_type_float_format(type)};
    parts.mantissa = parts.format.digits - 1;
    parts.sign = (number_mask(type) >> 1) + 1;
    parts.overflow = parts.sign - 1;
    if (parts.format.infinite) {
        parts.overflow = parts.overflow >> parts.mantissa << parts.mantissa;
    }
    return parts;
}

/* 2^exponent, of a normal double. */
static double power_of_two(int exponent)
{
    return number_f64((uint64_t)(exponent + 1023) << 52);
}

static double widen_float(hal_type type, uint64_t bits)
{
    const narrow_parts parts = narrow_parts_of(type);
    const uint64_t magnitude = bits & (parts.sign - 1);
    const uint64_t first = UINT64_C(1) << parts.mantissa, fraction = magnitude & (first - 1);
    const int exponent = (int)(magnitude >> parts.mantissa);
    double size;
    if (magnitude >= parts.overflow) {
        size = parts.format.infinite && fraction == 0 ? (double)INFINITY : (double)NAN;
    } else if (exponent == 0) {
        size = (double)fraction * power_of_two(parts.format.least);
    } else {
        size = (double)(fraction + first) * power_of_two(parts.format.least + exponent - 1);
    }
    return (bits & parts.sign) != 0 ? -size : size;
}

/* Rounds to nearest even by scaling so that the unit in the last place is 1. */
static uint64_t round_float(hal_type type, double value)
{
    const narrow_parts parts = narrow_parts_of(type);
    const uint64_t sign = signbit(value) ? parts.sign : 0;
    const int lowest = parts.format.least + parts.mantissa;
    const double size = fabs(value);
    if (isnan(value)) {
        return sign | parts.overflow | UINT64_C(1) << (parts.mantissa - 1);
    }
    if (size == 0.0) {
        return sign;
    }
    /* Of infinity 1024, which exceeds each; of denormal doubles too low, as all of them are. */
    int exponent = (int)(number_of_f64(size) >> 52) - 1023;
    if (exponent > parts.format.highest) {
        return sign | parts.overflow;
    }
    exponent = exponent < lowest ? lowest : exponent;
    const uint64_t units = (uint64_t)nearbyint(size * power_of_two(parts.mantissa - exponent));
    /* A carry out of the mantissa moves into the exponent, as it should. */
    const uint64_t bits = units + ((uint64_t)(exponent - lowest) << parts.mantissa);
    return sign | (bits > parts.overflow ? parts.overflow : bits);
}

static uint64_t integer_bits(hal_type type, double value)
{
    const uint64_t mask = number_mask(type);
    const bool is_signed = hal_type_is_signed(type);
    const uint64_t largest = is_signed ? mask >> 1 : mask;
    const uint64_t smallest = is_signed ? largest + 1 : 0;
    if (isnan(value)) {
        return 0;
    }
    if (value >= (double)largest && value > 0x1p52) {
        return largest;
    }
    if (value >= (double)largest + 1.0) {
        return largest;
    }
    if (value <= (is_signed ? -(double)smallest : 0.0)) {
        return smallest;
    }
    const uint64_t size = (uint64_t)fabs(value);
    return (value < 0 ? ~size + 1 : size) & mask;
}

uint64_t number_load(hal_type type, const void *elements, size_t index)
{
    const uint32_t size = hal_type_size(type);
    const uint8_t *at = (const uint8_t *)elements + index * size;
    uint64_t bits = 0;
    uint32_t word;
    uint16_t half;
    switch (size) {
    case 1:
        return *at;
    case 2:
        memcpy(&half, at, sizeof half);
        return half;
    case 4:
        memcpy(&word, at, sizeof word);
        return word;
    default:
        memcpy(&bits, at, sizeof bits);
        return bits;
    }
}

void number_store(hal_type type, void *elements, size_t index, uint64_t bits)
{
    const uint32_t size = hal_type_size(type);
    uint8_t *at = (uint8_t *)elements + index * size;
    switch (size) {
    case 1:
        *at = (uint8_t)bits;
        break;
    case 2:
        memcpy(at, &(uint16_t){(uint16_t)bits}, 2);
        break;
    case 4:
        memcpy(at, &(uint32_t){(uint32_t)bits}, 4);
        break;
    default:
        memcpy(at, &bits, sizeof bits);
    }
}

double number_value(hal_type type, uint64_t bits)
{
    if (hal_type_is_narrow_float(type)) {
        return widen_float(type, bits);
    }
    switch (type) {
    case HAL_TYPE_F32:
        return number_f32(bits);
    case HAL_TYPE_F64:
        return number_f64(bits);
    default:
        return (double)number_long_value(type, bits);
    }
}

long double number_long_value(hal_type type, uint64_t bits)
{
    if (hal_type_is_float(type)) {
        return (long double)number_value(type, bits);
    }
    if (hal_type_is_signed(type)) {
        return (long double)number_signed(type, bits);
    }
    return (long double)(bits & number_mask(type));
}

uint64_t number_bits(hal_type type, double value)
{
    if (hal_type_is_narrow_float(type)) {
        return round_float(type, value);
    }
    switch (type) {
    case HAL_TYPE_BOOL:
        return value != 0.0;
    case HAL_TYPE_F32:
        return number_of_f32((float)value);
    case HAL_TYPE_F64:
        return number_of_f64(value);
    default:
        return integer_bits(type, value);
    }
}

void number_put(hal_type type, void *elements, size_t index, double value)
{
    number_store(type, elements, index, number_bits(type, value));
}

double number_get(hal_type type, const void *elements, size_t index)
{
    return number_value(type, number_load(type, elements, index));
}

int64_t number_signed(hal_type type, uint64_t bits)
{
    const uint64_t mask = number_mask(type);
    bits &= mask;
    if (hal_type_is_signed(type) && (bits & ~(mask >> 1)) != 0) {
        bits |= ~mask;
    }
    int64_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t number_widen(hal_type type, uint64_t bits)
{
    if (hal_type_is_narrow_float(type)) {
        return number_of_f32((float)number_value(type, bits));
    }
    if (hal_type_is_signed(type)) {
        return (uint64_t)number_signed(type, bits) & number_mask(hal_type_of_value(type));
    }
    return bits & number_mask(type);
}

uint64_t number_narrow(hal_type type, uint64_t bits)
{
    if (hal_type_is_narrow_float(type)) {
        return number_bits(type, number_f32(bits));
    }
    return bits & number_mask(type);
}

double number_roundoff(hal_type type)
{
    return hal_type_is_float(type) ? ldexp(1.0, -hal_type_float_format(type).digits) : 0.0;
}

float number_f32(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

double number_f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t number_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

uint64_t number_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

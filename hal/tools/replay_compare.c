/* Compares elements by their type, see replay_compare.h. */
#include "replay_compare.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* An element: its bits, its value, and its rank among all numbers of its type. */
typedef struct element {
    uint64_t bits;
    double value;
    int64_t rank;
} element;

/* Adjacent floats have adjacent ranks; -0 is below 0. */
static int64_t float_rank(uint64_t bits, uint32_t width)
{
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return bits & sign ? -(int64_t)(bits & (sign - 1)) - 1 : (int64_t)bits;
}

static double narrow_value(hal_type type, uint32_t bits)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t size = bits & hal_type_magnitude_mask(type), first = 1u << (format.digits - 1);
    const uint32_t fraction = size & (first - 1), exponent = size / first;
    const uint32_t overflow = hal_type_overflow_bits(type);
    const double magnitude = size > overflow || (size == overflow && !format.infinite) ? NAN
                             : size == overflow                                        ? INFINITY
                             : exponent == 0
                                 ? ldexp(fraction, format.least)
                                 : ldexp(first + fraction, format.least + (int)exponent - 1);
    return bits == size ? magnitude : -magnitude;
}

static double float_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static element element_read(hal_type type, const uint8_t *at)
{
    const uint32_t size = hal_type_size(type);
    element e = {0};
    memcpy(&e.bits, at, size); /* little-endian, as all supported machines */
    if (hal_type_is_float(type)) {
        e.rank = float_rank(e.bits, 8 * size);
        if (type == HAL_TYPE_F64) {
            memcpy(&e.value, &e.bits, sizeof e.value);
        } else {
            e.value = type == HAL_TYPE_F32 ? float_value((uint32_t)e.bits)
                                           : narrow_value(type, (uint32_t)e.bits);
        }
        return e;
    }
    const uint32_t unused = 64 - 8 * size;
    e.rank = hal_type_is_signed(type) ? (int64_t)(e.bits << unused) >> unused : (int64_t)e.bits;
    e.value = type == HAL_TYPE_U64 ? (double)e.bits : (double)e.rank;
    return e;
}

static double largest_magnitude(hal_type type, const uint8_t *data, uint64_t count)
{
    double largest = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        const double magnitude = fabs(element_read(type, data + i * hal_type_size(type)).value);
        if (isfinite(magnitude) && magnitude > largest) {
            largest = magnitude;
        }
    }
    return largest;
}

/* The tolerance of a type: differences of sums in another order. */
static double usual_tolerance(hal_type type)
{
    switch (type) {
    case HAL_TYPE_F64:
        return 1e-12;
    case HAL_TYPE_F32:
        return 1e-5;
    case HAL_TYPE_F16:
        return 2e-3;
    default: /* about four times the roundoff; 1.6e-2 of BF16 */
        return hal_type_is_float(type) ? 4.096 * ldexp(1.0, -hal_type_float_format(type).digits)
                                       : 0.0;
    }
}

static void comparison_add(replay_comparison *result, uint64_t index, hal_type type, element here,
                           element recorded, double largest, const replay_bound *bound)
{
    const int floats = hal_type_is_float(type);
    if (floats && isnan(here.value) && isnan(recorded.value)) {
        return;
    }
    double absolute = fabs(here.value - recorded.value);
    absolute = isnan(absolute) ? INFINITY : absolute; /* a NaN, or two infinities */
    const double magnitude = fabs(recorded.value);
    const double relative = absolute == 0.0   ? 0.0
                            : magnitude > 0.0 ? absolute / magnitude
                                              : INFINITY;
    const uint64_t ulps = here.rank > recorded.rank ? (uint64_t)here.rank - (uint64_t)recorded.rank
                                                    : (uint64_t)recorded.rank - (uint64_t)here.rank;
    const double tolerance = bound->tolerance < 0.0 ? usual_tolerance(type) : bound->tolerance;
    const bool near = floats && isfinite(absolute) &&
                      ((tolerance > 0.0 && absolute <= tolerance * largest) ||
                       (bound->ulps != UINT64_MAX && ulps <= bound->ulps));
    result->unequal++;
    result->beyond += !near;
    if (result->unequal == 1 || absolute > result->absolute) {
        result->index = index;
        result->here = here.value;
        result->recorded = recorded.value;
        result->absolute = absolute;
    }
    result->relative = isnan(relative) || relative > result->relative ? relative : result->relative;
    result->ulps = ulps > result->ulps ? ulps : result->ulps;
}

void replay_compare(hal_type type, const uint8_t *here, const uint8_t *recorded, uint64_t bytes,
                    const replay_bound *bound, replay_comparison *result)
{
    const hal_type plain = hal_type_size(type) ? type : (hal_type)HAL_TYPE_U8;
    const uint32_t size = hal_type_size(plain);
    const uint64_t count = bytes / size;
    *result = (replay_comparison){.elements = count};
    if (bytes == 0 || memcmp(here, recorded, bytes) == 0) {
        return;
    }
    const double largest =
        hal_type_is_float(plain) ? largest_magnitude(plain, recorded, count) : 0.0;
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(here + i * size, recorded + i * size, size) != 0) {
            comparison_add(result, i, plain, element_read(plain, here + i * size),
                           element_read(plain, recorded + i * size), largest, bound);
        }
    }
    for (uint64_t at = count * size; at < bytes; at++) {
        result->unequal += here[at] != recorded[at];
        result->beyond += here[at] != recorded[at];
    }
}

/* reference.c: comparisons with a reference. */
#include "case/reference.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "math/number.h"
#include "case/canary.h"
#include "math/ulp.h"

/* What an element holds. Without infinities NaN is also what too large a number becomes: where a
 * number is expected, it is as an infinity with that number's sign. */
static double value_for(hal_type type, uint64_t actual, long double expected)
{
    const double value = number_value(type, actual);
    const bool overflows = hal_type_is_float(type) && !hal_type_float_format(type).infinite;
    return overflows && isnan(value) && !isnan(expected)
               ? copysign((double)INFINITY, (double)expected)
               : value;
}

/* The bits of a number, and whether it has them: any NaN is as good as another. */
static bool rounds_to(hal_type type, double value, uint64_t actual)
{
    const uint64_t bits = number_bits(type, value);
    return bits == actual || (isnan(number_value(type, bits)) && isnan(number_value(type, actual)));
}

/* As ulp.h, for floats that exist in memory only. */
static double small_float_ulps(hal_type type, uint64_t actual, long double expected)
{
    const hal_float_format format = hal_type_float_format(type);
    const int mantissa = format.digits - 1;
    const int lowest = format.least + mantissa;
    const int highest = format.highest;
    const double value = value_for(type, actual, expected);
    if (isnan(value) || isnan(expected)) {
        return isnan(value) && isnan(expected) ? 0.0 : (double)INFINITY;
    }
    if (isinf(expected) || (value == 0.0 && expected == 0.0L)) {
        const bool same = (long double)value == expected && !signbit(value) == !signbit(expected);
        return same ? 0.0 : (double)INFINITY;
    }
    if (isinf(value) && rounds_to(type, (double)expected, actual)) {
        return 0.0;
    }
    int exponent = expected == 0.0L ? lowest : ilogbl(expected);
    exponent = exponent < lowest ? lowest : exponent > highest ? highest : exponent;
    /* In place of what is too large, the next number that the format would have. */
    const long double ones = ldexpl(1.0L, format.digits) - (format.infinite ? 0 : 1);
    const long double next = ldexpl(ones, highest - mantissa);
    const long double near =
        isinf(value) ? copysignl(next, (long double)value) : (long double)value;
    return (double)fabsl(ldexpl(near - expected, mantissa - exponent));
}

/* The negated comparison catches distances that are NaN. */
static void note(comparison *found, size_t index, double distance, uint64_t actual,
                 long double expected)
{
    const bool is_wrong = !(distance <= found->bound);
    found->wrong += is_wrong;
    if (index == 0 || distance > found->worst || (is_wrong && found->wrong == 1)) {
        found->worst = distance;
        found->worst_index = index;
        found->actual = actual;
        found->expected = expected;
    }
}

static double parts_of_bound(hal_type type, uint64_t actual, long double expected, double bound)
{
    const long double value = hal_type_is_float(type)
                                  ? (long double)value_for(type, actual, expected)
                                  : number_long_value(type, actual);
    if (isnan(value) || isnan(expected)) {
        return isnan(value) && isnan(expected) ? 0.0 : (double)INFINITY;
    }
    if (value == expected) {
        return 0.0;
    }
    if (isinf(value)) {
        /* Right where the bound reaches beyond the largest number of the type. */
        const double far = (double)(expected + copysignl((long double)bound, value));
        return !isinf(expected) && rounds_to(type, far, actual) ? 1.0 : (double)INFINITY;
    }
    return isinf(expected) ? (double)INFINITY : (double)(fabsl(value - expected) / bound);
}

/* A single byte may be it by chance. */
static bool is_poison(const comparison *found)
{
    const uint32_t bytes = hal_type_size(found->type);
    return bytes > 1 && canary_first_broken(&found->actual, bytes) == bytes;
}

static bool needs_bits(hal_type type)
{
    return hal_type_is_float(type);
}

double reference_ulps(hal_type type, uint64_t actual, long double expected)
{
    if (hal_type_is_narrow_float(type)) {
        return small_float_ulps(type, actual, expected);
    }
    switch (type) {
    case HAL_TYPE_F32:
        return ulp_distance_f32(number_f32(actual), (double)expected);
    case HAL_TYPE_F64:
        return ulp_distance_f64(number_f64(actual), expected);
    default:
        return number_long_value(type, actual) == expected ? 0.0 : (double)INFINITY;
    }
}

bool compare_ulps(hal_type type, const void *actual, const long double *expected, size_t count,
                  double bound, comparison *found)
{
    *found = (comparison){.type = type, .unit = "ULP", .bound = bound, .count = count};
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = number_load(type, actual, i);
        note(found, i, reference_ulps(type, bits, expected[i]), bits, expected[i]);
    }
    return found->wrong == 0;
}

bool compare_bounds(hal_type type, const void *actual, const long double *expected,
                    const double *bounds, size_t count, comparison *found)
{
    *found = (comparison){.type = type, .unit = "of its bound", .bound = 1.0, .count = count};
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = number_load(type, actual, i);
        note(found, i, parts_of_bound(type, bits, expected[i], bounds[i]), bits, expected[i]);
    }
    return found->wrong == 0;
}

static bool is_nan(hal_type type, uint64_t bits)
{
    return hal_type_is_float(type) && isnan(number_value(type, bits));
}

bool compare_bits(hal_type type, const void *actual, const void *expected, size_t count,
                  bool any_nan, comparison *found)
{
    *found = (comparison){.type = type, .unit = NULL, .bound = 0.0, .count = count};
    for (size_t i = 0; i < count; i++) {
        const uint64_t bits = number_load(type, actual, i);
        const uint64_t wanted = number_load(type, expected, i);
        const bool same = bits == wanted || (any_nan && is_nan(type, bits) && is_nan(type, wanted));
        note(found, i, same ? 0.0 : 1.0, bits, number_long_value(type, wanted));
    }
    return found->wrong == 0;
}

void comparison_text(const comparison *found, char *text, size_t bytes)
{
    char distance[80] = "";
    if (found->unit) {
        snprintf(distance, sizeof distance, ", %.4g %s (bound %.4g)", found->worst, found->unit,
                 found->bound);
    }
    const char *poison = is_poison(found) ? "; that is the poison of unwritten memory, or memory "
                                            "outside of the operands"
                                          : "";
    if (needs_bits(found->type)) {
        snprintf(text, bytes,
                 "%zu of %zu are wrong; worst at index %zu: %.9Lg (bits 0x%" PRIx64
                 ") instead of %.17Lg%s%s",
                 found->wrong, found->count, found->worst_index,
                 number_long_value(found->type, found->actual), found->actual, found->expected,
                 distance, poison);
    } else {
        snprintf(text, bytes,
                 "%zu of %zu are wrong; worst at index %zu: %.20Lg instead of %.20Lg%s%s",
                 found->wrong, found->count, found->worst_index,
                 number_long_value(found->type, found->actual), found->expected, distance, poison);
    }
}

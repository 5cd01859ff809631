/* Compares the elements of an output. */
#include "compare.h"

#include "math/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_near(double actual, double expected, double relative, double absolute)
{
    if (isnan(expected) || isinf(expected)) {
        return isnan(expected) ? isnan(actual) : actual == expected;
    }
    return fabs(actual - expected) <= absolute + relative * fabs(expected);
}

/* Whether two finite values of a narrow float type are neighbours. */
static bool is_neighbour(hal_type type, double actual, double expected)
{
    return hal_type_is_narrow_float(type) && isfinite(actual) &&
           fabs(actual - expected) <= 4 * number_roundoff(type) * fabs(expected);
}

static onnx_verdict elements_compare(const void *actual, const onnx_tensor *expected,
                                     double relative, double absolute, char *reason, size_t bytes)
{
    const hal_type type = expected->type;
    const size_t count = expected->bytes / hal_type_size(type);
    onnx_verdict verdict = ONNX_PASS;
    for (size_t i = 0; i < count; i++) {
        const double a = number_get(type, actual, i), e = number_get(type, expected->elements, i);
        if (hal_type_is_float(type)
                ? is_near(a, e, relative, absolute)
                : number_load(type, actual, i) == number_load(type, expected->elements, i)) {
            continue;
        }
        if (!is_neighbour(type, a, e)) {
            snprintf(reason, bytes, "output element %zu of %zu (%s): expected %.9g, got %.9g", i,
                     count, hal_type_name(type), e, a);
            return ONNX_FAIL;
        }
        snprintf(reason, bytes, "%s rounded after each step, next to which ops rounds once",
                 hal_type_name(type));
        verdict = ONNX_NOT_COVERED;
    }
    return verdict;
}

onnx_verdict onnx_compare(ops_array *actual, const onnx_tensor *expected, double relative,
                          double absolute, char *reason, size_t bytes)
{
    bool fits = actual && ops_array_get_type(actual) == expected->type &&
                ops_array_get_rank(actual) == expected->rank;
    for (uint32_t i = 0; fits && i < expected->rank; i++) {
        fits = ops_array_get_length(actual, (int32_t)i) == expected->shape[i];
    }
    if (!fits) {
        snprintf(reason, bytes,
                 "an output: expected %s of rank %u with %zu bytes, got %s of rank %u with %lld "
                 "elements",
                 hal_type_name(expected->type), expected->rank, expected->bytes,
                 hal_type_name(ops_array_get_type(actual)), ops_array_get_rank(actual),
                 (long long)ops_array_get_element_count(actual));
        return ONNX_FAIL;
    }
    void *elements = malloc(expected->bytes + 1);
    if (!elements || ops_array_read(actual, expected->bytes, elements)) {
        snprintf(reason, bytes, "an output: %s", hal_status_message());
        free(elements);
        return ONNX_FAIL;
    }
    const onnx_verdict verdict =
        elements_compare(elements, expected, relative, absolute, reason, bytes);
    free(elements);
    return verdict;
}

/* checks one function of hal-math-exhaustive over all its inputs. */
#ifndef CONFORMANCE_MATH_EXHAUSTIVE_CHECK_H
#define CONFORMANCE_MATH_EXHAUSTIVE_CHECK_H

#include <stdbool.h>

#include "math/exhaustive_device.h"

#define MATH_MAX_THREADS 64

typedef struct check_options {
    const char *functions; /* names with commas between, or "all" */
    const char *json;
    const char *device; /* a selection; null for the default choice */
    bool is_reader;     /* plain C instead of a device */
    bool list;          /* names of functions only */
    uint64_t samples;
    uint64_t seed;
    uint64_t step;
    unsigned threads; /* that judge */
} check_options;

/* Result for one function. */
typedef struct check_result {
    const math_case *function;
    math_demand demand;
    math_worst worst;
    uint64_t inputs;
    double seconds;
} check_result;

/* Runs the function on the device, on plain C when that is null, and judges its results. */
hal_status check_function(const math_case *function, const check_options *options,
                          math_device *device, check_result *result);

#endif

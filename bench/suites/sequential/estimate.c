/* Double-precision references with a bound of the device's error. */
#include <float.h>
#include <math.h>

#include "suites/sequential/sequential.h"

static double apply(ops_unary_function function, double x)
{
    switch (function) {
    case OPS_NEG:
        return -x;
    case OPS_ABS:
        return fabs(x);
    case OPS_RELU:
        return fmax(x, 0.0);
    case OPS_SQUARE:
        return x * x;
    case OPS_EXP:
        return exp(x);
    case OPS_SIN:
        return sin(x);
    case OPS_COS:
        return cos(x);
    case OPS_TAN:
        return tan(x);
    case OPS_ATAN:
        return atan(x);
    case OPS_SINH:
        return sinh(x);
    case OPS_TANH:
        return tanh(x);
    case OPS_EXPM1:
        return expm1(x);
    case OPS_ERF:
        return erf(x);
    case OPS_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case OPS_SOFTPLUS:
        return fmax(x, 0.0) + log1p(exp(-fabs(x)));
    default:
        return (double)NAN;
    }
}

/* `units` in the last place of a float of that size, plus the error of a device without
 * denormals. */
static double rounding(double value, double units)
{
    return units * (double)FLT_EPSILON * value + (double)FLT_MIN;
}

static double ulps(ops_unary_function function)
{
    switch (function) {
    case OPS_NEG:
    case OPS_ABS:
    case OPS_RELU:
        return 0.0;
    case OPS_SQUARE:
        return 0.5;
    case OPS_ERF:
        return 16.0;
    default:
        return 5.0;
    }
}

estimate estimate_exact(double value)
{
    return (estimate){value, 0.0};
}

/* The functions are monotonic between x - error and x + error, or have an extremum there; the
 * square of the error covers the range beyond both ends. */
estimate estimate_unary(ops_unary_function function, estimate x)
{
    const double value = apply(function, x.value);
    const double above = fabs(apply(function, x.value + x.error) - value);
    const double below = fabs(apply(function, x.value - x.error) - value);
    const double error = fmax(above, below) + x.error * x.error;
    return (estimate){value, error + rounding(fabs(value) + error, ulps(function))};
}

estimate estimate_binary(ops_binary_function function, estimate x, estimate y)
{
    estimate result = {0.0, x.error + y.error};
    switch (function) {
    case OPS_ADD:
        result.value = x.value + y.value;
        break;
    case OPS_SUB:
        result.value = x.value - y.value;
        break;
    case OPS_MUL:
        result.value = x.value * y.value;
        result.error = fabs(x.value) * y.error + fabs(y.value) * x.error + x.error * y.error;
        break;
    case OPS_MINIMUM:
        return (estimate){fmin(x.value, y.value), fmax(x.error, y.error)};
    case OPS_MAXIMUM:
        return (estimate){fmax(x.value, y.value), fmax(x.error, y.error)};
    default:
        return (estimate){(double)NAN, 0.0};
    }
    result.error += rounding(fabs(result.value) + result.error, 0.5);
    return result;
}

bool estimate_check(bench_state *bench, const char *what, const float *values,
                    const estimate *expected, int count)
{
    for (int i = 0; i < count; i++) {
        const double difference = fabs((double)values[i] - expected[i].value);
        if (fabs(expected[i].value) + expected[i].error > 1e30) {
            continue; /* an intermediate float may overflow */
        }
        if (!(difference <= expected[i].error)) {
            return bench_fail(bench, "%s: element %d is %.9g instead of %.9g +- %.2g", what, i,
                              (double)values[i], expected[i].value, expected[i].error);
        }
    }
    return true;
}

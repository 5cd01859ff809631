/* What the cells of hal-bench grid compute, with references in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suites/grid/grid.h"

#define EPSILON 1e-5 /* added to variances */
#define LEAST 1e-12  /* of an L2 norm that is divided by */

static ops_array *apply_copy(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    (void)axis;
    return ops_array_copy(x);
}

static double point_copy(double x, double y)
{
    (void)y;
    return x;
}

/* f(x), with its reference. */
#define UNARY(name, reference)                                               \
    static ops_array *apply_##name(ops_array *x, ops_array *y, int32_t axis) \
    {                                                                        \
        (void)y;                                                             \
        (void)axis;                                                          \
        return ops_##name(x);                                                \
    }                                                                        \
    static double point_##name(double x, double y)                           \
    {                                                                        \
        (void)y;                                                             \
        return reference;                                                    \
    }
UNARY(neg, -x)
UNARY(exp, exp(x))
UNARY(tanh, tanh(x))
UNARY(gelu, 0.5 * x * (1.0 + erf(x * sqrt(0.5))))
#undef UNARY

static ops_array *apply_add(ops_array *x, ops_array *y, int32_t axis)
{
    (void)axis;
    return ops_add(x, y);
}

static double point_add(double x, double y)
{
    return x + y;
}

/* sigmoid(relu(x y + x)) */
static ops_array *apply_chain(ops_array *x, ops_array *y, int32_t axis)
{
    (void)axis;
    return ops_sigmoid(ops_relu(ops_add(ops_mul(x, y), x)));
}

static double point_chain(double x, double y)
{
    const double r = x * y + x;
    return 1.0 / (1.0 + exp(r > 0.0 ? -r : 0.0));
}

static ops_array *apply_where(ops_array *x, ops_array *y, int32_t axis)
{
    (void)axis;
    return ops_array_where(ops_lt(x, y), x, ops_neg(y));
}

static double point_where(double x, double y)
{
    return x < y ? x : -y;
}

/* A reduction along the axis. */
#define REDUCTION(name, REDUCTION_)                                          \
    static ops_array *apply_##name(ops_array *x, ops_array *y, int32_t axis) \
    {                                                                        \
        (void)y;                                                             \
        return ops_array_reduce(OPS_REDUCE_##REDUCTION_, axis, 0, x);        \
    }
REDUCTION(sum, SUM)
REDUCTION(mean, MEAN)
REDUCTION(max, MAX)
REDUCTION(argmax, ARGMAX)
#undef REDUCTION

static double sum_of(const double *x, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i];
    }
    return sum;
}

static double mean_of_squares(const double *x, int64_t count, double centre)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += (x[i] - centre) * (x[i] - centre);
    }
    return sum / (double)count;
}

static int64_t argmax_of(const double *x, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

static void row_sum(const double *x, int64_t count, double *results)
{
    results[0] = sum_of(x, count);
}

static void row_mean(const double *x, int64_t count, double *results)
{
    results[0] = sum_of(x, count) / (double)count;
}

static void row_max(const double *x, int64_t count, double *results)
{
    results[0] = x[argmax_of(x, count)];
}

static void row_argmax(const double *x, int64_t count, double *results)
{
    results[0] = (double)argmax_of(x, count);
}

static ops_array *apply_softmax(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    return ops_array_softmax(axis, x);
}

static ops_array *apply_log_softmax(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    return ops_array_log_softmax(axis, x);
}

static void row_log_softmax(const double *x, int64_t count, double *results)
{
    const double largest = x[argmax_of(x, count)];
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += exp(x[i] - largest);
    }
    for (int64_t i = 0; i < count; i++) {
        results[i] = x[i] - largest - log(sum);
    }
}

static void row_softmax(const double *x, int64_t count, double *results)
{
    row_log_softmax(x, count, results);
    for (int64_t i = 0; i < count; i++) {
        results[i] = exp(results[i]);
    }
}

static ops_array *mean_kept(ops_array *x, int32_t axis)
{
    return ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, x);
}

static ops_array *apply_variance(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    return ops_reduce_mean(ops_square(ops_sub(x, mean_kept(x, axis))), axis);
}

static void row_variance(const double *x, int64_t count, double *results)
{
    results[0] = mean_of_squares(x, count, sum_of(x, count) / (double)count);
}

static ops_array *apply_layer_norm(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    ops_array *d = ops_sub(x, mean_kept(x, axis));
    return ops_mul(d, ops_rsqrt(ops_add_scalar(mean_kept(ops_square(d), axis), EPSILON)));
}

static void row_layer_norm(const double *x, int64_t count, double *results)
{
    const double mean = sum_of(x, count) / (double)count;
    const double scale = 1.0 / sqrt(mean_of_squares(x, count, mean) + EPSILON);
    for (int64_t i = 0; i < count; i++) {
        results[i] = (x[i] - mean) * scale;
    }
}

static ops_array *apply_rms_norm(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    return ops_mul(x, ops_rsqrt(ops_add_scalar(mean_kept(ops_square(x), axis), EPSILON)));
}

static void row_rms_norm(const double *x, int64_t count, double *results)
{
    const double scale = 1.0 / sqrt(mean_of_squares(x, count, 0.0) + EPSILON);
    for (int64_t i = 0; i < count; i++) {
        results[i] = x[i] * scale;
    }
}

/* The sum of 10^5 squares is beyond f16. */
static ops_array *apply_l2_norm(ops_array *x, ops_array *y, int32_t axis)
{
    (void)y;
    ops_array *wide = ops_array_cast(HAL_TYPE_F32, x);
    ops_array *sum = ops_array_reduce(OPS_REDUCE_SUM, axis, 1, ops_square(wide));
    ops_array *norm = ops_maximum_scalar(ops_sqrt(sum), LEAST);
    return ops_array_cast(ops_array_get_type(x), ops_div(wide, norm));
}

static void row_l2_norm(const double *x, int64_t count, double *results)
{
    const double norm = sqrt(mean_of_squares(x, count, 0.0) * (double)count);
    for (int64_t i = 0; i < count; i++) {
        results[i] = x[i] / (norm > LEAST ? norm : LEAST);
    }
}

static ops_array *apply_gather(ops_array *x, ops_array *y, int32_t axis)
{
    return ops_array_gather(axis, x, y);
}

static ops_array *apply_concatenate(ops_array *x, ops_array *y, int32_t axis)
{
    ops_array *const parts[2] = {x, y};
    return ops_array_concatenate(axis, parts, 2);
}

/* Random cells draw from those before gather. */
static const grid_operation operations[] = {
    {"copy", GRID_POINTWISE, 1, apply_copy, point_copy, NULL, 0.0},
    {"neg", GRID_POINTWISE, 1, apply_neg, point_neg, NULL, 0.0},
    {"exp", GRID_POINTWISE, 1, apply_exp, point_exp, NULL, 0.0},
    {"tanh", GRID_POINTWISE, 1, apply_tanh, point_tanh, NULL, 0.0},
    {"gelu", GRID_POINTWISE, 1, apply_gelu, point_gelu, NULL, 0.0},
    {"add", GRID_POINTWISE, 2, apply_add, point_add, NULL, 0.0},
    {"chain", GRID_POINTWISE, 2, apply_chain, point_chain, NULL, 0.0},
    {"where", GRID_POINTWISE, 2, apply_where, point_where, NULL, 0.0},
    {"sum", GRID_REDUCTION, 1, apply_sum, NULL, row_sum, 0.5},
    {"mean", GRID_REDUCTION, 1, apply_mean, NULL, row_mean, -0.5},
    {"max", GRID_REDUCTION, 1, apply_max, NULL, row_max, 0.0},
    {"argmax", GRID_REDUCTION, 1, apply_argmax, NULL, row_argmax, 0.0},
    {"variance", GRID_REDUCTION, 1, apply_variance, NULL, row_variance, 0.0},
    {"softmax", GRID_ROWS, 1, apply_softmax, NULL, row_softmax, -1.0},
    {"log_softmax", GRID_ROWS, 1, apply_log_softmax, NULL, row_log_softmax, 0.0},
    {"layer_norm", GRID_ROWS, 1, apply_layer_norm, NULL, row_layer_norm, 0.0},
    {"rms_norm", GRID_ROWS, 1, apply_rms_norm, NULL, row_rms_norm, 0.0},
    {"l2_norm", GRID_ROWS, 1, apply_l2_norm, NULL, row_l2_norm, -0.5},
    {"gather", GRID_GATHER, 2, apply_gather, NULL, NULL, 0.0},
    {"concatenate", GRID_CONCATENATE, 2, apply_concatenate, NULL, NULL, 0.0},
    {"write", GRID_WRITE, 1, NULL, NULL, NULL, 0.0},
    {"read", GRID_READ, 1, NULL, NULL, NULL, 0.0},
    {"upload", GRID_UPLOAD, 1, NULL, NULL, NULL, 0.0},
    {"download", GRID_DOWNLOAD, 1, NULL, NULL, NULL, 0.0},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

const grid_operation *grid_operation_find(const char *name)
{
    for (int i = 0; i < OPERATIONS; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return &operations[i];
        }
    }
    return NULL;
}

const grid_operation *grid_operation_at(uint64_t draw)
{
    return &operations[draw % (uint64_t)(grid_operation_find("gather") - operations)];
}

/* Statistics as expressions of reductions, scans, sorts and gathers. */
#include "compose.h"

#include <math.h>
#include <ops/statistics.h>
#include <string.h>

/* Which axes are reduced, as bits; false after an error. */
static bool axes_bits(const char *function, const int32_t *axes, uint32_t count, const ops_array *x,
                      uint32_t *bits)
{
    *bits = axes ? 0 : (1u << x->view.rank) - 1;
    for (uint32_t i = 0; axes && i < count; i++) {
        uint32_t axis;
        if (ops_check_axis(function, "axes", &x->view, axes[i], &axis)) {
            return false;
        }
        if (*bits >> axis & 1) {
            ops_invalid("%s: axes: expected different axes, got axis %u twice", function, axis);
            return false;
        }
        *bits |= 1u << axis;
    }
    return true;
}

/* x with the reduced axes joined to one, the last, without a copy where they are neighbours in
 * memory; a copy elsewhere. `kept` gets the shape of the result, with axes of length 1 if they are
 * kept. */
static ops_array *join_axes(uint32_t bits, bool keeps, ops_array *x, uint32_t *kept_rank,
                            int64_t kept[OPS_MAX_RANK])
{
    int32_t order[OPS_MAX_RANK];
    int64_t shape[OPS_MAX_RANK + 1], joined = 1;
    uint32_t count = 0, outer = 0;
    *kept_rank = 0;
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (!(bits >> i & 1)) {
            shape[outer++] = x->view.shape[i];
            order[count++] = (int32_t)i;
        }
        if (keeps || !(bits >> i & 1)) {
            kept[(*kept_rank)++] = bits >> i & 1 ? 1 : x->view.shape[i];
        }
    }
    for (uint32_t i = 0; i < x->view.rank; i++) {
        if (bits >> i & 1) {
            joined *= x->view.shape[i];
            order[count++] = (int32_t)i;
        }
    }
    shape[outer] = joined;
    x = ops_array_permute(x, order);
    return x && outer < OPS_MAX_RANK ? ops_array_reshape(x, outer + 1, shape) : x;
}

typedef enum statistic { VARIANCE, NORM, LOG_SUM_EXP, ANY, ALL } statistic;

static ops_array *reduce_last(ops_reduction reduction, int keeps, ops_array *x)
{
    return ops_array_reduce(reduction, -1, keeps, x);
}

static ops_array *variance(double correction, ops_array *x)
{
    const int64_t n = x->view.shape[x->view.rank - 1];
    const double over = (double)n - correction;
    ops_array *centred = ops_sub(x, reduce_last(OPS_REDUCE_MEAN, 1, x));
    ops_array *sum = reduce_last(OPS_REDUCE_SUM, 0, ops_square(centred));
    return ops_div_scalar(sum, over > 0 ? over : 0);
}

static ops_array *norm(double p, ops_array *x)
{
    if (isinf(p)) {
        return reduce_last(p > 0 ? OPS_REDUCE_MAX : OPS_REDUCE_MIN, 0, ops_abs(x));
    }
    if (p == 0) {
        ops_array *differs = ops_ne(x, ops_compose_scalar(x, 0));
        return reduce_last(OPS_REDUCE_SUM, 0, ops_compose_cast(x->view.type, differs));
    }
    if (p == 1) {
        return reduce_last(OPS_REDUCE_SUM, 0, ops_abs(x));
    }
    if (p == 2) {
        return ops_sqrt(reduce_last(OPS_REDUCE_SUM, 0, ops_square(x)));
    }
    ops_array *sum = reduce_last(OPS_REDUCE_SUM, 0, ops_pow_scalar(ops_abs(x), p));
    return ops_pow_scalar(sum, 1 / p);
}

/* The maximum is subtracted unless it is infinite, which would give NaN. */
static ops_array *log_sum_exp(ops_array *x)
{
    ops_array *most = reduce_last(OPS_REDUCE_MAX, 1, x);
    ops_array *is_finite = ops_array_unary(OPS_IS_FINITE, most);
    ops_array *shift = ops_array_where(is_finite, most, ops_compose_scalar(x, 0));
    ops_array *sum = reduce_last(OPS_REDUCE_SUM, 1, ops_exp(ops_sub(x, shift)));
    ops_array *y = ops_add(ops_log(sum), shift);
    return y ? ops_array_reshape(y, y->view.rank - 1, y->view.shape) : NULL;
}

/* As the maximum or minimum of 0 and 1. */
static ops_array *any_or_all(bool is_any, ops_array *x)
{
    ops_array *differs = x;
    if (x->view.type != HAL_TYPE_BOOL) {
        differs = ops_ne(x, ops_compose_scalar(x, 0));
    }
    ops_array *number = ops_compose_cast(HAL_TYPE_I32, differs);
    ops_array *y = reduce_last(is_any ? OPS_REDUCE_MAX : OPS_REDUCE_MIN, 0, number);
    return ops_compose_cast(HAL_TYPE_BOOL, y);
}

static ops_array *compute(statistic kind, double parameter, ops_array *x)
{
    const hal_type type = x->view.type;
    if (kind == ANY || kind == ALL) {
        return any_or_all(kind == ANY, x);
    }
    x = ops_compose_cast(ops_compose_sum_type(type), x);
    ops_array *y = !x                    ? NULL
                   : kind == VARIANCE    ? variance(parameter, x)
                   : kind == LOG_SUM_EXP ? log_sum_exp(x)
                                         : norm(parameter, x);
    return ops_compose_cast(type, y);
}

static ops_array *reduce(const char *function, statistic kind, const int32_t *axes, uint32_t count,
                         bool keeps, double parameter, ops_array *x)
{
    uint32_t bits, rank;
    int64_t shape[OPS_MAX_RANK];
    const bool is_logic = kind == ANY || kind == ALL;
    if (!axes_bits(function, axes, count, x, &bits)) {
        return NULL;
    }
    if (!is_logic && (!hal_type_is_float(x->view.type) || isnan(parameter))) {
        ops_invalid("%s: x: expected floats, and a number, got %s and %s", function,
                    hal_type_name(x->view.type), isnan(parameter) ? "NaN" : "a number");
        return NULL;
    }
    ops_context *context = x->owner->context;
    ops_array *joined = join_axes(bits, keeps, x, &rank, shape);
    if (!joined) {
        return NULL;
    }
    if (joined->view.shape[joined->view.rank - 1] == 0 || ops_array_get_element_count(x) == 0) {
        if (is_logic) {
            return ops_array_full(context, HAL_TYPE_BOOL, rank, shape, kind == ALL);
        }
        char text[OPS_TEXT_BYTES];
        ops_invalid("%s: x: expected elements along the axes, got %s", function,
                    ops_describe(&x->view, text));
        return NULL;
    }
    ops_array *y = compute(kind, parameter, joined);
    return y ? ops_array_reshape(y, rank, shape) : NULL;
}

static ops_array *statistic_of(const char *function, statistic kind, const int32_t *axes,
                               uint32_t count, int keeps, double parameter, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    return arrays ? ops_compose_end(arrays,
                                    reduce(function, kind, axes, count, keeps != 0, parameter, x))
                  : NULL;
}

ops_array *ops_array_variance(const int32_t *axes, uint32_t axis_count, int keep_axes,
                              double correction, ops_array *x)
{
    return statistic_of("ops_array_variance", VARIANCE, axes, axis_count, keep_axes, correction, x);
}

ops_array *ops_array_norm(const int32_t *axes, uint32_t axis_count, int keep_axes, double p,
                          ops_array *x)
{
    return statistic_of("ops_array_norm", NORM, axes, axis_count, keep_axes, p, x);
}

ops_array *ops_array_log_sum_exp(const int32_t *axes, uint32_t axis_count, int keep_axes,
                                 ops_array *x)
{
    return statistic_of("ops_array_log_sum_exp", LOG_SUM_EXP, axes, axis_count, keep_axes, 0, x);
}

ops_array *ops_array_any(const int32_t *axes, uint32_t axis_count, int keep_axes, ops_array *x)
{
    return statistic_of("ops_array_any", ANY, axes, axis_count, keep_axes, 0, x);
}

ops_array *ops_array_all(const int32_t *axes, uint32_t axis_count, int keep_axes, ops_array *x)
{
    return statistic_of("ops_array_all", ALL, axes, axis_count, keep_axes, 0, x);
}

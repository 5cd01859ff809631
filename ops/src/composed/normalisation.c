/* Normalisations as expressions of reductions along one axis, or of two for batches. */
#include "compose.h"

#include <ops/normalisation.h>
#include <string.h>

typedef struct norm_shape {
    uint32_t rank;
    int64_t lengths[OPS_MAX_RANK];
} norm_shape;

/* Shapes of x: `rows` where the elements of a mean are the last axis, or of a batch [N, C, n] the
 * first and the last; `channels` where weights are applied: the same, or [N, C, n]. Shapes of the
 * others: `weights` as factors there, `means` of the caller. */
typedef struct norm_form {
    const char *function;
    bool is_batch;
    norm_shape rows, channels, weights, means;
} norm_form;

static int64_t product(const int64_t *lengths, uint32_t from, uint32_t to)
{
    int64_t volume = 1;
    for (uint32_t i = from; i < to; i++) {
        volume *= lengths[i];
    }
    return volume;
}

static hal_status check_operand(const char *function, const ops_array *x, bool fits)
{
    char text[OPS_TEXT_BYTES];
    return fits && hal_type_is_float(x->view.type) && ops_array_get_element_count(x) > 0
               ? HAL_OK
               : ops_invalid("%s: x: expected floats with elements, and axes or channels as the "
                             "arguments say, got %s",
                             function, ops_describe(&x->view, text));
}

static hal_status layer_form(const char *function, const ops_array *x, uint32_t axis_count,
                             norm_form *f)
{
    const uint32_t rank = x->view.rank;
    HAL_TRY(check_operand(function, x, axis_count >= 1 && axis_count <= rank));
    const uint32_t outer = rank - axis_count;
    const int64_t rows = product(x->view.shape, 0, outer);
    const int64_t n = product(x->view.shape, outer, rank);
    *f = (norm_form){.function = function,
                     .rows = {2, {rows, n}},
                     .channels = {2, {rows, n}},
                     .weights = {1, {n}},
                     .means = {.rank = outer}};
    memcpy(f->means.lengths, x->view.shape, outer * sizeof *x->view.shape);
    if (axis_count == 1) { /* without views, after which rows are not fused */
        f->rows.rank = f->channels.rank = rank;
        memcpy(f->rows.lengths, x->view.shape, rank * sizeof *x->view.shape);
        f->channels = f->rows;
    }
    return HAL_OK;
}

static hal_status group_form(const char *function, const ops_array *x, int64_t groups, norm_form *f)
{
    const int64_t *s = x->view.shape;
    HAL_TRY(check_operand(function, x, x->view.rank >= 2 && groups >= 1 && s[1] % groups == 0));
    const int64_t inner = product(s, 2, x->view.rank);
    *f = (norm_form){.function = function,
                     .rows = {2, {s[0] * groups, s[1] / groups * inner}},
                     .channels = {3, {s[0], s[1], inner}},
                     .weights = {2, {s[1], 1}},
                     .means = {2, {s[0], groups}}};
    return HAL_OK;
}

static hal_status batch_form(const char *function, const ops_array *x, norm_form *f)
{
    const int64_t *s = x->view.shape;
    HAL_TRY(check_operand(function, x, x->view.rank >= 2));
    const norm_shape all = {3, {s[0], s[1], product(s, 2, x->view.rank)}};
    *f = (norm_form){.function = function,
                     .is_batch = true,
                     .rows = all,
                     .channels = all,
                     .weights = {2, {s[1], 1}},
                     .means = {1, {s[1]}}};
    return HAL_OK;
}

/* Checks that an argument, null or not, has as many elements of a type as a shape. */
static hal_status check_argument(const norm_form *f, const char *name, hal_type type,
                                 const norm_shape *shape, const ops_array *argument)
{
    char text[OPS_TEXT_BYTES];
    const int64_t count = product(shape->lengths, 0, shape->rank);
    return !argument ||
                   (argument->view.type == type && ops_array_get_element_count(argument) == count)
               ? HAL_OK
               : ops_invalid("%s: %s: expected %lld elements of %s, got %s", f->function, name,
                             (long long)count, hal_type_name(type),
                             ops_describe(&argument->view, text));
}

static ops_array *with_shape(const norm_shape *shape, ops_array *x)
{
    const bool is_same =
        x && x->view.rank == shape->rank &&
        memcmp(x->view.shape, shape->lengths, shape->rank * sizeof *shape->lengths) == 0;
    return x && !is_same ? ops_array_reshape(x, shape->rank, shape->lengths) : x;
}

static ops_array *with_shape_of(const ops_array *x, ops_array *y)
{
    norm_shape shape = {.rank = x->view.rank};
    memcpy(shape.lengths, x->view.shape, shape.rank * sizeof *shape.lengths);
    return with_shape(&shape, y);
}

/* x in a shape and in the type of sums. */
static ops_array *wide_with_shape(const norm_shape *shape, ops_array *x)
{
    return x ? ops_compose_cast(ops_compose_sum_type(x->view.type), with_shape(shape, x)) : NULL;
}

/* The mean along the elements that share one, which keep axes of length 1. */
static ops_array *mean_of(const norm_form *f, ops_array *x)
{
    ops_array *mean = ops_array_reduce(OPS_REDUCE_MEAN, (int32_t)f->rows.rank - 1, 1, x);
    return f->is_batch ? ops_array_reduce(OPS_REDUCE_MEAN, 0, 1, mean) : mean;
}

/* Means and scales of the caller as factors in the shape of rows. */
static ops_array *means_to_rows(const norm_form *f, ops_array *means)
{
    norm_shape shape = f->rows;
    shape.lengths[shape.rank - 1] = 1;
    shape.lengths[0] = f->is_batch ? 1 : shape.lengths[0];
    return with_shape(&shape, means);
}

/* The sum for each channel, in the shape of an array of weights and in a type. */
static ops_array *sum_of_channels(const norm_form *f, hal_type type, const ops_array *weight,
                                  ops_array *x)
{
    const norm_shape flat = {1, {product(f->weights.lengths, 0, f->weights.rank)}};
    ops_array *sum = x;
    if (f->weights.rank == 2) { /* [N, C, n] */
        sum = ops_array_reduce(OPS_REDUCE_SUM, 2, 0, sum);
    } else {
        sum = ops_array_reshape(sum, 2, (int64_t[]){-1, flat.lengths[0]});
    }
    sum = ops_compose_cast(type, ops_array_reduce(OPS_REDUCE_SUM, 0, 0, sum));
    return weight ? ops_array_reshape(sum, weight->view.rank, weight->view.shape)
                  : with_shape(&flat, sum);
}

/* The normalised y times weight plus bias, in x's shape and type. */
static ops_array *apply_weights(const norm_form *f, const ops_array *x, ops_array *y,
                                ops_array *weight, ops_array *bias)
{
    y = with_shape(&f->channels, y);
    y = weight ? ops_mul(y, wide_with_shape(&f->weights, weight)) : y;
    y = bias ? ops_add(y, wide_with_shape(&f->weights, bias)) : y;
    return with_shape_of(x, ops_compose_cast(x->view.type, y));
}

/* Writes what is wanted to `results`, in the order result, mean, scale. */
static void normalise(const norm_form *f, ops_array *x, ops_array *weight, ops_array *bias,
                      double epsilon, bool subtracts, ops_array *results[3])
{
    ops_array *rows = wide_with_shape(&f->rows, x);
    ops_array *mean = subtracts && rows ? mean_of(f, rows) : NULL;
    ops_array *centred = subtracts ? ops_sub(rows, mean) : rows;
    ops_array *variance = centred ? mean_of(f, ops_square(centred)) : NULL;
    ops_array *scale = ops_rsqrt(ops_add_scalar(variance, epsilon));
    results[0] = apply_weights(f, x, ops_mul(centred, scale), weight, bias);
    results[1] = with_shape(&f->means, mean);
    results[2] = with_shape(&f->means, scale);
}

/* Checks, computes, and passes the results on. */
static ops_array *normalise_all(ops_arrays *arrays, const norm_form *f, ops_array *x,
                                ops_array *weight, ops_array *bias, double epsilon, bool subtracts,
                                ops_normalised more)
{
    ops_array *results[3] = {NULL, NULL, NULL};
    const hal_type type = x->view.type;
    if (check_argument(f, "weight", type, &f->weights, weight) == HAL_OK &&
        check_argument(f, "bias", type, &f->weights, bias) == HAL_OK) {
        normalise(f, x, weight, bias, epsilon, subtracts, results);
    }
    results[1] = results[0] && more.mean ? results[1] : NULL;
    results[2] = results[0] && more.scale ? results[2] : NULL;
    ops_compose_end_all(arrays, results, 3);
    if (more.mean) {
        *more.mean = results[1];
    }
    if (more.scale) {
        *more.scale = results[2];
    }
    return results[0];
}

/* Begins a normalisation of up to three operands of which the last may be null. */
static ops_arrays *begin(const char *function, ops_array *x, ops_array *weight, ops_array *bias,
                         ops_normalised more)
{
    ops_array *operands[3] = {x};
    uint32_t count = 1;
    if (weight) {
        operands[count++] = weight;
    }
    if (bias) {
        operands[count++] = bias;
    }
    if (more.mean) {
        *more.mean = NULL;
    }
    if (more.scale) {
        *more.scale = NULL;
    }
    return ops_compose_begin(function, operands, count);
}

ops_array *ops_array_layer_norm(ops_array *x, uint32_t axis_count, ops_array *weight,
                                ops_array *bias, double epsilon, ops_normalised more)
{
    norm_form f;
    ops_arrays *arrays = begin("ops_array_layer_norm", x, weight, bias, more);
    return !arrays ? NULL
           : layer_form("ops_array_layer_norm", x, axis_count, &f)
               ? ops_compose_end(arrays, NULL)
               : normalise_all(arrays, &f, x, weight, bias, epsilon, true, more);
}

ops_array *ops_array_rms_norm(ops_array *x, uint32_t axis_count, ops_array *weight, double epsilon,
                              ops_normalised more)
{
    norm_form f;
    ops_arrays *arrays = begin("ops_array_rms_norm", x, weight, NULL, more);
    return !arrays ? NULL
           : layer_form("ops_array_rms_norm", x, axis_count, &f)
               ? ops_compose_end(arrays, NULL)
               : normalise_all(arrays, &f, x, weight, NULL, epsilon, false, more);
}

ops_array *ops_array_group_norm(ops_array *x, int64_t groups, ops_array *weight, ops_array *bias,
                                double epsilon, ops_normalised more)
{
    norm_form f;
    ops_arrays *arrays = begin("ops_array_group_norm", x, weight, bias, more);
    return !arrays ? NULL
           : group_form("ops_array_group_norm", x, groups, &f)
               ? ops_compose_end(arrays, NULL)
               : normalise_all(arrays, &f, x, weight, bias, epsilon, true, more);
}

ops_array *ops_array_batch_norm(ops_array *x, ops_array *weight, ops_array *bias, double epsilon,
                                ops_normalised more)
{
    norm_form f;
    ops_arrays *arrays = begin("ops_array_batch_norm", x, weight, bias, more);
    return !arrays ? NULL
           : batch_form("ops_array_batch_norm", x, &f)
               ? ops_compose_end(arrays, NULL)
               : normalise_all(arrays, &f, x, weight, bias, epsilon, true, more);
}

static ops_array *normalise_given(ops_array *x, ops_array *mean, ops_array *variance,
                                  ops_array *weight, ops_array *bias, double epsilon)
{
    norm_form f;
    const hal_type type = x->view.type;
    if (batch_form("ops_array_batch_norm_given", x, &f) ||
        check_argument(&f, "mean", mean->view.type, &f.means, mean) ||
        check_argument(&f, "variance", variance->view.type, &f.means, variance) ||
        check_argument(&f, "weight", type, &f.weights, weight) ||
        check_argument(&f, "bias", type, &f.weights, bias)) {
        return NULL;
    }
    const hal_type wide = ops_compose_sum_type(type);
    ops_array *scale = ops_compose_cast(wide, with_shape(&f.weights, variance));
    scale = ops_rsqrt(ops_add_scalar(scale, epsilon));
    ops_array *y = ops_sub(wide_with_shape(&f.channels, x),
                           ops_compose_cast(wide, with_shape(&f.weights, mean)));
    return apply_weights(&f, x, ops_mul(y, scale), weight, bias);
}

ops_array *ops_array_batch_norm_given(ops_array *x, ops_array *mean, ops_array *variance,
                                      ops_array *weight, ops_array *bias, double epsilon)
{
    ops_array *operands[5] = {x, mean, variance};
    uint32_t count = 3;
    if (weight) {
        operands[count++] = weight;
    }
    if (bias) {
        operands[count++] = bias;
    }
    ops_arrays *arrays = ops_compose_begin("ops_array_batch_norm_given", operands, count);
    return arrays
               ? ops_compose_end(arrays, normalise_given(x, mean, variance, weight, bias, epsilon))
               : NULL;
}

/* Writes the gradients by x, weight and bias to `results`. */
static void differentiate(const norm_form *f, ops_array *dy, ops_array *x, ops_array *mean,
                          ops_array *scale, ops_array *weight, ops_array *results[3])
{
    const hal_type type = x->view.type;
    ops_array *wide_dy = wide_with_shape(&f->channels, dy);
    ops_array *g = weight ? ops_mul(wide_dy, wide_with_shape(&f->weights, weight)) : wide_dy;
    ops_array *rows = wide_with_shape(&f->rows, x);
    scale = means_to_rows(f, scale);
    ops_array *y = mean ? ops_sub(rows, means_to_rows(f, mean)) : rows;
    y = ops_mul(y, scale);
    g = with_shape(&f->rows, g);
    ops_array *product_mean = y && g ? mean_of(f, ops_mul(g, y)) : NULL;
    ops_array *inner = ops_sub(g, ops_mul(y, product_mean));
    inner = mean && inner ? ops_sub(inner, mean_of(f, g)) : inner;
    results[0] = with_shape_of(x, ops_compose_cast(type, ops_mul(scale, inner)));
    ops_array *products = ops_mul(wide_dy, with_shape(&f->channels, y));
    results[1] = products ? sum_of_channels(f, type, weight, products) : NULL;
    results[2] = wide_dy ? sum_of_channels(f, type, weight, wide_dy) : NULL;
}

static ops_arrays *begin_gradients(const char *function, ops_array *dy, ops_array *x,
                                   ops_array *mean, ops_array *scale, ops_array *weight)
{
    ops_array *operands[5] = {dy, x, scale};
    uint32_t count = 3;
    if (mean) {
        operands[count++] = mean;
    }
    if (weight) {
        operands[count++] = weight;
    }
    return ops_compose_begin(function, operands, count);
}

static hal_status differentiate_all(ops_arrays *arrays, const norm_form *f, ops_array *dy,
                                    ops_array *x, ops_array *mean, ops_array *scale,
                                    ops_array *weight, ops_norm_gradients gradients)
{
    ops_array **const places[3] = {gradients.x, gradients.weight, gradients.bias};
    norm_shape whole = {.rank = x->view.rank};
    ops_array *results[3] = {NULL, NULL, NULL};
    const hal_type type = x->view.type, wide = ops_compose_sum_type(type);
    memcpy(whole.lengths, x->view.shape, whole.rank * sizeof *whole.lengths);
    hal_status status = check_argument(f, "dy", type, &whole, dy);
    status = status ? status : check_argument(f, "mean", wide, &f->means, mean);
    status = status ? status : check_argument(f, "scale", wide, &f->means, scale);
    status = status ? status : check_argument(f, "weight", type, &f->weights, weight);
    if (status == HAL_OK) {
        differentiate(f, dy, x, mean, scale, weight, results);
        status = results[0] && results[1] && results[2] ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < 3; i++) {
        results[i] = places[i] && status == HAL_OK ? results[i] : NULL;
    }
    ops_compose_end_all(arrays, results, 3);
    for (uint32_t i = 0; i < 3; i++) {
        if (places[i]) {
            *places[i] = results[i];
        }
    }
    return status;
}

/* After a failure: closes the scope, if it is open, and clears the places of the gradients. */
static hal_status refuse_gradients(ops_arrays *arrays, ops_norm_gradients gradients)
{
    ops_array **const places[3] = {gradients.x, gradients.weight, gradients.bias};
    for (uint32_t i = 0; i < 3; i++) {
        if (places[i]) {
            *places[i] = NULL;
        }
    }
    if (arrays) {
        ops_compose_end(arrays, NULL);
    }
    return HAL_ERROR_INVALID_ARGUMENT;
}

hal_status ops_array_layer_norm_gradients(ops_array *dy, ops_array *x, uint32_t axis_count,
                                          ops_array *mean, ops_array *scale, ops_array *weight,
                                          ops_norm_gradients gradients)
{
    const char *function = "ops_array_layer_norm_gradients";
    norm_form f;
    ops_arrays *arrays = begin_gradients(function, dy, x, mean, scale, weight);
    if (!arrays || layer_form(function, x, axis_count, &f)) {
        return refuse_gradients(arrays, gradients);
    }
    return differentiate_all(arrays, &f, dy, x, mean, scale, weight, gradients);
}

hal_status ops_array_group_norm_gradients(ops_array *dy, ops_array *x, int64_t groups,
                                          ops_array *mean, ops_array *scale, ops_array *weight,
                                          ops_norm_gradients gradients)
{
    const char *function = "ops_array_group_norm_gradients";
    norm_form f;
    ops_arrays *arrays = begin_gradients(function, dy, x, mean, scale, weight);
    if (!arrays || group_form(function, x, groups, &f)) {
        return refuse_gradients(arrays, gradients);
    }
    return differentiate_all(arrays, &f, dy, x, mean, scale, weight, gradients);
}

hal_status ops_array_batch_norm_gradients(ops_array *dy, ops_array *x, ops_array *mean,
                                          ops_array *scale, ops_array *weight,
                                          ops_norm_gradients gradients)
{
    const char *function = "ops_array_batch_norm_gradients";
    norm_form f;
    ops_arrays *arrays = begin_gradients(function, dy, x, mean, scale, weight);
    if (!arrays || batch_form(function, x, &f)) {
        return refuse_gradients(arrays, gradients);
    }
    return differentiate_all(arrays, &f, dy, x, mean, scale, weight, gradients);
}

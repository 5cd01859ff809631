/* Normalisations and losses. */
#include "operators.h"

#include <ops/normalisation.h>
#include <string.h>

static ops_array *input(const onnx_call *c, uint32_t i)
{
    return c->node->input_count > i ? c->x[i] : NULL;
}

/* Weights of a type that differs from x's are cast to it. */
static ops_array *like(const onnx_call *c, ops_array *x, uint32_t i)
{
    ops_array *w = input(c, i);
    return w ? ops_array_cast(ops_array_get_type(x), w) : NULL;
}

/* Means in x's rank, with axes of length 1. */
static ops_array *means_like(const ops_array *x, int32_t axis, ops_array *means)
{
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(x, shape);
    for (uint32_t i = (uint32_t)axis; i < rank; i++) {
        shape[i] = 1;
    }
    return means ? ops_array_reshape(means, rank, shape) : NULL;
}

static void map_layer(onnx_call *c)
{
    ops_array *x = c->x[0], *mean, *scale;
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", -1));
    const uint32_t count = ops_array_get_rank(x) - (uint32_t)axis;
    c->y[0] =
        ops_array_layer_norm(x, count, like(c, x, 1), like(c, x, 2),
                             onnx_number(c, "epsilon", 1e-5), (ops_normalised){&mean, &scale});
    c->y[1] = means_like(x, axis, mean);
    c->y[2] = means_like(x, axis, scale);
}

static void map_rms(onnx_call *c)
{
    ops_array *x = c->x[0];
    const int32_t axis = onnx_axis(x, onnx_integer(c, "axis", -1));
    const uint32_t count = ops_array_get_rank(x) - (uint32_t)axis;
    int64_t shape[ONNX_MAX_RANK];
    onnx_shape(x, shape);
    ops_array *weight = like(c, x, 1);
    weight = weight ? ops_array_broadcast(weight, count, shape + axis) : NULL;
    c->y[0] = ops_array_rms_norm(x, count, weight, onnx_number(c, "epsilon", 1e-5),
                                 (ops_normalised){NULL, NULL});
}

static void map_group(onnx_call *c)
{
    const int64_t groups = onnx_integer(c, "num_groups", 1);
    c->y[0] = ops_array_group_norm(c->x[0], groups, c->x[1], c->x[2],
                                   onnx_number(c, "epsilon", 1e-5), (ops_normalised){NULL, NULL});
}

static void map_instance(onnx_call *c)
{
    c->y[0] = ops_array_group_norm(c->x[0], ops_array_get_length(c->x[0], 1), c->x[1], c->x[2],
                                   onnx_number(c, "epsilon", 1e-5), (ops_normalised){NULL, NULL});
}

static void map_batch(onnx_call *c)
{
    const double epsilon = onnx_number(c, "epsilon", 1e-5), kept = onnx_number(c, "momentum", 0.9);
    ops_array *x = c->x[0], *mean, *scale;
    if (!onnx_integer(c, "training_mode", 0)) {
        c->y[0] = ops_array_batch_norm_given(x, c->x[3], c->x[4], c->x[1], c->x[2], epsilon);
        return;
    }
    c->y[0] = ops_array_batch_norm(x, c->x[1], c->x[2], epsilon, (ops_normalised){&mean, &scale});
    ops_array *variance = ops_add_scalar(ops_reciprocal(ops_square(scale)), -epsilon);
    c->y[1] = ops_add(ops_mul_scalar(c->x[3], kept), ops_mul_scalar(mean, 1 - kept));
    c->y[2] = ops_add(ops_mul_scalar(c->x[4], kept), ops_mul_scalar(variance, 1 - kept));
}

/* Minus the logarithms of the classes' probabilities times their weights. x is [N, C, ...]. */
static ops_array *losses(onnx_call *c, ops_array *x, ops_array *target, ops_array *weight,
                         const onnx_attribute *ignored, ops_array **weights)
{
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(x, shape);
    const hal_type type = ops_array_get_type(x);
    target = ops_array_cast(HAL_TYPE_I64, target);
    ops_array *skipped =
        ops_array_scalar(c->context, HAL_TYPE_I64, ignored ? (double)ignored->integer : -1e9);
    ops_array *counts = ops_ne(target, skipped);
    ops_array *place =
        ops_array_where(counts, target, ops_array_scalar(c->context, HAL_TYPE_I64, 0));
    shape[1] = 1;
    ops_array *picked = ops_array_take_along_axis(1, x, ops_array_reshape(place, rank, shape));
    memmove(shape + 1, shape + 2, (rank - 2) * sizeof *shape);
    picked = ops_array_reshape(picked, rank - 1, shape);
    ops_array *w = ops_array_cast(type, counts);
    if (weight) {
        const int64_t count = ops_array_get_element_count(place);
        ops_array *of_class = ops_array_gather(0, weight, ops_array_reshape(place, 1, &count));
        w = ops_mul(w, ops_array_reshape(of_class, rank - 1, shape));
    }
    *weights = w;
    return ops_neg(ops_mul(picked, w));
}

static ops_array *reduced(onnx_call *c, ops_array *loss, ops_array *weights)
{
    const char *word = onnx_text(c, "reduction", "mean");
    if (strcmp(word, "none") == 0) {
        return loss;
    }
    ops_array *sum = ops_array_reduce_axes(OPS_REDUCE_SUM, NULL, 0, 0, loss);
    return strcmp(word, "sum") == 0
               ? sum
               : ops_div(sum, ops_array_reduce_axes(OPS_REDUCE_SUM, NULL, 0, 0, weights));
}

static void map_loss(onnx_call *c)
{
    ops_array *weights;
    ops_array *loss =
        losses(c, c->x[0], c->x[1], input(c, 2), onnx_find(c, "ignore_index"), &weights);
    c->y[0] = reduced(c, loss, weights);
}

static void map_softmax_loss(onnx_call *c)
{
    ops_array *weights, *logarithm = ops_array_log_softmax(1, c->x[0]);
    ops_array *loss =
        losses(c, logarithm, c->x[1], input(c, 2), onnx_find(c, "ignore_index"), &weights);
    c->y[0] = reduced(c, loss, weights);
    c->y[1] = logarithm;
}

const onnx_operator onnx_norm_operators[] = {
    {"LayerNormalization", map_layer},
    {"RMSNormalization", map_rms},
    {"GroupNormalization", map_group},
    {"InstanceNormalization", map_instance},
    {"BatchNormalization", map_batch},
    {"NegativeLogLikelihoodLoss", map_loss},
    {"SoftmaxCrossEntropyLoss", map_softmax_loss},
    {NULL, NULL},
};

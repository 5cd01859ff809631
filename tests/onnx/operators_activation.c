/* Activations that are expressions of array calls. */
#include "operators.h"

#include <string.h>

static ops_array *scalar_of(const onnx_call *c, double value)
{
    return ops_array_scalar(c->context, ops_array_get_type(c->x[0]), value);
}

/* x where it is above 0, else `otherwise`. */
static ops_array *positive_or(const onnx_call *c, ops_array *otherwise)
{
    ops_array *x = c->x[0];
    return ops_array_where(ops_gt(x, scalar_of(c, 0)), x, otherwise);
}

static void map_elu(onnx_call *c)
{
    ops_array *below = ops_array_unary(OPS_EXPM1, c->x[0]);
    c->y[0] = positive_or(c, ops_mul_scalar(below, onnx_number(c, "alpha", 1)));
}

static void map_selu(onnx_call *c)
{
    const double alpha = onnx_number(c, "alpha", 1.67326319217681884765625);
    const double gamma = onnx_number(c, "gamma", 1.05070102214813232421875);
    ops_array *below = ops_mul_scalar(ops_array_unary(OPS_EXPM1, c->x[0]), alpha);
    c->y[0] = ops_mul_scalar(positive_or(c, below), gamma);
}

static void map_celu(onnx_call *c)
{
    const double alpha = onnx_number(c, "alpha", 1);
    ops_array *below = ops_array_unary(OPS_EXPM1, ops_div_scalar(c->x[0], alpha));
    c->y[0] = positive_or(c, ops_mul_scalar(below, alpha));
}

static void map_leaky_relu(onnx_call *c)
{
    c->y[0] = positive_or(c, ops_mul_scalar(c->x[0], onnx_number(c, "alpha", 0.01)));
}

static void map_prelu(onnx_call *c)
{
    c->y[0] = positive_or(c, ops_mul(c->x[0], c->x[1]));
}

static ops_array *hard_sigmoid(ops_array *x, double alpha, double beta)
{
    ops_array *line = ops_add_scalar(ops_mul_scalar(x, alpha), beta);
    return ops_minimum_scalar(ops_maximum_scalar(line, 0), 1);
}

static void map_hard_sigmoid(onnx_call *c)
{
    c->y[0] = hard_sigmoid(c->x[0], onnx_number(c, "alpha", 0.2), onnx_number(c, "beta", 0.5));
}

static void map_hard_swish(onnx_call *c)
{
    c->y[0] = ops_mul(c->x[0], hard_sigmoid(c->x[0], 1.0 / 6, 0.5));
}

static void map_mish(onnx_call *c)
{
    c->y[0] = ops_mul(c->x[0], ops_tanh(ops_softplus(c->x[0])));
}

static void map_thresholded_relu(onnx_call *c)
{
    ops_array *passes = ops_gt(c->x[0], scalar_of(c, onnx_number(c, "alpha", 1)));
    c->y[0] = ops_array_where(passes, c->x[0], scalar_of(c, 0));
}

static void map_shrink(onnx_call *c)
{
    ops_array *x = c->x[0];
    const double lambda = onnx_number(c, "lambd", 0.5), bias = onnx_number(c, "bias", 0);
    ops_array *above =
        ops_array_where(ops_gt(x, scalar_of(c, lambda)), ops_add_scalar(x, -bias), scalar_of(c, 0));
    c->y[0] = ops_array_where(ops_lt(x, scalar_of(c, -lambda)), ops_add_scalar(x, bias), above);
}

static void map_softsign(onnx_call *c)
{
    c->y[0] = ops_div(c->x[0], ops_add_scalar(ops_abs(c->x[0]), 1));
}

static void map_gelu(onnx_call *c)
{
    ops_array *x = c->x[0];
    if (strcmp(onnx_text(c, "approximate", "none"), "tanh") != 0) {
        c->y[0] = ops_gelu(x);
        return;
    }
    ops_array *cube = ops_mul(ops_square(x), x);
    ops_array *inner =
        ops_mul_scalar(ops_add(x, ops_mul_scalar(cube, 0.044715)), 0.79788456080286535588);
    c->y[0] = ops_mul_scalar(ops_mul(x, ops_add_scalar(ops_tanh(inner), 1)), 0.5);
}

static void map_swish(onnx_call *c)
{
    ops_array *x = c->x[0];
    c->y[0] = ops_mul(x, ops_sigmoid(ops_mul_scalar(x, onnx_number(c, "alpha", 1))));
}

const onnx_operator onnx_activation_operators[] = {
    {"Elu", map_elu},
    {"Selu", map_selu},
    {"Celu", map_celu},
    {"LeakyRelu", map_leaky_relu},
    {"PRelu", map_prelu},
    {"HardSigmoid", map_hard_sigmoid},
    {"HardSwish", map_hard_swish},
    {"Mish", map_mish},
    {"ThresholdedRelu", map_thresholded_relu},
    {"Shrink", map_shrink},
    {"Softsign", map_softsign},
    {"Gelu", map_gelu},
    {"Swish", map_swish},
    {NULL, NULL},
};

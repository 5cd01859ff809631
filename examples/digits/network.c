/* The dense network; used by main.c. */
#include "network.h"

#include <math.h>
#include <string.h>

#define TRY(call)                                                                                 \
    do {                                                                                          \
        hal_status status_ = (call);                                                              \
        if (status_ != HAL_OK) {                                                                  \
            return status_;                                                                       \
        }                                                                                         \
    } while (0)

/* Declares the first four inputs of an epilogue of a matrix product; returns the value, input 0. */
static hal_ir_value begin_epilogue(hal_ir_builder *b)
{
    hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i <= 3; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32); /* row, column and batch are not needed */
    }
    return value;
}

/* relu(value + bias), or without the relu. */
static hal_status make_layer_expression(const char *name, int relu, ops_expression **expression)
{
    hal_ir_builder *b;
    TRY(hal_ir_builder_create_fragment(name, &b));
    hal_ir_value value = begin_epilogue(b);
    value = hal_ir_add(b, value, hal_ir_input(b, 4, HAL_TYPE_F32));
    hal_ir_output(b, 0, relu ? ops_unary_value(b, OPS_RELU, value) : value);
    return ops_expression_create(b, expression);
}

/* The gradient of relu: passes the error where the layer's output is above 0. */
static hal_status make_relu_back(ops_expression **expression)
{
    hal_ir_builder *b;
    TRY(hal_ir_builder_create_fragment("relu_back", &b));
    hal_ir_value error = begin_epilogue(b);
    hal_ir_value output = hal_ir_input(b, 4, HAL_TYPE_F32);
    hal_ir_value zero = hal_ir_f32(b, 0);
    hal_ir_output(b, 0, hal_ir_select(b, hal_ir_gt(b, output, zero), error, zero));
    return ops_expression_create(b, expression);
}

/* (probability - target) / batch: the gradient of the mean cross-entropy. */
static hal_status make_loss_back(int64_t batch, ops_expression **expression)
{
    hal_ir_builder *b;
    TRY(hal_ir_builder_create_fragment("loss_back", &b));
    hal_ir_value probability = hal_ir_input(b, 0, HAL_TYPE_F32);
    hal_ir_value difference = hal_ir_sub(b, probability, hal_ir_input(b, 1, HAL_TYPE_F32));
    hal_ir_output(b, 0, hal_ir_mul(b, difference, hal_ir_f32(b, 1 / (float)batch)));
    return ops_expression_create(b, expression);
}

/* velocity = momentum velocity + gradient + decay weight; weight = weight - rate velocity. */
static hal_status make_update(double momentum, double decay, ops_expression **expression)
{
    hal_ir_builder *b;
    TRY(hal_ir_builder_create_fragment("update", &b));
    hal_ir_value weight = hal_ir_input(b, 0, HAL_TYPE_F32);
    hal_ir_value gradient = hal_ir_input(b, 1, HAL_TYPE_F32);
    hal_ir_value velocity = hal_ir_input(b, 2, HAL_TYPE_F32);
    hal_ir_value rate = hal_ir_input(b, 3, HAL_TYPE_F32);
    gradient = hal_ir_fma(b, hal_ir_f32(b, (float)decay), weight, gradient);
    velocity = hal_ir_fma(b, hal_ir_f32(b, (float)momentum), velocity, gradient);
    hal_ir_output(b, 0, hal_ir_fma(b, hal_ir_neg(b, rate), velocity, weight));
    hal_ir_output(b, 1, velocity);
    return ops_expression_create(b, expression);
}

static hal_status make_expressions(network *net, double momentum, double decay)
{
    TRY(make_layer_expression("relu_layer", 1, &net->relu_layer));
    TRY(make_layer_expression("last_layer", 0, &net->last_layer));
    TRY(make_relu_back(&net->relu_back));
    TRY(make_loss_back(net->batch, &net->loss_back));
    return make_update(momentum, decay, &net->update);
}

static hal_status make_layer(network *net, uint32_t number, uint64_t seed)
{
    network_layer *layer = &net->layers[number];
    ops_context *context = net->context;
    const int64_t weight[2] = {layer->inputs, layer->outputs};
    const int64_t bias[2] = {1, layer->outputs};
    const int64_t output[2] = {net->batch, layer->outputs};
    const ops_random_key key = {.seed = seed, .stream = number};
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, weight, &layer->weight));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, weight, &layer->weight_gradient));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, weight, &layer->weight_velocity));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, bias, &layer->bias));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, bias, &layer->bias_gradient));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, bias, &layer->bias_velocity));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, output, &layer->output));
    TRY(ops_tensor_create(context, HAL_TYPE_F32, 2, output, &layer->error));
    TRY(ops_random_normal(context, key, 0, sqrt(2.0 / (double)layer->inputs), &layer->weight));
    TRY(ops_fill(context, 0, &layer->bias));
    TRY(ops_fill(context, 0, &layer->weight_velocity));
    return ops_fill(context, 0, &layer->bias_velocity);
}

static hal_status create_all(network *net, const int64_t *widths, double momentum, double decay,
                             uint64_t seed)
{
    TRY(make_expressions(net, momentum, decay));
    for (uint32_t i = 0; i < net->layer_count; i++) {
        net->layers[i].inputs = widths[i];
        net->layers[i].outputs = widths[i + 1];
        TRY(make_layer(net, i, seed));
    }
    return HAL_OK;
}

static void destroy_layer(network_layer *layer)
{
    ops_tensor_release(&layer->weight);
    ops_tensor_release(&layer->weight_gradient);
    ops_tensor_release(&layer->weight_velocity);
    ops_tensor_release(&layer->bias);
    ops_tensor_release(&layer->bias_gradient);
    ops_tensor_release(&layer->bias_velocity);
    ops_tensor_release(&layer->output);
    ops_tensor_release(&layer->error);
}

/* The backward pass: gradients of all weights and biases. */
static hal_status backward(network *net, const ops_tensor *input, const ops_tensor *target)
{
    network_layer *last = &net->layers[net->layer_count - 1];
    const ops_tensor difference[2] = {last->error, *target};
    TRY(ops_softmax(net->context, 1, &last->output, &last->error));
    TRY(ops_pointwise(net->context, net->loss_back, difference, 2, &last->error, 1));
    for (uint32_t i = net->layer_count; i-- > 0;) {
        network_layer *layer = &net->layers[i];
        const ops_tensor *x = i == 0 ? input : &net->layers[i - 1].output;
        ops_tensor x_transposed, weight_transposed;
        TRY(ops_tensor_transpose(x, 0, 1, &x_transposed));
        TRY(ops_gemm(net->context, NULL, &x_transposed, &layer->error, &layer->weight_gradient));
        TRY(ops_reduce(net->context, OPS_REDUCE_SUM, 0, &layer->error, NULL,
                       &layer->bias_gradient));
        if (i > 0) {
            ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                        .alpha = 1,
                                        .epilogue = net->relu_back,
                                        .inputs = x,
                                        .input_count = 1};
            TRY(ops_tensor_transpose(&layer->weight, 0, 1, &weight_transposed));
            TRY(ops_gemm(net->context, &options, &layer->error, &weight_transposed,
                         &net->layers[i - 1].error));
        }
    }
    return HAL_OK;
}

/* Averages the gradients over the ranks of the communicator. */
static hal_status average_gradients(network *net)
{
    ops_tensor gradients[2 * NETWORK_MAX_LAYERS];
    if (!net->comm) {
        return HAL_OK;
    }
    for (uint32_t i = 0; i < net->layer_count; i++) {
        gradients[2 * i] = net->layers[i].weight_gradient;
        gradients[2 * i + 1] = net->layers[i].bias_gradient;
    }
    return ops_comm_all_reduce(net->context, net->comm, HAL_REDUCE_MEAN, gradients,
                                2 * net->layer_count, NULL);
}

/* Updates weights and biases. */
static hal_status apply(network *net, const ops_tensor *rate)
{
    for (uint32_t i = 0; i < net->layer_count; i++) {
        network_layer *layer = &net->layers[i];
        const ops_tensor weight_in[4] = {layer->weight, layer->weight_gradient,
                                         layer->weight_velocity, *rate};
        const ops_tensor weight_out[2] = {layer->weight, layer->weight_velocity};
        const ops_tensor bias_in[4] = {layer->bias, layer->bias_gradient, layer->bias_velocity,
                                       *rate};
        const ops_tensor bias_out[2] = {layer->bias, layer->bias_velocity};
        TRY(ops_pointwise(net->context, net->update, weight_in, 4, weight_out, 2));
        TRY(ops_pointwise(net->context, net->update, bias_in, 4, bias_out, 2));
    }
    return HAL_OK;
}

hal_status network_create(ops_context *context, const int64_t *widths, uint32_t layer_count,
                          int64_t batch, double momentum, double decay, uint64_t seed,
                          network *net)
{
    *net = (network){.context = context, .batch = batch, .layer_count = layer_count};
    hal_status status = create_all(net, widths, momentum, decay, seed);
    if (status != HAL_OK) {
        network_destroy(net);
    }
    return status;
}

void network_destroy(network *net)
{
    for (uint32_t i = 0; i < net->layer_count; i++) {
        destroy_layer(&net->layers[i]);
    }
    ops_expression_destroy(net->relu_layer);
    ops_expression_destroy(net->last_layer);
    ops_expression_destroy(net->relu_back);
    ops_expression_destroy(net->loss_back);
    ops_expression_destroy(net->update);
    *net = (network){0};
}

hal_status network_forward(network *net, const ops_tensor *input)
{
    for (uint32_t i = 0; i < net->layer_count; i++) {
        network_layer *layer = &net->layers[i];
        ops_gemm_options options = {
            .size = sizeof(ops_gemm_options),
            .alpha = 1,
            .epilogue = i + 1 < net->layer_count ? net->relu_layer : net->last_layer,
            .inputs = &layer->bias,
            .input_count = 1,
        };
        const ops_tensor *x = i == 0 ? input : &net->layers[i - 1].output;
        TRY(ops_gemm(net->context, &options, x, &layer->weight, &layer->output));
    }
    return HAL_OK;
}

hal_status network_train(network *net, const ops_tensor *input, const ops_tensor *target,
                         const ops_tensor *rate)
{
    TRY(network_forward(net, input));
    TRY(backward(net, input, target));
    TRY(average_gradients(net));
    return apply(net, rate);
}

const ops_tensor *network_output(const network *net)
{
    return &net->layers[net->layer_count - 1].output;
}

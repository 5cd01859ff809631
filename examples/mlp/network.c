/* The dense network as arrays, see network.h.
 *
 * Every function opens a scope, which releases the intermediate arrays at its end; ops_array_keep
 * takes the results out of it. A call on a null array returns null, so that only the results have
 * to be checked. */
#include "network.h"

#include <math.h>
#include <string.h>

/* Arrays report failures as null: hal has the message, the status is lost. */
static hal_status arrays_status(ops_array *const *arrays, int count)
{
    hal_status status = HAL_OK;
    for (int i = 0; i < count; i++) {
        status = arrays[i] ? status : HAL_ERROR_INVALID_STATE;
    }
    return status;
}

static ops_array *transposed(ops_array *x)
{
    return ops_array_transpose(x, 0, 1);
}

/* Whether a rank has some columns of the layer's weight, or some rows. */
static int layer_has_columns(const network *net, int i)
{
    return net->comm && net->divides == NETWORK_DIVIDES_LAYERS && i % 2 == 0 && i + 1 < net->layers;
}

static int layer_has_rows(const network *net, int i)
{
    return net->comm && net->divides == NETWORK_DIVIDES_LAYERS && i % 2 == 1;
}

/* The sum over the ranks; null after a failure. */
static ops_array *ranks_sum(const network *net, ops_array *part)
{
    ops_array *sum = NULL;
    if (!part) {
        hal_comm_abort(net->comm, hal_status_message()); /* the others must not wait */
        return NULL;
    }
    return ops_array_all_reduce(net->comm, HAL_REDUCE_SUM, &part, 1, NULL, &sum) == HAL_OK ? sum
                                                                                           : NULL;
}

static ops_array *matrix_product(const network *net, ops_array *a, ops_array *b)
{
    return net->levels > 0 ? ops_array_matmul_by_levels(a, b, net->levels)
                           : ops_array_matmul(a, b, net->precision);
}

/* Layer i. Product, sum and relu become one kernel: what follows a product is its epilogue. */
static ops_array *layer_output(const network *net, int i, ops_array *x)
{
    ops_array *product = matrix_product(net, x, net->state[2 * i]);
    if (layer_has_rows(net, i)) {
        product = ranks_sum(net, product);
    }
    ops_array *y = ops_add(product, net->state[2 * i + 1]);
    return i + 1 < net->layers ? ops_relu(y) : y;
}

/* The mean cross-entropy of a batch, 1 x 1. */
static ops_array *mean_loss(ops_array *logits, ops_array *target)
{
    ops_array *terms = ops_mul(ops_array_log_softmax(1, logits), target);
    ops_array *sum = ops_array_reduce_axes(OPS_REDUCE_SUM, NULL, 0, 1, terms);
    return ops_mul_scalar(sum, -1.0 / (double)ops_array_get_length(target, 0));
}

/* The gradients go from the last layer to the first: for y = x W + b and the gradient g with
 * respect to y, that with respect to W is x^T g, to b the sum of g's rows, to x g W^T. gradients[i]
 * is with respect to state[i]. */
static void layers_differentiate(const network *net, ops_array *const *outputs, ops_array *target,
                                 ops_array **gradients)
{
    /* Of softmax and cross-entropy together: (probability - target) / batch. */
    ops_array *probability = ops_array_softmax(1, outputs[net->layers]);
    ops_array *gradient =
        ops_mul_scalar(ops_sub(probability, target), 1.0 / (double)ops_array_get_length(target, 0));
    ops_array *zero = ops_array_scalar(net->context, HAL_TYPE_F32, 0);
    for (int i = net->layers - 1; i >= 0; i--) {
        ops_array *x = outputs[i];
        gradients[2 * i] = matrix_product(net, transposed(x), gradient);
        gradients[2 * i + 1] = ops_array_reduce(OPS_REDUCE_SUM, 0, 1, gradient);
        if (i > 0) { /* x is the previous layer's relu, which passes gradients where it is not 0 */
            ops_array *of_x = matrix_product(net, gradient, transposed(net->state[2 * i]));
            of_x = layer_has_columns(net, i) ? ranks_sum(net, of_x) : of_x;
            gradient = ops_array_where(ops_gt(x, zero), of_x, zero);
        }
    }
}

/* The next state and the loss of a batch. If it is divided, each rank has the mean over its part,
 * so that the mean over the ranks is that over the batch. */
static hal_status layers_learn(const network *net, ops_array *const *outputs, ops_array *target,
                               ops_array *rate, ops_array **next)
{
    const int states = 2 * net->layers;
    ops_array *means[NETWORK_MAX_STATE + 1]; /* gradients, and the loss */
    layers_differentiate(net, outputs, target, means);
    means[states] = mean_loss(outputs[net->layers], target);
    if (net->comm && net->divides == NETWORK_DIVIDES_BATCH) {
        hal_status status = ops_array_all_reduce(net->comm, HAL_REDUCE_MEAN, means,
                                                 (uint32_t)states + 1, NULL, means);
        if (status != HAL_OK) {
            return status;
        }
    }
    for (int i = 0; i < states; i++) {
        next[i] = ops_sub(net->state[i], ops_mul(rate, means[i]));
    }
    next[states] = means[states];
    return HAL_OK;
}

/* The rank's columns (axis 1) or rows (0). */
static ops_array *rank_part(const hal_comm_status *ranks, ops_array *whole, int32_t axis)
{
    const int64_t length = ops_array_get_length(whole, axis) / ranks->count;
    return ops_array_slice(whole, axis, ranks->rank * length, length, 1);
}

/* He-initialised: K. He et al., "Delving Deep into Rectifiers", 2015. Copies of the zeros, because
 * inputs of graphs cannot be constants or views. */
hal_status network_create(const int64_t *widths, int layers, uint64_t seed, network *net)
{
    ops_context *context = net->context;
    hal_comm_status ranks = {.count = 1};
    hal_status status = net->comm ? hal_comm_get_status(net->comm, &ranks) : HAL_OK;
    net->layers = layers;
    if (status == HAL_OK) {
        status = ops_scope_begin(context);
    }
    if (status != HAL_OK) {
        return status;
    }
    for (int i = 0; i < layers; i++) {
        const int64_t weight[2] = {widths[i], widths[i + 1]}, bias[2] = {1, widths[i + 1]};
        const ops_random_key key = {.seed = seed, .stream = (uint64_t)i};
        const double deviation = sqrt(2 / (double)widths[i]);
        ops_array *arrays[2] = {
            ops_array_normal(context, HAL_TYPE_F32, 2, weight, key, 0, deviation),
            ops_array_full(context, HAL_TYPE_F32, 2, bias, 0)};
        if (layer_has_columns(net, i)) {
            arrays[0] = rank_part(&ranks, arrays[0], 1);
            arrays[1] = rank_part(&ranks, arrays[1], 1);
        } else if (layer_has_rows(net, i)) {
            arrays[0] = rank_part(&ranks, arrays[0], 0);
        }
        net->state[2 * i] = ops_array_keep(ops_array_copy(arrays[0]));
        net->state[2 * i + 1] = ops_array_keep(ops_array_copy(arrays[1]));
    }
    ops_scope_end(context);
    return arrays_status(net->state, 2 * layers);
}

void network_destroy(network *net)
{
    for (int i = 0; i < 2 * net->layers; i++) {
        ops_array_release(net->state[i]);
    }
    *net = (network){0};
}

hal_status network_train(const network *net, ops_array *input, ops_array *target, ops_array *rate,
                         ops_array **next)
{
    ops_array *outputs[NETWORK_MAX_LAYERS + 1] = {input};
    const int count = 2 * net->layers + 1;
    hal_status status = ops_scope_begin(net->context);
    if (status != HAL_OK) {
        return status;
    }
    for (int i = 0; i < net->layers; i++) {
        outputs[i + 1] = layer_output(net, i, outputs[i]);
    }
    memset(next, 0, (size_t)count * sizeof(*next));
    status = layers_learn(net, outputs, target, rate, next);
    for (int i = 0; i < count; i++) {
        ops_array_keep(next[i]);
    }
    ops_scope_end(net->context);
    status = status == HAL_OK ? arrays_status(next, count) : status;
    for (int i = 0; status != HAL_OK && i < count; i++) {
        ops_array_release(next[i]);
        next[i] = NULL;
    }
    return status;
}

hal_status network_prepare(network *net, int64_t rows)
{
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    options.precision = net->precision;
    options.levels = net->levels;
    options.rows = rows;
    for (int i = 0; i < net->layers; i++) {
        ops_array *prepared = ops_array_keep(ops_array_prepare(net->state[2 * i], &options));
        if (!prepared) {
            return HAL_ERROR_INVALID_STATE;
        }
        ops_array_release(net->state[2 * i]);
        net->state[2 * i] = prepared;
    }
    return HAL_OK;
}

ops_array *network_classify(const network *net, ops_array *input)
{
    if (ops_scope_begin(net->context) != HAL_OK) {
        return NULL;
    }
    ops_array *y = input;
    for (int i = 0; i < net->layers; i++) {
        y = layer_output(net, i, y);
    }
    ops_array *classes = ops_array_keep(ops_array_reduce(OPS_REDUCE_ARGMAX, 1, 0, y));
    ops_scope_end(net->context);
    return classes;
}

/* The cases of the suite kernels, see kernels.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/kernels/kernels.h"

/* A whole number from `least` to `most`: small ones as likely as large ones. */
static int64_t draw_length(kernels_draw *d, int64_t least, int64_t most)
{
    const double unit = (double)(bench_word(d->random) >> 11) * 0x1p-53;
    const double low = log((double)least), high = log((double)most + 1.0);
    const int64_t length = (int64_t)exp(low + unit * (high - low));
    return length < least ? least : length > most ? most : length;
}

static uint32_t draw_below(kernels_draw *d, uint32_t count)
{
    return (uint32_t)(bench_word(d->random) >> 33) % count;
}

/* Zeros. */
static ops_array *input_add(kernels_draw *d, hal_type type, uint32_t rank, const int64_t *shape)
{
    size_t bytes = hal_type_size(type);
    for (uint32_t i = 0; i < rank; i++) {
        bytes *= (size_t)shape[i];
    }
    void *zeros = calloc(1, bytes);
    ops_array *array = zeros && d->input_count < KERNELS_MAX_ARRAYS
                           ? ops_array_from_host(d->ops, type, rank, shape, zeros)
                           : NULL;
    free(zeros);
    return array ? d->inputs[d->input_count++] = array : NULL;
}

static ops_array *matrix_add(kernels_draw *d, hal_type type, int64_t rows, int64_t columns)
{
    return input_add(d, type, 2, (const int64_t[2]){rows, columns});
}

static bool result_add(kernels_draw *d, ops_array *array)
{
    if (!array || d->result_count == KERNELS_MAX_ARRAYS) {
        return false;
    }
    d->results[d->result_count++] = ops_array_keep(array);
    return true;
}

/* A shape of 1 to 4 axes. */
static uint32_t draw_shape(kernels_draw *d, int64_t *shape)
{
    const uint32_t rank = 1 + draw_below(d, 4);
    const double most = pow((double)d->largest, 1.0 / rank);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = draw_length(d, 1, (int64_t)most);
    }
    return rank;
}

/* ---- Products ---- */

static bool product_prepare(kernels_draw *d, hal_type type)
{
    const int64_t most = (int64_t)cbrt((double)d->largest) * 4;
    const int64_t m = draw_length(d, 1, most), n = draw_length(d, 1, most);
    const int64_t k = draw_length(d, 1, most), batch = draw_below(d, 4) ? 1 : draw_length(d, 2, 9);
    const bool turn_a = draw_below(d, 2), turn_b = draw_below(d, 2);
    const int64_t a[3] = {batch, turn_a ? k : m, turn_a ? m : k};
    const int64_t b[3] = {batch, turn_b ? n : k, turn_b ? k : n};
    d->size[0] = turn_a;
    d->size[1] = turn_b;
    return input_add(d, type, 3, a) && input_add(d, type, 3, b);
}

static bool product_f32(kernels_draw *d)
{
    return product_prepare(d, HAL_TYPE_F32);
}

static bool product_bf16(kernels_draw *d)
{
    return product_prepare(d, HAL_TYPE_BF16);
}

static bool product_compute(kernels_draw *d)
{
    ops_array *a = d->size[0] ? ops_array_transpose(d->inputs[0], 1, 2) : d->inputs[0];
    ops_array *b = d->size[1] ? ops_array_transpose(d->inputs[1], 1, 2) : d->inputs[1];
    const uint32_t precision =
        ops_array_get_type(a) == HAL_TYPE_F32 ? HAL_GEMM_STRICT : HAL_GEMM_FAST;
    return result_add(d, ops_array_matmul(a, b, precision));
}

/* ---- Elementwise work ---- */

/* x of a permuted shape, y and z broadcast along some axes. */
static bool pointwise_prepare(kernels_draw *d)
{
    int64_t shape[4], turned[4], less[2][4];
    const uint32_t rank = draw_shape(d, shape);
    const bool is_turned = rank > 1 && draw_below(d, 3) == 0;
    const uint32_t from = rank > 1 ? draw_below(d, rank - 1) : 0;
    for (uint32_t i = 0; i < rank; i++) {
        turned[i] = shape[i];
        less[0][i] = draw_below(d, 3) ? shape[i] : 1;
        less[1][i] = draw_below(d, 3) ? shape[i] : 1;
    }
    d->size[0] = is_turned;
    d->size[1] = from;
    if (is_turned) {
        turned[from] = shape[from + 1];
        turned[from + 1] = shape[from];
    }
    return input_add(d, HAL_TYPE_F32, rank, turned) && input_add(d, HAL_TYPE_F32, rank, less[0]) &&
           input_add(d, HAL_TYPE_F32, rank, less[1]);
}

static bool pointwise_compute(kernels_draw *d)
{
    const int32_t from = (int32_t)d->size[1];
    ops_array *x = d->size[0] ? ops_array_transpose(d->inputs[0], from, from + 1) : d->inputs[0];
    return result_add(d, ops_add(ops_mul(x, d->inputs[1]), d->inputs[2]));
}

static bool tensor_prepare(kernels_draw *d)
{
    int64_t shape[4];
    const uint32_t rank = draw_shape(d, shape);
    d->size[0] = rank;
    d->size[1] = draw_below(d, rank);
    d->size[2] = rank > 1 ? draw_below(d, rank - 1) : 0;
    return input_add(d, HAL_TYPE_F32, rank, shape) != NULL;
}

static bool reduce_compute(kernels_draw *d)
{
    return result_add(d, ops_array_reduce(OPS_REDUCE_SUM, (int32_t)d->size[1], 0, d->inputs[0]));
}

static bool copy_compute(kernels_draw *d)
{
    const int32_t from = (int32_t)d->size[2];
    ops_array *x = d->size[0] > 1 ? ops_array_transpose(d->inputs[0], from, from + 1)
                                  : ops_array_slice(d->inputs[0], 0, 0, 1, 1);
    return result_add(d, ops_array_copy(x));
}

static bool softmax_compute(kernels_draw *d)
{
    return result_add(d, ops_array_softmax((int32_t)d->size[1], d->inputs[0]));
}

static bool concatenate_prepare(kernels_draw *d)
{
    int64_t shape[4];
    const uint32_t rank = draw_shape(d, shape), axis = draw_below(d, rank);
    d->size[0] = axis;
    for (uint32_t i = 0; i < 3; i++) {
        shape[axis] = draw_length(d, 1, 64);
        if (!input_add(d, HAL_TYPE_F32, rank, shape)) {
            return false;
        }
    }
    return true;
}

static bool concatenate_compute(kernels_draw *d)
{
    return result_add(d, ops_array_concatenate((int32_t)d->size[0], d->inputs, 3));
}

static bool gather_prepare(kernels_draw *d)
{
    int64_t shape[4];
    const uint32_t rank = draw_shape(d, shape);
    const int64_t count = draw_length(d, 1, 256);
    d->size[0] = draw_below(d, rank);
    return input_add(d, HAL_TYPE_F32, rank, shape) && input_add(d, HAL_TYPE_I32, 1, &count);
}

static bool gather_compute(kernels_draw *d)
{
    return result_add(d, ops_array_gather((int32_t)d->size[0], d->inputs[0], d->inputs[1]));
}

static bool random_prepare(kernels_draw *d)
{
    d->size[4] = draw_shape(d, d->size);
    return true;
}

static bool random_compute(kernels_draw *d)
{
    const ops_random_key key = {.seed = 7};
    return result_add(
        d, ops_array_normal(d->ops, HAL_TYPE_F32, (uint32_t)d->size[4], d->size, key, 0.0, 1.0));
}

/* ---- Programs ---- */

static bool rows_prepare(kernels_draw *d)
{
    const int64_t width = draw_length(d, 16, 4096);
    const int64_t rows = draw_length(d, 1, d->largest / width + 1);
    return matrix_add(d, HAL_TYPE_F32, rows, width) && matrix_add(d, HAL_TYPE_F32, 1, width) &&
           matrix_add(d, HAL_TYPE_F32, 1, width);
}

static ops_array *layer_norm(ops_array *x, ops_array *gain, ops_array *bias)
{
    ops_array *mean = ops_array_reduce(OPS_REDUCE_MEAN, -1, 1, x);
    ops_array *less = ops_sub(x, mean);
    ops_array *variance = ops_array_reduce(OPS_REDUCE_MEAN, -1, 1, ops_mul(less, less));
    ops_array *scale = ops_array_unary(OPS_RSQRT, ops_array_binary_scalar(OPS_ADD, variance, 1e-5));
    return ops_add(ops_mul(ops_mul(less, scale), gain), bias);
}

static bool layer_norm_compute(kernels_draw *d)
{
    return result_add(d, layer_norm(d->inputs[0], d->inputs[1], d->inputs[2]));
}

static bool lstm_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 128), width = draw_length(d, 16, 512);
    d->size[0] = width;
    return matrix_add(d, HAL_TYPE_F32, batch, width) && matrix_add(d, HAL_TYPE_F32, batch, width) &&
           matrix_add(d, HAL_TYPE_F32, batch, width) &&
           matrix_add(d, HAL_TYPE_F32, width, 4 * width) &&
           matrix_add(d, HAL_TYPE_F32, width, 4 * width) &&
           matrix_add(d, HAL_TYPE_F32, 1, 4 * width);
}

static bool lstm_compute(kernels_draw *d)
{
    const int64_t width = d->size[0];
    ops_array *x = d->inputs[0], *h = d->inputs[1], *c = d->inputs[2], *part[4];
    ops_array *gates = ops_add(ops_add(ops_array_matmul(x, d->inputs[3], HAL_GEMM_STRICT),
                                       ops_array_matmul(h, d->inputs[4], HAL_GEMM_STRICT)),
                               d->inputs[5]);
    for (int i = 0; i < 4; i++) {
        part[i] = ops_array_slice(gates, 1, i * width, width, 1);
    }
    ops_array *kept = ops_mul(ops_array_unary(OPS_SIGMOID, part[0]), c);
    ops_array *added =
        ops_mul(ops_array_unary(OPS_SIGMOID, part[1]), ops_array_unary(OPS_TANH, part[2]));
    ops_array *cell = ops_add(kept, added);
    ops_array *next =
        ops_mul(ops_array_unary(OPS_SIGMOID, part[3]), ops_array_unary(OPS_TANH, cell));
    return result_add(d, next) && result_add(d, cell);
}

/* softmax(q k' / sqrt(width)) v of several heads. */
static ops_array *attention(ops_array *q, ops_array *k, ops_array *v, uint32_t precision)
{
    const double scale = 1.0 / sqrt((double)ops_array_get_length(q, -1));
    ops_array *scores = ops_array_matmul(q, ops_array_transpose(k, -1, -2), precision);
    ops_array *weights = ops_array_softmax(-1, ops_array_binary_scalar(OPS_MUL, scores, scale));
    return ops_array_matmul(weights, v, precision);
}

static bool attention_prepare(kernels_draw *d)
{
    const int64_t shape[3] = {8, draw_length(d, 1, 512), 64};
    return input_add(d, HAL_TYPE_F16, 3, shape) && input_add(d, HAL_TYPE_F16, 3, shape) &&
           input_add(d, HAL_TYPE_F16, 3, shape);
}

static bool attention_compute(kernels_draw *d)
{
    return result_add(d, attention(d->inputs[0], d->inputs[1], d->inputs[2], HAL_GEMM_FAST));
}

enum { BLOCK_WIDTH = 64, BLOCK_HEADS = 4 };

static bool block_prepare(kernels_draw *d)
{
    const int64_t width = BLOCK_WIDTH, length = draw_length(d, 1, 256);
    bool fits = matrix_add(d, HAL_TYPE_F32, length, width) != NULL;
    for (int i = 0; i < 4; i++) {
        fits = fits && matrix_add(d, HAL_TYPE_F32, 1, width);
    }
    return fits && matrix_add(d, HAL_TYPE_F32, width, 3 * width) &&
           matrix_add(d, HAL_TYPE_F32, width, width) &&
           matrix_add(d, HAL_TYPE_F32, width, 4 * width) &&
           matrix_add(d, HAL_TYPE_F32, 4 * width, width);
}

static bool block_compute(kernels_draw *d)
{
    ops_array **in = d->inputs, *part[3];
    const int64_t length = ops_array_get_length(in[0], 0);
    const int64_t split[4] = {length, 3, BLOCK_HEADS, BLOCK_WIDTH / BLOCK_HEADS};
    const int64_t joined[2] = {length, BLOCK_WIDTH};
    static const int32_t heads_first[4] = {1, 2, 0, 3}, rows_first[3] = {1, 0, 2};
    ops_array *qkv = ops_array_matmul(layer_norm(in[0], in[1], in[2]), in[5], HAL_GEMM_STRICT);
    qkv = ops_array_permute(ops_array_reshape(qkv, 4, split), heads_first);
    for (int i = 0; i < 3; i++) {
        ops_array *one = ops_array_slice(qkv, 0, i, 1, 1);
        part[i] = ops_array_reshape(one, 3, (const int64_t[3]){split[2], split[0], split[3]});
    }
    ops_array *mixed = attention(part[0], part[1], part[2], HAL_GEMM_STRICT);
    mixed = ops_array_reshape(ops_array_permute(mixed, rows_first), 2, joined);
    ops_array *x = ops_add(in[0], ops_array_matmul(mixed, in[6], HAL_GEMM_STRICT));
    ops_array *wide = ops_array_matmul(layer_norm(x, in[3], in[4]), in[7], HAL_GEMM_STRICT);
    wide = ops_mul(wide, ops_array_unary(OPS_SIGMOID, wide));
    return result_add(d, ops_add(x, ops_array_matmul(wide, in[8], HAL_GEMM_STRICT)));
}

static bool adam_prepare(kernels_draw *d)
{
    const int64_t rows = draw_length(d, 1, 512), columns = draw_length(d, 1, 512);
    for (int i = 0; i < 4; i++) {
        if (!matrix_add(d, HAL_TYPE_F32, rows, columns)) {
            return false;
        }
    }
    return true;
}

static bool adam_compute(kernels_draw *d)
{
    ops_array *weight = d->inputs[0], *gradient = d->inputs[1];
    ops_array *m = ops_add(ops_array_binary_scalar(OPS_MUL, d->inputs[2], 0.9),
                           ops_array_binary_scalar(OPS_MUL, gradient, 0.1));
    ops_array *v = ops_add(ops_array_binary_scalar(OPS_MUL, d->inputs[3], 0.999),
                           ops_array_binary_scalar(OPS_MUL, ops_mul(gradient, gradient), 0.001));
    ops_array *root = ops_array_binary_scalar(OPS_ADD, ops_array_unary(OPS_SQRT, v), 1e-8);
    ops_array *step = ops_array_binary_scalar(OPS_MUL, ops_div(m, root), 1e-3);
    return result_add(d, ops_sub(weight, step)) && result_add(d, m) && result_add(d, v);
}

/* Two layers and the softmax of their rows. */
static bool chain_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 256), in = draw_length(d, 8, 256);
    const int64_t middle = draw_length(d, 8, 256), out = draw_length(d, 2, 256);
    return matrix_add(d, HAL_TYPE_F32, batch, in) && matrix_add(d, HAL_TYPE_F32, in, middle) &&
           matrix_add(d, HAL_TYPE_F32, 1, middle) && matrix_add(d, HAL_TYPE_F32, middle, out) &&
           matrix_add(d, HAL_TYPE_F32, 1, out);
}

static bool chain_compute(kernels_draw *d)
{
    ops_array **in = d->inputs;
    ops_array *x = ops_array_matmul(in[0], in[1], HAL_GEMM_STRICT);
    x = ops_array_unary(OPS_RELU, ops_add(x, in[2]));
    x = ops_add(ops_array_matmul(x, in[3], HAL_GEMM_STRICT), in[4]);
    return result_add(d, ops_array_softmax(-1, x));
}

/* A step of a gated recurrent unit; its gates of x and h are one product each. */
static bool gru_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 128), width = draw_length(d, 16, 512);
    d->size[0] = width;
    return matrix_add(d, HAL_TYPE_F32, batch, width) && matrix_add(d, HAL_TYPE_F32, batch, width) &&
           matrix_add(d, HAL_TYPE_F32, width, 3 * width) &&
           matrix_add(d, HAL_TYPE_F32, width, 3 * width);
}

static bool gru_compute(kernels_draw *d)
{
    const int64_t width = d->size[0];
    ops_array *of_x = ops_array_matmul(d->inputs[0], d->inputs[2], HAL_GEMM_STRICT);
    ops_array *of_h = ops_array_matmul(d->inputs[1], d->inputs[3], HAL_GEMM_STRICT), *x[3], *h[3];
    for (int i = 0; i < 3; i++) {
        x[i] = ops_array_slice(of_x, 1, i * width, width, 1);
        h[i] = ops_array_slice(of_h, 1, i * width, width, 1);
    }
    ops_array *reset = ops_array_unary(OPS_SIGMOID, ops_add(x[0], h[0]));
    ops_array *update = ops_array_unary(OPS_SIGMOID, ops_add(x[1], h[1]));
    ops_array *next = ops_array_unary(OPS_TANH, ops_add(x[2], ops_mul(reset, h[2])));
    return result_add(d, ops_add(next, ops_mul(update, ops_sub(d->inputs[1], next))));
}

/* Two convolutions of 3 x 3 with ReLU, the mean over the image, and a layer. */
static bool convnet_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 32), side = draw_length(d, 5, 32);
    const int64_t image[4] = {batch, 3, side, side}, bias[2] = {16, 32};
    static const int64_t weights[2][4] = {{16, 3, 3, 3}, {32, 16, 3, 3}};
    return input_add(d, HAL_TYPE_F32, 4, image) && input_add(d, HAL_TYPE_F32, 4, weights[0]) &&
           input_add(d, HAL_TYPE_F32, 1, &bias[0]) && input_add(d, HAL_TYPE_F32, 4, weights[1]) &&
           input_add(d, HAL_TYPE_F32, 1, &bias[1]) && matrix_add(d, HAL_TYPE_F32, 32, 10);
}

static bool convnet_compute(kernels_draw *d)
{
    const ops_convolution_options options = {.size = sizeof options, .activation = OPS_RELU};
    ops_array **in = d->inputs;
    ops_array *x = ops_array_convolution(&options, in[0], in[1], in[2]);
    x = ops_array_convolution(&options, x, in[3], in[4]);
    x = ops_array_reduce(OPS_REDUCE_MEAN, -1, 0, x);
    x = ops_array_reduce(OPS_REDUCE_MEAN, -1, 0, x);
    return result_add(d, ops_array_matmul(x, in[5], HAL_GEMM_STRICT));
}

/* A step of the training of a dense network of three layers with momentum, as in examples/digits:
 * x, the wanted results, then weights and biases and the momentum of each. */
enum { TRAINING_LAYERS = 3 };

static bool training_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 256);
    int64_t widths[TRAINING_LAYERS + 1];
    for (int i = 0; i <= TRAINING_LAYERS; i++) {
        widths[i] = draw_length(d, 8, 256);
    }
    bool fits = matrix_add(d, HAL_TYPE_F32, batch, widths[0]) &&
                matrix_add(d, HAL_TYPE_F32, batch, widths[TRAINING_LAYERS]);
    for (int i = 0; i < 2 * TRAINING_LAYERS; i++) {
        const int layer = i % TRAINING_LAYERS;
        fits = fits && matrix_add(d, HAL_TYPE_F32, widths[layer], widths[layer + 1]) &&
               matrix_add(d, HAL_TYPE_F32, 1, widths[layer + 1]);
    }
    return fits;
}

/* Weights or biases after a step, with their momentum. */
static bool training_update(kernels_draw *d, uint32_t at, ops_array *gradient)
{
    ops_array *kept = d->inputs[at + 2 * TRAINING_LAYERS];
    ops_array *momentum = ops_add(ops_array_binary_scalar(OPS_MUL, kept, 0.9), gradient);
    ops_array *step = ops_array_binary_scalar(OPS_MUL, momentum, 0.1);
    return result_add(d, ops_sub(d->inputs[at], step)) && result_add(d, momentum);
}

static bool training_compute(kernels_draw *d)
{
    ops_array **in = d->inputs, *layer[TRAINING_LAYERS + 1] = {in[0]};
    const double share = 1.0 / (double)ops_array_get_length(in[0], 0);
    for (int i = 0; i < TRAINING_LAYERS; i++) {
        ops_array *sum = ops_array_matmul(layer[i], in[2 + 2 * i], HAL_GEMM_STRICT);
        sum = ops_add(sum, in[3 + 2 * i]);
        layer[i + 1] = i + 1 < TRAINING_LAYERS ? ops_array_unary(OPS_RELU, sum) : sum;
    }
    ops_array *chances = ops_array_softmax(-1, layer[TRAINING_LAYERS]);
    ops_array *gradient = ops_array_binary_scalar(OPS_MUL, ops_sub(chances, in[1]), share);
    bool well = true;
    for (int i = TRAINING_LAYERS; i-- > 0 && well;) {
        ops_array *input = ops_array_transpose(layer[i], 0, 1);
        ops_array *weights = ops_array_transpose(in[2 + 2 * i], 0, 1);
        ops_array *of_weights = ops_array_matmul(input, gradient, HAL_GEMM_STRICT);
        ops_array *of_bias = ops_array_reduce(OPS_REDUCE_SUM, 0, 1, gradient);
        well = training_update(d, 2 + 2 * (uint32_t)i, of_weights) &&
               training_update(d, 3 + 2 * (uint32_t)i, of_bias);
        if (i > 0) { /* the sign of ReLU's result is its derivative */
            gradient = ops_mul(ops_array_matmul(gradient, weights, HAL_GEMM_STRICT),
                               ops_array_unary(OPS_SIGN, layer[i]));
        }
    }
    return well;
}

static bool entropy_prepare(kernels_draw *d)
{
    const int64_t classes = draw_length(d, 2, 4096);
    const int64_t rows = draw_length(d, 1, d->largest / classes + 1);
    return matrix_add(d, HAL_TYPE_F32, rows, classes) && matrix_add(d, HAL_TYPE_I32, rows, 1);
}

static bool entropy_compute(kernels_draw *d)
{
    ops_array *scores = ops_array_log_softmax(-1, d->inputs[0]);
    ops_array *wanted = ops_array_take_along_axis(1, scores, d->inputs[1]);
    return result_add(d, ops_array_reduce(OPS_REDUCE_MEAN, 0, 0, wanted));
}

/* Four steps of a network without gates. */
static bool rnn_prepare(kernels_draw *d)
{
    const int64_t batch = draw_length(d, 1, 128), in = draw_length(d, 8, 256);
    const int64_t width = draw_length(d, 16, 256);
    bool fits = matrix_add(d, HAL_TYPE_F32, in, width) && matrix_add(d, HAL_TYPE_F32, 1, width) &&
                matrix_add(d, HAL_TYPE_F32, width, width) &&
                matrix_add(d, HAL_TYPE_F32, batch, width);
    for (int i = 0; i < 4; i++) {
        fits = fits && matrix_add(d, HAL_TYPE_F32, batch, in);
    }
    return fits;
}

static bool rnn_compute(kernels_draw *d)
{
    ops_array **in = d->inputs, *h = in[3];
    for (int i = 0; i < 4; i++) {
        ops_array *x = ops_add(ops_array_matmul(in[4 + i], in[0], HAL_GEMM_STRICT), in[1]);
        h = ops_array_unary(OPS_TANH, ops_add(ops_array_matmul(h, in[2], HAL_GEMM_STRICT), x));
    }
    return result_add(d, h);
}

/* Rows of a table with their positions, and the mean of them. */
static bool embedding_prepare(kernels_draw *d)
{
    const int64_t width = draw_length(d, 8, 512), length = draw_length(d, 1, 256);
    const int64_t words = draw_length(d, 2, d->largest / width + 2);
    return matrix_add(d, HAL_TYPE_F32, words, width) && input_add(d, HAL_TYPE_I32, 1, &length) &&
           matrix_add(d, HAL_TYPE_F32, length, width);
}

static bool embedding_compute(kernels_draw *d)
{
    ops_array *rows = ops_add(ops_array_gather(0, d->inputs[0], d->inputs[1]), d->inputs[2]);
    return result_add(d, rows) && result_add(d, ops_array_reduce(OPS_REDUCE_MEAN, 0, 0, rows));
}

const kernels_case kernels_cases[] = {
    {"product f32", product_f32, product_compute, 0},
    {"product bf16", product_bf16, product_compute, 0},
    {"pointwise", pointwise_prepare, pointwise_compute, 0},
    {"sum", tensor_prepare, reduce_compute, 0},
    {"softmax", tensor_prepare, softmax_compute, 0},
    {"permuted copy", tensor_prepare, copy_compute, 0},
    {"concatenate", concatenate_prepare, concatenate_compute, 0},
    {"gather", gather_prepare, gather_compute, 0},
    {"normal", random_prepare, random_compute, 0},
    {"layer norm", rows_prepare, layer_norm_compute, 0},
    {"lstm step", lstm_prepare, lstm_compute, 12},
    {"attention f16", attention_prepare, attention_compute, 20},
    {"gpt block", block_prepare, block_compute, 0},
    {"adam", adam_prepare, adam_compute, 0},
    {"chain", chain_prepare, chain_compute, 0},
    {"gru step", gru_prepare, gru_compute, 0},
    {"convnet", convnet_prepare, convnet_compute, 0},
    {"training step", training_prepare, training_compute, 0},
    {"cross entropy", entropy_prepare, entropy_compute, 0},
    {"rnn steps", rnn_prepare, rnn_compute, 0},
    {"embedding", embedding_prepare, embedding_compute, 0},
};
const uint32_t kernels_case_count = sizeof kernels_cases / sizeof kernels_cases[0];

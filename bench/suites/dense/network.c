/* A network of dense layers. */
#include "suites/dense/network.h"

#include <math.h>
#include <stdlib.h>

#include "suites/pattern.h"

/* Products of a step that the host computes in a second or so. */
#define CHECK_PRODUCTS 2e8

/* Where the operands start in the pattern; weights and biases of a layer are LAYER_STEP apart. */
enum {
    X_START = 0,
    TARGET_START = 38729,
    WEIGHTS_START = 77471,
    LAYER_STEP = 99991,
    VARIANT_STEP = 12347
};

/* A power of two near sqrt(6 / hidden), which keeps the size of activations about the same from
 * layer to layer (K. He et al., Delving Deep into Rectifiers, 2015). Exact in every type. */
static double weight_scale(const dense_cell *cell)
{
    return exp2(round(log2(sqrt(6.0 / (double)cell->hidden))));
}

static int weights_start(int layer)
{
    return (WEIGHTS_START + layer * LAYER_STEP) % PATTERN_PERIOD;
}

static int biases_start(int layer)
{
    return (weights_start(layer) + LAYER_STEP / 2) % PATTERN_PERIOD;
}

/* An array of the pattern, times a scale; null after a printed failure. */
static ops_array *operand_create(bench_state *bench, hal_type type, uint32_t rank,
                                 const int64_t *shape, int start, double scale)
{
    const bench_place place = {bench->device, bench->info, bench->queue, bench->ops};
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    ops_tensor memory, view;
    ops_array *made = NULL;
    if (pattern_create(bench, &place, type, count, start, &memory) &&
        bench_ok(bench, ops_tensor_reshape(&memory, rank, shape, &view), "an operand")) {
        ops_scope_begin(bench->ops);
        made = ops_array_from_tensor(bench->ops, &view);
        if (scale != 1.0) {
            made = ops_array_binary_scalar(OPS_MUL, made, scale);
        }
        made = ops_array_keep(made);
        ops_scope_end(bench->ops);
        if (!made) {
            bench_fail(bench, "an operand: %s", hal_status_message());
        } else {
            bench_ok(bench, ops_array_evaluate(&made, 1), "an operand");
        }
    }
    hal_buffer_release(memory.buffer);
    return made;
}

/* For the class NORMWISE, weights that are used more than once are prepared. */
static bool weights_prepare(dense_network *n, int layer)
{
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    options.rows = n->cell->batch;
    if (n->cell->precision != HAL_GEMM_NORMWISE) {
        return true;
    }
    ops_scope_begin(n->bench->ops);
    ops_array *ready = ops_array_keep(ops_array_prepare(n->weights[layer], &options));
    ops_scope_end(n->bench->ops);
    if (!ready) {
        return bench_fail(n->bench, "ops_array_prepare: %s", hal_status_message());
    }
    ops_array_release(n->weights[layer]);
    n->weights[layer] = ready;
    return true;
}

bool dense_create(bench_state *bench, const dense_cell *cell, dense_network *made)
{
    const int64_t input[2] = {cell->batch, cell->hidden}, square[2] = {cell->hidden, cell->hidden};
    const double scale = weight_scale(cell);
    *made = (dense_network){.bench = bench, .cell = cell};
    made->x = operand_create(bench, cell->type, 2, input, X_START, 1.0);
    bool well = made->x != NULL;
    if (cell->is_training && well) {
        made->target = operand_create(bench, cell->type, 2, input, TARGET_START, 1.0);
        well = made->target != NULL;
    }
    for (int i = 0; i < cell->layers && well; i++) {
        made->weights[i] = operand_create(bench, cell->type, 2, square, weights_start(i), scale);
        made->biases[i] = operand_create(bench, cell->type, 1, square, biases_start(i), 0.125);
        well = made->weights[i] && made->biases[i] != NULL;
        well = well && (cell->is_training || weights_prepare(made, i));
    }
    return well;
}

bool dense_vary(dense_network *n, int variant)
{
    const int64_t shape[2] = {n->cell->batch, n->cell->hidden};
    const int start = (X_START + variant * VARIANT_STEP) % PATTERN_PERIOD;
    ops_array_release(n->x);
    n->x = operand_create(n->bench, n->cell->type, 2, shape, start, 1.0);
    return n->x != NULL;
}

void dense_destroy(dense_network *network)
{
    ops_array_release(network->x);
    ops_array_release(network->target);
    free(network->expected);
    for (int i = 0; i < network->cell->layers; i++) {
        ops_array_release(network->weights[i]);
        ops_array_release(network->biases[i]);
    }
}

static void layer_update(const dense_network *n, int i, ops_array *const *gradients,
                         ops_array **results)
{
    for (int j = 2 * i; j <= 2 * i + 1; j++) {
        ops_array *old = j % 2 == 0 ? n->weights[i] : n->biases[i];
        results[j] = ops_sub(old, ops_mul_scalar(gradients[j], DENSE_RATE));
    }
}

/* Updates each layer as soon as its gradients are exchanged. */
static bool layers_finish(const dense_network *n, ops_array *const *gradients, ops_array **results)
{
    const dense_exchange *exchange = n->exchange;
    bool well = true;
    for (int i = n->cell->layers - 1; i >= 0 && well; i--) {
        well = exchange->finish(exchange->user, i);
        if (well) {
            layer_update(n, i, gradients, results);
            well = ops_array_evaluate(&results[2 * i], 2) == HAL_OK;
        }
    }
    return well;
}

/* Gradients of the weights and biases, and the updated ones; false after a failure. */
static bool layers_update(const dense_network *n, ops_array **outputs, ops_array **results)
{
    const dense_cell *cell = n->cell;
    const uint32_t precision = cell->precision;
    const double factor = 2.0 / (double)(cell->batch * cell->hidden);
    ops_array *gradients[2 * DENSE_MAX_LAYERS] = {NULL};
    ops_array *zero = ops_array_scalar(n->bench->ops, cell->type, 0.0);
    ops_array *gradient = ops_mul_scalar(ops_sub(outputs[cell->layers], n->target), factor);
    for (int i = cell->layers - 1; i >= 0; i--) {
        gradient = ops_array_where(ops_gt(outputs[i + 1], zero), gradient, zero);
        gradients[2 * i] =
            ops_array_matmul(ops_array_transpose(outputs[i], 0, 1), gradient, precision);
        gradients[2 * i + 1] = ops_array_reduce(OPS_REDUCE_SUM, 0, 0, gradient);
        if (!n->exchange) {
            layer_update(n, i, gradients, results);
        } else if (!n->exchange->start(n->exchange->user, i, gradients)) {
            return false;
        }
        if (i > 0) {
            gradient =
                ops_array_matmul(gradient, ops_array_transpose(n->weights[i], 0, 1), precision);
        }
    }
    return !n->exchange || layers_finish(n, gradients, results);
}

uint32_t dense_step(const dense_network *n, ops_array **results)
{
    const dense_cell *cell = n->cell;
    const uint32_t count = cell->is_training ? 2 * (uint32_t)cell->layers : 1;
    ops_array *outputs[1 + DENSE_MAX_LAYERS] = {n->x};
    bool well = true;
    ops_scope_begin(n->bench->ops);
    for (int i = 0; i < cell->layers; i++) {
        outputs[i + 1] = ops_relu(
            ops_add(ops_array_matmul(outputs[i], n->weights[i], cell->precision), n->biases[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        results[i] = NULL;
    }
    if (cell->is_training) {
        well = layers_update(n, outputs, results);
    } else {
        results[0] = outputs[cell->layers];
    }
    for (uint32_t i = 0; i < count; i++) {
        results[i] = ops_array_keep(results[i]);
        well = well && results[i] != NULL;
    }
    ops_scope_end(n->bench->ops);
    if (!well || ops_array_evaluate(results, count) != HAL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            ops_array_release(results[i]);
        }
        return 0;
    }
    return count;
}

void dense_update(dense_network *n, ops_array **results)
{
    for (int i = 0; i < n->cell->layers; i++) {
        ops_array_release(n->weights[i]);
        ops_array_release(n->biases[i]);
        n->weights[i] = results[2 * i];
        n->biases[i] = results[2 * i + 1];
    }
}

/* ---- The reference ---- */

/* The norm of the error over that of the result: the roundings of each layer's products, in the
 * type's or the class's precision, grow slowly with the layers. Gradients in bf16 differ more:
 * values near 0 that round to the other side of a ReLU turn its gradient on or off. */
static double tolerance_of(const dense_cell *cell)
{
    if (cell->type == HAL_TYPE_BF16) {
        return cell->is_training ? 0.4 : 0.06;
    }
    return cell->precision == HAL_GEMM_FAST ? 0.02 : 2e-4;
}

/* outputs[i]: rows x hidden after layer i; outputs[0] is the input from row `first` on. */
static void reference_forward(const dense_network *n, int64_t first, int64_t rows, double **outputs)
{
    const dense_cell *cell = n->cell;
    const int64_t hidden = cell->hidden;
    const void *block = pattern_block(n->bench, cell->type);
    const double scale = weight_scale(cell);
    for (int64_t i = 0; i < rows * hidden; i++) {
        outputs[0][i] = bench_value(cell->type, block,
                                    (size_t)((X_START + first * hidden + i) % PATTERN_PERIOD));
    }
    for (int l = 0; l < cell->layers; l++) {
        double *out = outputs[l + 1];
        for (int64_t i = 0; i < rows * hidden; i++) {
            out[i] = 0.125 * bench_value(cell->type, block,
                                         (size_t)((biases_start(l) + i % hidden) % PATTERN_PERIOD));
        }
        size_t at = (size_t)weights_start(l);
        for (int64_t k = 0; k < hidden; k++) {
            for (int64_t j = 0; j < hidden; j++) {
                const double weight = scale * bench_value(cell->type, block, at);
                at = at + 1 == PATTERN_PERIOD ? 0 : at + 1;
                for (int64_t r = 0; r < rows; r++) {
                    out[r * hidden + j] += outputs[l][r * hidden + k] * weight;
                }
            }
        }
        for (int64_t i = 0; i < rows * hidden; i++) {
            out[i] = fmax(out[i], 0.0);
        }
    }
}

/* Compares an array, from element `first` on, with `count` expected elements. `old`: those before
 * the step, whose change is compared; null: zeros. */
static bool elements_check(const dense_network *n, ops_array *found, int64_t first, int64_t count,
                           const double *old, const double *expected, const char *what)
{
    const double unit = n->cell->type == HAL_TYPE_BF16 ? 0x1p-8 : 0x1p-23;
    const size_t all = (size_t)ops_array_get_element_count(found);
    const uint64_t bytes = all * hal_type_size(n->cell->type);
    void *elements = malloc(bytes);
    double size = 0.0, error = 0.0; /* squares */
    if (!elements) {
        return bench_fail(n->bench, "out of memory");
    }
    const bool well = bench_ok(n->bench, ops_array_read(found, bytes, elements), what);
    for (int64_t i = 0; i < count && well; i++) {
        const double value = bench_value(n->cell->type, elements, (size_t)(first + i));
        const double change = expected[i] - (old ? old[i] : 0.0);
        const double beyond = fdim(fabs(value - expected[i]), unit * fabs(expected[i]));
        size += change * change;
        error += isnan(value) ? HUGE_VAL : beyond * beyond;
    }
    free(elements);
    if (well && !(sqrt(error) <= tolerance_of(n->cell) * sqrt(size))) {
        return bench_fail(n->bench, "%s: %s: an error of %g in a result of the size %g",
                          n->cell->name, what, sqrt(error), sqrt(size));
    }
    return well;
}

static bool buffers_create(const dense_network *n, int64_t rows, double **outputs)
{
    bool well = true;
    for (int i = 0; i <= n->cell->layers; i++) {
        outputs[i] = calloc((size_t)(rows * n->cell->hidden), sizeof **outputs);
        well = well && outputs[i] != NULL;
    }
    return well || bench_fail(n->bench, "out of memory");
}

static void buffers_free(const dense_network *n, double **outputs)
{
    for (int i = 0; i <= n->cell->layers; i++) {
        free(outputs[i]);
    }
}

/* One layer backwards: gradient becomes that of the layer's product, and the new biases and weights
 * are compared; `next` becomes the gradient of the layer's input. */
static bool layer_check(const dense_network *n, int l, double **outputs, double *gradient,
                        double *next, ops_array *const *results)
{
    const dense_cell *cell = n->cell;
    const int64_t hidden = cell->hidden, rows = cell->batch;
    const void *block = pattern_block(n->bench, cell->type);
    const double scale = weight_scale(cell);
    const size_t count = (size_t)(hidden * hidden);
    double *memory = calloc(2 * count + 2 * (size_t)hidden, sizeof *memory);
    double *old = memory, *weights = old + count, *old_biases = weights + count;
    double *biases = old_biases + hidden;
    bool well = memory || bench_fail(n->bench, "out of memory");
    for (int64_t i = 0; i < hidden && well; i++) {
        old_biases[i] = 0.125 * bench_value(cell->type, block,
                                            (size_t)((biases_start(l) + i) % PATTERN_PERIOD));
        biases[i] = old_biases[i];
    }
    for (int64_t i = 0; i < rows * hidden && well; i++) {
        gradient[i] = outputs[l + 1][i] > 0 ? gradient[i] : 0.0;
        next[i] = 0.0;
        biases[i % hidden] -= DENSE_RATE * gradient[i];
    }
    for (int64_t k = 0; k < hidden && well; k++) {
        for (int64_t j = 0; j < hidden; j++) {
            const double weight =
                scale * bench_value(cell->type, block,
                                    (size_t)((weights_start(l) + k * hidden + j) % PATTERN_PERIOD));
            double sum = 0.0;
            for (int64_t r = 0; r < rows; r++) {
                sum += outputs[l][r * hidden + k] * gradient[r * hidden + j];
                next[r * hidden + k] += gradient[r * hidden + j] * weight;
            }
            old[k * hidden + j] = weight;
            weights[k * hidden + j] = weight - DENSE_RATE * sum;
        }
    }
    well = well && elements_check(n, results[2 * l], 0, (int64_t)count, old, weights, "weights") &&
           elements_check(n, results[2 * l + 1], 0, hidden, old_biases, biases, "biases");
    free(memory);
    return well;
}

static bool training_check(const dense_network *n, ops_array *const *results)
{
    const dense_cell *cell = n->cell;
    const int64_t count = cell->batch * cell->hidden;
    const void *block = pattern_block(n->bench, cell->type);
    double *outputs[1 + DENSE_MAX_LAYERS];
    double *gradient = calloc((size_t)count, sizeof *gradient);
    double *next = calloc((size_t)count, sizeof *next);
    bool well = buffers_create(n, cell->batch, outputs) && gradient && next != NULL;
    if (well) {
        reference_forward(n, 0, cell->batch, outputs);
    }
    for (int64_t i = 0; i < count && well; i++) {
        const double target =
            bench_value(cell->type, block, (size_t)((TARGET_START + i) % PATTERN_PERIOD));
        gradient[i] = 2.0 / (double)count * (outputs[cell->layers][i] - target);
    }
    for (int l = cell->layers - 1; l >= 0 && well; l--) {
        well = layer_check(n, l, outputs, gradient, next, results);
        double *exchanged = gradient;
        gradient = next;
        next = exchanged;
    }
    buffers_free(n, outputs);
    free(gradient);
    free(next);
    return well;
}

/* The last row of an inference's output. */
static bool expected_compute(dense_network *n)
{
    double *outputs[1 + DENSE_MAX_LAYERS];
    const int last = n->cell->layers;
    const bool well = buffers_create(n, 1, outputs);
    if (well) {
        reference_forward(n, n->cell->batch - 1, 1, outputs);
        n->expected = outputs[last];
        outputs[last] = NULL;
    }
    buffers_free(n, outputs);
    return well;
}

bool dense_check(dense_network *n, ops_array *const *results)
{
    const dense_cell *cell = n->cell;
    const double products = (double)cell->layers * (double)cell->hidden * (double)cell->hidden;
    if (cell->is_training) {
        return 3 * products * (double)cell->batch > CHECK_PRODUCTS || training_check(n, results);
    }
    return (n->expected || expected_compute(n)) &&
           elements_check(n, results[0], (cell->batch - 1) * cell->hidden, cell->hidden, NULL,
                          n->expected, "the last row");
}

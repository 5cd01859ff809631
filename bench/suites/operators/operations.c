/* How the cells of hal-bench operators are computed. */
#include <string.h>

#include "suites/operators/operators.h"

/* Numbers of images: convolution, pooling, normalisation and resizing begin with them. */
enum { N, C, H, W, O, WINDOW, STRIDE, PADDING, GROUPS, LAST };

static ops_array *random_array(bench_state *bench, hal_type type, uint32_t rank,
                               const int64_t *shape, uint64_t stream)
{
    ops_array *x = ops_array_keep(
        ops_array_uniform(bench->ops, type, rank, shape, (ops_random_key){7, stream}, -1, 1));
    if (!x || !bench_ok(bench, ops_array_evaluate(&x, 1), "an operand")) {
        bench_fail(bench, "an operand: %s", hal_status_message());
    }
    return x;
}

static int64_t place_count(const operator_cell *cell, int axis)
{
    const int64_t *n = cell->numbers;
    return (n[axis] + 2 * n[PADDING] - n[WINDOW]) / n[STRIDE] + 1;
}

/* [N, C, H, W], or [N, H, W, C]. */
static ops_array *image_array(bench_state *bench, const operator_cell *cell, bool is_last)
{
    const int64_t *n = cell->numbers;
    const int64_t first[4] = {n[N], n[C], n[H], n[W]}, last[4] = {n[N], n[H], n[W], n[C]};
    return random_array(bench, cell->type, 4, is_last ? last : first, 0);
}

static double image_elements(const operator_cell *cell)
{
    const int64_t *n = cell->numbers;
    return (double)n[N] * (double)n[C] * (double)n[H] * (double)n[W];
}

static bool create_convolution(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    const int64_t *n = cell->numbers;
    const int64_t weights[4] = {n[O], n[C] / n[GROUPS], n[WINDOW], n[WINDOW]};
    inputs[0] = image_array(bench, cell, n[LAST] != 0);
    inputs[1] = random_array(bench, cell->type, 4, weights, 1);
    inputs[2] = random_array(bench, cell->type, 1, weights, 2);
    return inputs[0] && inputs[1] && inputs[2];
}

static ops_convolution_options convolution_options(const operator_cell *cell)
{
    const int64_t *n = cell->numbers;
    return (ops_convolution_options){.size = sizeof(ops_convolution_options),
                                     .channels_last = n[LAST] != 0,
                                     .precision = cell->precision,
                                     .groups = n[GROUPS],
                                     .stride = {n[STRIDE], n[STRIDE]},
                                     .before = {n[PADDING], n[PADDING]},
                                     .after = {n[PADDING], n[PADDING]}};
}

static ops_array *apply_convolution(const operator_cell *cell, ops_array *const *inputs)
{
    const ops_convolution_options options = convolution_options(cell);
    return ops_array_convolution(&options, inputs[0], inputs[1], inputs[2]);
}

/* x, w and the gradient of the result. */
static bool create_gradient(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    const int64_t *n = cell->numbers, h = place_count(cell, H), w = place_count(cell, W);
    const int64_t first[4] = {n[N], n[O], h, w}, last[4] = {n[N], h, w, n[O]};
    if (!create_convolution(bench, cell, inputs)) {
        return false;
    }
    ops_array_release(inputs[2]);
    inputs[2] = random_array(bench, cell->type, 4, n[LAST] ? last : first, 2);
    return inputs[2] != NULL;
}

static ops_array *apply_input_gradient(const operator_cell *cell, ops_array *const *inputs)
{
    const ops_convolution_options options = convolution_options(cell);
    const int64_t *n = cell->numbers, lengths[2] = {n[H], n[W]};
    return ops_array_convolution_transposed(&options, inputs[2], inputs[1], NULL, lengths);
}

static ops_array *apply_weights_gradient(const operator_cell *cell, ops_array *const *inputs)
{
    const ops_convolution_options options = convolution_options(cell);
    const int64_t *n = cell->numbers, window[2] = {n[WINDOW], n[WINDOW]};
    return ops_array_convolution_weights(&options, inputs[0], inputs[2], window);
}

static double convolution_results(const operator_cell *cell)
{
    return (double)cell->numbers[N] * (double)cell->numbers[O] * (double)place_count(cell, H) *
           (double)place_count(cell, W);
}

static double convolution_bytes(const operator_cell *cell)
{
    const int64_t *n = cell->numbers;
    const double weights = (double)(n[O] * n[C] / n[GROUPS] * n[WINDOW] * n[WINDOW]);
    return hal_type_size(cell->type) * (image_elements(cell) + weights + convolution_results(cell));
}

static double convolution_flops(const operator_cell *cell)
{
    const int64_t *n = cell->numbers;
    return 2.0 * convolution_results(cell) * (double)(n[C] / n[GROUPS] * n[WINDOW] * n[WINDOW]);
}

static bool create_image(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    inputs[0] = image_array(bench, cell, cell->numbers[LAST] != 0);
    return inputs[0] != NULL;
}

static ops_array *pool(const operator_cell *cell, ops_pool_kind kind, ops_array *x)
{
    const int64_t *n = cell->numbers;
    ops_pool_options options = {.size = sizeof options,
                                .channels_last = n[LAST] != 0,
                                .window = {n[WINDOW], n[WINDOW]},
                                .stride = {n[STRIDE], n[STRIDE]},
                                .before = {n[PADDING], n[PADDING]},
                                .after = {n[PADDING], n[PADDING]}};
    return ops_array_pool(kind, &options, x, NULL);
}

static ops_array *apply_max_pool(const operator_cell *cell, ops_array *const *inputs)
{
    return pool(cell, OPS_POOL_MAX, inputs[0]);
}

static ops_array *apply_average_pool(const operator_cell *cell, ops_array *const *inputs)
{
    return pool(cell, OPS_POOL_AVERAGE, inputs[0]);
}

static double pool_bytes(const operator_cell *cell)
{
    const double places = (double)place_count(cell, H) * (double)place_count(cell, W);
    return hal_type_size(cell->type) *
           (image_elements(cell) + places * (double)(cell->numbers[N] * cell->numbers[C]));
}

static bool create_normalisation(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    inputs[0] = image_array(bench, cell, false);
    inputs[1] = random_array(bench, cell->type, 1, cell->numbers + C, 1);
    inputs[2] = random_array(bench, cell->type, 1, cell->numbers + C, 2);
    return inputs[0] && inputs[1] && inputs[2];
}

static ops_array *apply_batch_norm(const operator_cell *cell, ops_array *const *inputs)
{
    (void)cell;
    return ops_array_batch_norm(inputs[0], inputs[1], inputs[2], 1e-5, (ops_normalised){0});
}

static ops_array *apply_group_norm(const operator_cell *cell, ops_array *const *inputs)
{
    return ops_array_group_norm(inputs[0], cell->numbers[GROUPS], inputs[1], inputs[2], 1e-5,
                                (ops_normalised){0});
}

static double normalisation_bytes(const operator_cell *cell)
{
    return 2.0 * hal_type_size(cell->type) * image_elements(cell);
}

/* Numbers of lines: order and scattering. */
enum { LINES, LENGTH, COUNT };

static bool create_lines(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    inputs[0] = random_array(bench, cell->type, 2, cell->numbers, 0);
    return inputs[0] != NULL;
}

static ops_array *apply_sort(const operator_cell *cell, ops_array *const *inputs)
{
    ops_array *places = ops_array_argsort(1, 0, cell->numbers[LENGTH], inputs[0]);
    return places ? ops_array_take_along_axis(1, inputs[0], places) : NULL;
}

static ops_array *apply_top(const operator_cell *cell, ops_array *const *inputs)
{
    ops_array *places = ops_array_argsort(1, 1, cell->numbers[COUNT], inputs[0]);
    return places ? ops_array_take_along_axis(1, inputs[0], places) : NULL;
}

static double lines_elements(const operator_cell *cell)
{
    return (double)cell->numbers[LINES] * (double)cell->numbers[LENGTH];
}

static double sort_bytes(const operator_cell *cell)
{
    return (2.0 * hal_type_size(cell->type) + 4.0) * lines_elements(cell);
}

static double top_bytes(const operator_cell *cell)
{
    return hal_type_size(cell->type) * lines_elements(cell);
}

/* y [lines, length], updates [count, length] and rows of y for them, of each element or row. */
static bool create_scatter(bench_state *bench, const operator_cell *cell, bool of_rows,
                           ops_array **inputs)
{
    const int64_t *n = cell->numbers;
    const int64_t updates[2] = {n[COUNT], n[LENGTH]},
                  picks[2] = {n[COUNT], of_rows ? 1 : n[LENGTH]};
    inputs[0] = random_array(bench, cell->type, 2, n, 0);
    inputs[1] = random_array(bench, cell->type, 2, updates, 1);
    ops_scope_begin(bench->ops);
    ops_array *draws = ops_array_uniform(bench->ops, HAL_TYPE_F32, 2, picks, (ops_random_key){7, 2},
                                         0, (double)n[LINES]);
    inputs[2] = ops_array_keep(ops_array_cast(HAL_TYPE_I64, draws));
    bench_ok(bench, ops_array_evaluate(&inputs[2], 1), "indices");
    ops_scope_end(bench->ops);
    return inputs[0] && inputs[1] && inputs[2];
}

static bool create_scatter_add(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    return create_scatter(bench, cell, false, inputs);
}

static bool create_index_add(bench_state *bench, const operator_cell *cell, ops_array **inputs)
{
    return create_scatter(bench, cell, true, inputs);
}

static ops_array *apply_scatter_add(const operator_cell *cell, ops_array *const *inputs)
{
    (void)cell;
    return ops_array_scatter(OPS_SCATTER_ADD, 0, inputs[0], inputs[2], inputs[1]);
}

static ops_array *apply_index_add(const operator_cell *cell, ops_array *const *inputs)
{
    const int64_t shape[2] = {cell->numbers[COUNT], cell->numbers[LENGTH]};
    return ops_array_scatter(OPS_SCATTER_ADD, 0, inputs[0],
                             ops_array_broadcast(inputs[2], 2, shape), inputs[1]);
}

static double scatter_bytes(const operator_cell *cell)
{
    const int64_t *n = cell->numbers;
    return hal_type_size(cell->type) * (double)n[LENGTH] *
           (2.0 * (double)n[LINES] + (double)n[COUNT]);
}

static double scatter_add_bytes(const operator_cell *cell)
{
    return scatter_bytes(cell) + 8.0 * (double)cell->numbers[COUNT] * (double)cell->numbers[LENGTH];
}

#define IMAGE "images channels height width "
static const operator_kind kinds[] = {
    {"convolution", IMAGE "outputs window stride padding groups last", create_convolution,
     apply_convolution, convolution_bytes, convolution_flops},
    {"convolution_input", IMAGE "outputs window stride padding groups last", create_gradient,
     apply_input_gradient, convolution_bytes, convolution_flops},
    {"convolution_weights", IMAGE "outputs window stride padding groups last", create_gradient,
     apply_weights_gradient, convolution_bytes, convolution_flops},
    {"max_pool", IMAGE "unused window stride padding unused last", create_image, apply_max_pool,
     pool_bytes, NULL},
    {"average_pool", IMAGE "unused window stride padding unused last", create_image,
     apply_average_pool, pool_bytes, NULL},
    {"batch_norm", IMAGE, create_normalisation, apply_batch_norm, normalisation_bytes, NULL},
    {"group_norm", IMAGE "unused unused unused unused groups", create_normalisation,
     apply_group_norm, normalisation_bytes, NULL},
    {"sort", "lines length", create_lines, apply_sort, sort_bytes, NULL},
    {"top", "lines length count", create_lines, apply_top, top_bytes, NULL},
    {"scatter_add", "lines length count", create_scatter_add, apply_scatter_add, scatter_add_bytes,
     NULL},
    {"index_add", "lines length count", create_index_add, apply_index_add, scatter_bytes, NULL},
};
#undef IMAGE

const operator_kind *operator_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

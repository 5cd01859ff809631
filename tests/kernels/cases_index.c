/* cases_index.c: transposing, picking, placing, scanning and sorting elements. */
#include "corpus_cases.h"

/* The axes of a tensor of rank 3 in other orders, and a concatenation. */
static void copies(corpus *c, hal_type type)
{
    static const int32_t orders[][3] = {{0, 2, 1}, {2, 1, 0}, {1, 0, 2}};
    const int64_t shape[3] = {64, 100, 132};
    for (int i = 0; i < 3 && !c->failed; i++) {
        corpus_case(c, "copy_%s_%u%u%u", hal_type_name(type), orders[i][0], orders[i][1],
                    orders[i][2]);
        const ops_tensor x = corpus_tensor(c, type, 3, shape);
        ops_tensor turned = x;
        corpus_did(c, ops_tensor_permute(&x, orders[i], &turned));
        const ops_tensor y = corpus_tensor(c, type, 3, turned.shape);
        corpus_did(c, ops_copy(c->ops, &turned, &y));
    }
    corpus_case(c, "concatenate_%s", hal_type_name(type));
    const ops_tensor parts[2] = {corpus_matrix(c, type, 100, 37), corpus_matrix(c, type, 100, 64)};
    const ops_tensor whole = corpus_matrix(c, type, 100, 101);
    if (!c->failed) {
        corpus_did(c, ops_concatenate(c->ops, 1, parts, 2, &whole));
    }
}

static void picks(corpus *c, hal_type type, hal_type index)
{
    for (uint32_t axis = 0; axis < 2 && !c->failed; axis++) {
        corpus_case(c, "gather_%s_axis%u", hal_type_name(type), axis);
        const ops_tensor x = corpus_matrix(c, type, 1000, 64);
        const ops_tensor indices = corpus_vector(c, index, 32);
        const ops_tensor y = corpus_matrix(c, type, axis == 0 ? 32 : 1000, axis == 0 ? 64 : 32);
        corpus_did(c, ops_gather(c->ops, axis, &x, &indices, &y));
    }
    corpus_case(c, "one_hot_%s", hal_type_name(type));
    const ops_tensor indices = corpus_vector(c, index, 1000);
    const ops_tensor rows = corpus_matrix(c, type, 1000, 10);
    const ops_tensor counts = corpus_vector(c, type, 1000);
    if (!c->failed) {
        corpus_did(c, ops_one_hot(c->ops, &indices, &rows));
        corpus_did(c, ops_iota(c->ops, 0.0, 1.0, &counts));
    }
}

/* Of one long line, in parts and blocks, and of many short ones. */
static void orders(corpus *c, hal_type type)
{
    static const int64_t shapes[][2] = {{1, 1000000}, {100000, 60}};
    for (int i = 0; i < 2 && !c->failed; i++) {
        corpus_case(c, "order_%s_%s", hal_type_name(type), i ? "short" : "long");
        const ops_tensor x = corpus_matrix(c, type, shapes[i][0], shapes[i][1]);
        const ops_tensor y = corpus_matrix(c, type, shapes[i][0], shapes[i][1]);
        corpus_did(c, ops_scan(c->ops, OPS_SCAN_SUM, 1, &x, &y));
        corpus_did(c, ops_sort(c->ops, 1, i, &x, &y, NULL));
    }
}

/* Pooling with places, resizing, their gradients and that of depthwise weights, with channels
 * second or last. */
static void windows(corpus *c, hal_type type, int is_last)
{
    static const int64_t lengths[2] = {40, 60}, half[2] = {20, 30}, window[2] = {3, 3};
    const int64_t second[4] = {4, 64, 40, 60}, last[4] = {4, 40, 60, 64};
    ops_pool_options pool = {.size = sizeof pool,
                             .channels_last = (uint32_t)is_last,
                             .window = {3, 3},
                             .stride = {2, 2},
                             .before = {1, 1},
                             .after = {1, 1}};
    const ops_convolution_options convolution = {.size = sizeof convolution,
                                                 .channels_last = (uint32_t)is_last,
                                                 .groups = 64,
                                                 .before = {1, 1},
                                                 .after = {1, 1}};
    corpus_case(c, "windows_%s_%s", hal_type_name(type), is_last ? "last" : "second");
    const ops_tensor tensor = corpus_tensor(c, type, 4, is_last ? last : second);
    if (c->failed) {
        return;
    }
    corpus_did(c, ops_scope_begin(c->ops));
    ops_array *x = ops_array_from_tensor(c->ops, &tensor), *places, *y[8];
    y[0] = ops_array_pool(OPS_POOL_MAX, &pool, x, &places);
    y[1] = ops_array_pool_gradient(OPS_POOL_MAX, &pool, y[0], places, lengths);
    y[2] = ops_array_pool(OPS_POOL_AVERAGE, &pool, x, NULL);
    y[3] = ops_array_pool_gradient(OPS_POOL_AVERAGE, &pool, y[2], NULL, lengths);
    for (uint32_t i = 0; i < 2; i++) {
        const ops_resize_kind kind = (ops_resize_kind)i;
        y[4 + 2 * i] = ops_array_resize(kind, OPS_RESIZE_HALF, 2, half, is_last, x);
        y[5 + 2 * i] =
            ops_array_resize_gradient(kind, OPS_RESIZE_HALF, 2, lengths, is_last, y[4 + 2 * i]);
    }
    for (uint32_t i = 0; i < 8 && !c->failed; i++) {
        corpus_did(c, ops_array_evaluate(&y[i], 1));
    }
    ops_array *weights = ops_array_convolution_weights(&convolution, x, x, window);
    corpus_did(c, c->failed ? HAL_OK : ops_array_evaluate(&weights, 1));
    ops_scope_end(c->ops);
}

void cases_index(corpus *c)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U8, HAL_TYPE_BF16, HAL_TYPE_U64};
    for (int t = 0; t < (c->all ? 4 : 1) && !c->failed; t++) {
        copies(c, types[t]);
        picks(c, types[t], t % 2 == 0 ? HAL_TYPE_I32 : HAL_TYPE_I64);
        orders(c, types[t]);
        for (int last = 0; t % 2 == 0 && last < 2 && !c->failed; last++) {
            windows(c, types[t], last);
        }
    }
}

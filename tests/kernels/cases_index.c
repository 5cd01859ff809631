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

void cases_index(corpus *c)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_U8, HAL_TYPE_BF16, HAL_TYPE_U64};
    for (int t = 0; t < (c->all ? 4 : 1) && !c->failed; t++) {
        copies(c, types[t]);
        picks(c, types[t], t % 2 == 0 ? HAL_TYPE_I32 : HAL_TYPE_I64);
        orders(c, types[t]);
    }
}

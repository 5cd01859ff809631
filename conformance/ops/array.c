/* array.c: programs over arrays of one kind each: chains and trees too large for one kernel,
 * several results, work before and after reductions and products, views of deferred arrays, odd
 * shapes; and that work is not run when its result cannot be read. */
#include <inttypes.h>

#include "case/cases.h"
#include "ops/array_fixture.h"

enum { ROWS = 7, COLUMNS = 9, LEAVES = 20 };

typedef struct kind {
    const char *name;
    void (*make)(array_run *r, ops_array *const *x); /* in a scope */
} kind;

static void long_chain(array_run *r, ops_array *const *x)
{
    static const ops_unary_function links[] = {OPS_NEG, OPS_SIN, OPS_ABS, OPS_SQUARE, OPS_RELU};
    ops_array *y = x[0];
    for (int i = 0; i < 160; i++) {
        y = i % 11 == 10 ? ops_sub(y, x[1]) : ops_array_unary(links[i % 5], y);
    }
    array_note(r, y, "160 operations");
}

static void wide_tree(array_run *r, ops_array *const *x)
{
    ops_array *level[LEAVES];
    uint32_t count = LEAVES;
    for (uint32_t i = 0; i < LEAVES; i++) {
        level[i] = x[i];
    }
    for (; count > 1; count = (count + 1) / 2) {
        for (uint32_t i = 0; i < count; i += 2) {
            level[i / 2] = i + 1 == count ? level[i]
                           : i % 4 == 0   ? ops_mul(level[i], level[i + 1])
                                          : ops_sub(level[i], level[i + 1]);
        }
    }
    array_note(r, level[0], "a tree of 20 leaves");
}

static void several_results(array_run *r, ops_array *const *x)
{
    ops_array *all[4];
    all[0] = ops_exp(x[0]);
    all[1] = ops_neg(all[0]);
    all[2] = ops_gt(all[1], x[1]);
    all[3] = ops_reduce_sum(all[0], 0);
    array_check(r->run, all[2], "a comparison");
    array_check(r->run, all[3], "a sum");
    case_ok(r->run, ops_array_evaluate(all, 4), "ops_array_evaluate of four");
    for (int i = 0; i < 4; i++) {
        array_note(r, all[i], "one of four results");
    }
}

/* A value in the middle that two results use, and that is held beyond its scope. */
static void shared_middle(array_run *r, ops_array *const *x)
{
    ops_array *middle = ops_array_retain(ops_mul(ops_sin(x[0]), x[1]));
    ops_array *turned = ops_array_transpose(ops_array_transpose(middle, 0, 1), 0, 1);
    array_check(r->run, middle, "the middle");
    array_note(r, ops_abs(middle), "above the middle");
    array_note(r, ops_sub(middle, turned), "the middle less itself");
    array_note(r, middle, "the middle");
    ops_array_release(middle);
}

static void product_epilogue(array_run *r, ops_array *const *x)
{
    ops_array *product = ops_matmul(x[0], ops_array_transpose(x[1], 0, 1)); /* 7 by 7 */
    ops_array *square = ops_array_slice(x[2], 1, 0, ROWS, 1);
    ops_array *row = ops_array_slice(ops_array_slice(x[3], 1, 1, ROWS, 1), 0, 2, 1, 1);
    ops_array *y = ops_mul(ops_tanh(ops_add(product, row)), square);
    y = ops_array_where(ops_gt(y, row), y, ops_neg(square));
    array_note(r, y, "a product and what follows");
}

static void batched_product(array_run *r, ops_array *const *x)
{
    const int64_t wide[3] = {3, ROWS, COLUMNS}, one[3] = {1, COLUMNS, ROWS};
    ops_array *batch = ops_mul(ops_array_broadcast(x[0], 3, wide), x[1]);
    ops_array *right = ops_array_transpose(x[2], 0, 1);
    array_note(r, ops_relu(ops_matmul(batch, right)), "a batch and one matrix");
    array_note(r, ops_matmul(ops_array_reshape(right, 3, one), batch), "one matrix and a batch");
}

static void reduction_both_sides(array_run *r, ops_array *const *x)
{
    ops_array *before = ops_square(ops_sub(ops_mul(x[0], x[1]), x[2]));
    ops_array *sum = ops_array_reduce(OPS_REDUCE_SUM, 1, 1, before);
    ops_array *column = ops_array_slice(x[3], 1, 4, 1, 1);
    array_note(r, ops_sqrt(ops_add(ops_abs(column), sum)), "work before and after a sum");
}

static void reduction_kinds(array_run *r, ops_array *const *x)
{
    for (int reduction = 0; reduction < OPS_REDUCTION_COUNT; reduction++) {
        const uint32_t axis = (uint32_t)reduction % 2;
        ops_array *y = ops_array_reduce((ops_reduction)reduction, axis, 0, ops_neg(x[reduction]));
        array_note(r, ops_abs(y), "a reduction of each kind");
    }
}

/* Only the axis that is reduced has different elements: the others are one dimension in memory. */
static void reduction_of_broadcast(array_run *r, ops_array *const *x)
{
    static const int64_t columns[] = {5, 24, 40};
    const int64_t one[3] = {1, COLUMNS, 1};
    ops_array *line = ops_array_reshape(ops_array_slice(x[0], 0, 1, 1, 1), 3, one);
    for (int i = 0; i < 3; i++) {
        const int64_t wide[3] = {2, COLUMNS, columns[i]};
        ops_array *y = ops_square(ops_array_broadcast(line, 3, wide));
        array_note(r, ops_array_reduce(OPS_REDUCE_SUM, 1, 0, y), "a sum of a broadcast square");
    }
}

static void normalisation(array_run *r, ops_array *const *x)
{
    ops_array *centre = ops_sub(x[0], ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, x[0]));
    ops_array *spread = ops_array_reduce(OPS_REDUCE_MEAN, 1, 1, ops_square(centre));
    ops_array *little = ops_array_scalar(r->run->ops, HAL_TYPE_F32, 1e-5);
    ops_array *y = ops_mul(centre, ops_rsqrt(ops_add(spread, little)));
    array_note(r, ops_add(ops_mul(y, x[1]), x[2]), "a normalisation");
}

static void softmax_chain(array_run *r, ops_array *const *x)
{
    ops_array *y = ops_array_softmax(1, ops_mul(x[0], x[1]));
    array_note(r, ops_matmul(ops_array_transpose(y, 0, 1), x[2]), "softmax and a product");
    array_note(r, ops_neg(ops_array_log_softmax(0, ops_abs(y))), "the logarithm of softmax");
}

static void views_of_deferred(array_run *r, ops_array *const *x)
{
    ops_array *y = ops_add(x[0], x[1]);
    ops_array *back = ops_array_slice(y, 1, COLUMNS - 1, COLUMNS, -1);
    ops_array *part = ops_array_slice(ops_array_slice(back, 0, 1, 3, 2), 1, 0, 4, 2);
    array_note(r, ops_mul(back, x[2]), "a sum backwards");
    array_note(r, part, "a part of it");
    array_note(r, ops_array_transpose(ops_neg(part), 0, 1), "that turned");
    array_note(r, ops_sub(y, back), "the sum and itself backwards");
}

static void reshaped_copies(array_run *r, ops_array *const *x)
{
    const int64_t flat[1] = {-1}, turned[3] = {3, -1, 3};
    ops_array *y = ops_array_reshape(ops_array_transpose(ops_abs(x[0]), 0, 1), 3, turned);
    ops_array *z = ops_array_reshape(ops_array_slice(x[1], 1, 0, 3, 3), 1, flat);
    array_note(r, ops_neg(y), "a turned array in another shape");
    array_note(r, ops_add(ops_array_reshape(y, 1, flat), ops_array_slice(z, 0, 3, 1, 1)),
               "flat arrays");
}

/* Moves by index between elementwise work; two of the indices are out of range. */
static void moved_elements(array_run *r, ops_array *const *x)
{
    ops_array *index = ops_array_iota(r->run->ops, HAL_TYPE_I32, 5, 7.0, -2.0);
    ops_array *const parts[3] = {ops_neg(x[0]), ops_array_slice(x[1], 0, 2, 3, 1), x[2]};
    ops_array *hot = ops_array_one_hot(HAL_TYPE_F32, ROWS, index);
    array_note(r, ops_add_scalar(ops_array_gather(-2, ops_square(x[0]), index), 0.5),
               "gathered rows");
    array_note(r, ops_array_gather(1, ops_array_transpose(x[1], 0, 1), index),
               "gathered columns of a view");
    array_note(r, ops_abs(ops_array_concatenate(0, parts, 3)), "concatenated rows");
    array_note(r, ops_matmul(hot, x[3]), "rows picked by a product");
    array_note(r, ops_array_copy(ops_array_slice(x[4], 1, 8, 3, -3)), "a copy of a view");
}

/* Views of products and sums that are not computed yet, as gates of a recurrent step. */
static void gates(array_run *r, ops_array *const *x)
{
    ops_array *z = ops_add(ops_mul(x[0], x[1]), x[2]), *bent = ops_array_transpose(z, 0, 1);
    ops_array *a = ops_array_slice(z, 1, 0, 4, 2), *b = ops_array_slice(z, 1, 1, 4, 2);
    ops_array *h = ops_mul(ops_sigmoid(a), ops_tanh(b));
    array_note(r, h, "gates of slices");
    array_note(r, ops_reduce_sum(ops_array_slice(ops_square(bent), 0, 2, 5, 1), 1),
               "a sum of a part of a turned sum");
    array_note(r, ops_array_concatenate(1, (ops_array *[]){ops_neg(h), ops_exp(a), b}, 3),
               "parts computed in place");
}

/* Parts replaced: of an array that others hold, and of one that nothing else holds. */
static void replaced_parts(array_run *r, ops_array *const *x)
{
    ops_tensor all, part, turned;
    ops_array *y = ops_abs(x[0]);
    if (ops_array_describe(y, &all) != HAL_OK ||
        ops_tensor_slice(&all, 0, 1, 3, 2, &part) != HAL_OK ||
        ops_tensor_transpose(&all, 0, 1, &turned) != HAL_OK ||
        ops_tensor_slice(&turned, 0, 6, 3, -3, &turned) != HAL_OK) {
        array_check(r->run, NULL, "parts of an array");
        return;
    }
    ops_array *z = ops_array_update(y, &part, ops_neg(ops_array_slice(x[1], 0, 0, 1, 1)));
    ops_array *twice =
        ops_array_update(z, &turned, ops_array_transpose(ops_array_slice(x[2], 1, 3, 1, 1), 0, 1));
    array_note(r, ops_sub(twice, y), "what replaced columns change");
    array_note(r, z, "replaced rows");
    ops_array *sum = ops_add(x[0], x[1]);
    ops_array *last = ops_array_update(sum, &part, ops_array_slice(ops_exp(x[2]), 0, 2, 3, 1));
    ops_array_release(sum);
    array_note(r, last, "rows replaced in place");
}

static void several_axes(array_run *r, ops_array *const *x)
{
    static const int64_t cube[3] = {3, -1, 3};
    static const int32_t outer[2] = {0, -1};
    ops_array *y = ops_array_reshape(ops_mul(x[0], x[1]), 3, cube);
    array_note(r, ops_neg(ops_array_reduce_axes(OPS_REDUCE_SUM, outer, 2, 1, ops_exp(y))),
               "a sum along two axes");
    array_note(r, ops_array_reduce_axes(OPS_REDUCE_MAX, NULL, 0, 0, ops_abs(y)),
               "the greatest element");
}

static void constants(array_run *r, ops_array *const *x)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    ops_array *two = ops_array_full(r->run->ops, HAL_TYPE_F32, 2, shape, 2.0);
    ops_array *half = ops_array_scalar(r->run->ops, HAL_TYPE_F32, 0.5);
    array_note(r, ops_mul(ops_sub(x[0], two), half), "an array and constants");
    array_note(r, ops_mul(half, half), "constants alone");
    array_note(r, ops_reduce_sum(two, 0), "a sum of a constant");
}

static void casts(array_run *r, ops_array *const *x)
{
    ops_array *whole = ops_array_cast(HAL_TYPE_I32, ops_mul(x[0], ops_mul(x[1], x[1])));
    ops_array *sum = ops_array_reduce(OPS_REDUCE_SUM, 0, 1, ops_square(whole));
    array_note(r, sum, "squares of whole numbers");
    array_note(r, ops_array_cast(HAL_TYPE_F32, ops_add(whole, sum)), "and back to floats");
    array_note(r, ops_array_cast(HAL_TYPE_U32, ops_array_cast(HAL_TYPE_F32, sum)),
               "and to another type");
}

static void comparisons(array_run *r, ops_array *const *x)
{
    ops_array *less = ops_lt(x[0], x[1]), *more = ops_ge(x[2], x[3]);
    ops_array *both = ops_array_binary(OPS_AND, less, ops_array_unary(OPS_NOT, more));
    array_note(r, ops_array_where(both, ops_maximum(x[0], x[1]), ops_minimum(x[2], x[3])),
               "a choice");
    array_note(r, ops_array_reduce(OPS_REDUCE_SUM, 1, 0, ops_array_cast(HAL_TYPE_I32, both)),
               "how many were chosen");
}

static void no_elements(array_run *r, ops_array *const *x)
{
    ops_array *none = ops_array_slice(ops_abs(x[0]), 1, 3, 0, 1); /* 7 by 0 */
    ops_array *row = ops_array_slice(x[1], 0, 0, 0, 1);           /* 0 by 9 */
    array_note(r, ops_exp(none), "a function of nothing");
    array_note(r, ops_reduce_sum(none, 1), "sums of nothing");
    array_note(r, ops_reduce_sum(none, 0), "no sums");
    array_note(r, ops_neg(ops_matmul(none, row)), "a product over nothing");
    array_note(r, ops_add(row, x[2] ? ops_array_slice(x[2], 0, 0, 1, 1) : NULL),
               "nothing and a row");
}

static void rank_0(array_run *r, ops_array *const *x)
{
    ops_array *total = ops_reduce_sum(ops_reduce_sum(ops_mul(x[0], x[1]), 1), 0);
    const int64_t one[1] = {1};
    array_note(r, ops_neg(total), "a number");
    array_note(r, ops_div(x[0], ops_exp(ops_array_permute(total, NULL))), "an array and a number");
    array_note(r, ops_array_reshape(total, 1, one), "a number as an array");
}

static void rank_8(array_run *r, ops_array *const *x)
{
    const int64_t shape[8] = {1, 3, 1, 3, 1, 7, 1, 1}, wide[8] = {2, 3, 1, 3, 2, 7, 1, 2};
    const int32_t axes[8] = {7, 1, 6, 3, 5, 4, 2, 0};
    ops_array *y = ops_mul(ops_array_reshape(ops_array_transpose(x[0], 0, 1), 8, shape),
                           ops_array_reshape(x[1], 8, shape));
    ops_array *z = ops_add(ops_array_broadcast(y, 8, wide), ops_array_reshape(x[2], 8, shape));
    array_note(r, ops_abs(ops_array_permute(z, axes)), "eight axes in another order");
    array_note(r, ops_array_reduce(OPS_REDUCE_MAX, 4, 1, ops_neg(z)), "a reduction of them");
}

/* Nodes that were read become leaves: more of them than a kernel may have. */
static void read_in_between(array_run *r, ops_array *const *x)
{
    enum { NODES = 14 };
    ops_array *nodes[NODES], *sum = x[0];
    for (int i = 0; i < NODES; i++) {
        nodes[i] = ops_array_retain(i > 0 ? ops_sub(x[i % 2], nodes[i - 1]) : ops_neg(x[0]));
        sum = ops_add(sum, nodes[i]);
    }
    for (int i = 0; i < NODES; i++) {
        array_note(r, nodes[i], "a node");
    }
    array_note(r, sum, "the sum of all nodes");
    for (int i = 0; i < NODES; i++) {
        ops_array_release(nodes[i]);
    }
}

static const kind kinds[] = {{"long_chain", long_chain},
                             {"wide_tree", wide_tree},
                             {"several_results", several_results},
                             {"shared_middle", shared_middle},
                             {"product_epilogue", product_epilogue},
                             {"batched_product", batched_product},
                             {"reduction_both_sides", reduction_both_sides},
                             {"reduction_kinds", reduction_kinds},
                             {"reduction_of_broadcast", reduction_of_broadcast},
                             {"normalisation", normalisation},
                             {"softmax_chain", softmax_chain},
                             {"views_of_deferred", views_of_deferred},
                             {"reshaped_copies", reshaped_copies},
                             {"moved_elements", moved_elements},
                             {"gates", gates},
                             {"replaced_parts", replaced_parts},
                             {"several_axes", several_axes},
                             {"constants", constants},
                             {"casts", casts},
                             {"comparisons", comparisons},
                             {"no_elements", no_elements},
                             {"rank_0", rank_0},
                             {"rank_8", rank_8},
                             {"read_in_between", read_in_between}};

static void in_scope(array_run *r)
{
    const kind *tested = r->parameters;
    scope_begin(r->run);
    tested->make(r, r->leaves);
    scope_end(r->run);
}

/* Twenty leaves of one shape; a case takes of them what it wants. */
static void run_kind(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    array_run r = {.run = run, .parameters = parameters, .random = {run->seed}};
    for (int i = 0; i < LEAVES; i++) {
        array_add_leaf(&r, HAL_TYPE_F32, 2, shape, -2.0, 2.0, NULL);
    }
    array_run_both_ways(&r, in_scope);
}

/* Small whole numbers, which are added up without rounding, against the host. */
static void run_sums(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    int32_t a[ROWS][COLUMNS], b[ROWS][COLUMNS], got[COLUMNS];
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_I32, 2, shape, -100.0, 100.0, a);
    array_add_leaf(&r, HAL_TYPE_I32, 2, shape, -100.0, 100.0, b);
    scope_begin(run);
    ops_array *y = ops_reduce_sum(ops_mul(r.leaves[0], ops_sub(r.leaves[1], r.leaves[0])), 0);
    array_check(run, y, "a sum");
    case_ok(run, ops_array_read(y, sizeof got, got), "ops_array_read");
    for (int k = 0; k < COLUMNS; k++) {
        int32_t sum = 0;
        for (int i = 0; i < ROWS; i++) {
            sum += a[i][k] * (b[i][k] - a[i][k]);
        }
        case_check(run, got[k] == sum, "column %d: %" PRId32 " instead of %" PRId32, k, got[k],
                   sum);
    }
    scope_end(run);
}

static void floats_check(case_run *run, ops_array *array, const float *expected, size_t count,
                         const char *what)
{
    float got[COLUMNS * COLUMNS];
    array_check(run, array, what);
    case_ok(run, ops_array_read(array, count * sizeof *got, got), what);
    for (size_t i = 0; i < count; i++) {
        case_check(run, got[i] == expected[i], "%s: element %zu is %g instead of %g", what, i,
                   (double)got[i], (double)expected[i]);
    }
}

/* An array that is read as soon as it is computed, and is then an operand of each kind of
 * operation; whole numbers, which none of them rounds. */
static void run_read_again(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {ROWS, COLUMNS};
    int32_t a[ROWS][COLUMNS], b[ROWS][COLUMNS];
    float y[ROWS][COLUMNS], sums[COLUMNS] = {0}, sizes[ROWS][COLUMNS], backwards[COLUMNS][ROWS],
                            products[COLUMNS][COLUMNS] = {{0}};
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_I32, 2, shape, -100.0, 100.0, a);
    array_add_leaf(&r, HAL_TYPE_I32, 2, shape, -100.0, 100.0, b);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            y[i][k] = (float)(a[i][k] - b[i][k]);
            sizes[i][k] = y[i][k] < 0.0f ? -y[i][k] : y[i][k];
            backwards[k][ROWS - 1 - i] = y[i][k];
            sums[k] += y[i][k];
        }
        for (int k = 0; k < COLUMNS * COLUMNS; k++) {
            products[k / COLUMNS][k % COLUMNS] += y[i][k / COLUMNS] * y[i][k % COLUMNS];
        }
    }
    scope_begin(run);
    ops_array *x = ops_array_cast(HAL_TYPE_F32, ops_sub(r.leaves[0], r.leaves[1]));
    floats_check(run, x, y[0], ROWS * COLUMNS, "the array, read first");
    floats_check(run, ops_matmul(ops_array_transpose(x, 0, 1), x), products[0], COLUMNS * COLUMNS,
                 "its product with itself");
    floats_check(run, ops_reduce_sum(x, 0), sums, COLUMNS, "its sums");
    floats_check(run, ops_array_where(ops_lt(x, ops_sub(x, x)), ops_neg(x), x), sizes[0],
                 ROWS * COLUMNS, "its sizes");
    floats_check(run, ops_array_transpose(ops_array_slice(x, 0, ROWS - 1, ROWS, -1), 0, 1),
                 backwards[0], ROWS * COLUMNS, "itself backwards");
    floats_check(run, x, y[0], ROWS * COLUMNS, "the array, read last");
    scope_end(run);
}

static void run_unread(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {ROWS, ROWS};
    float got[ROWS * ROWS];
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    array_run r = {.run = run, .random = {run->seed}};
    array_add_leaf(&r, HAL_TYPE_F32, 2, shape, -1.0, 1.0, NULL);
    ops_array *x = r.leaves[0];
    scope_begin(run);
    ops_context_get_statistics(run->ops, &before);
    array_check(run, ops_reduce_sum(ops_array_softmax(1, ops_matmul(ops_exp(x), ops_sin(x))), 0),
                "an array that is not read");
    ops_array *read = array_own(run, ops_array_retain(ops_cos(x)), "a cosine");
    scope_end(run);
    case_ok(run, ops_array_read(read, sizeof got, got), "ops_array_read");
    ops_context_get_statistics(run->ops, &after);
    case_check(run, after.recorded - before.recorded == 6,
               "%" PRIu64 " operations were noted instead of 6", after.recorded - before.recorded);
    case_check(run, after.evaluated - before.evaluated == 1,
               "%" PRIu64 " operations were run, and only one could be read",
               after.evaluated - before.evaluated);
    case_check(run, after.dropped - before.dropped == 5,
               "%" PRIu64 " operations were dropped instead of 5", after.dropped - before.dropped);
}

static void run_scopes(case_run *run, const void *parameters)
{
    ops_array_statistics before = {.size = sizeof before}, inside = before, after = before;
    ops_context_get_statistics(run->ops, &before);
    float got = 0.0f;
    const size_t objects = run->object_count;
    scope_begin(run);
    ops_array *number = ops_array_scalar(run->ops, HAL_TYPE_F32, 3.0);
    scope_begin(run);
    ops_array *kept = array_own(run, ops_array_keep(ops_neg(ops_square(number))), "a negation");
    scope_end(run);
    scope_end(run);
    ops_context_get_statistics(run->ops, &inside);
    case_expect(run, ops_scope_end(run->ops), HAL_ERROR_INVALID_STATE, "scope", "one end too many");
    case_ok(run, ops_array_read(kept, sizeof got, &got), "ops_array_read");
    case_check(run, got == -9.0f, "-(3 * 3) was %g", (double)got);
    case_check(run, inside.arrays == before.arrays + 3,
               "%" PRIu64 " arrays lived beyond their scopes instead of 3",
               inside.arrays - before.arrays);
    case_release(run, objects);
    ops_context_get_statistics(run->ops, &after);
    case_check(run, after.arrays == before.arrays, "an array was left");
}

/* Null, and a message that names what is wrong. */
static void refused(case_run *run, const ops_array *array, const char *mention, const char *what)
{
    case_check(run, !array, "%s was taken", what);
    case_expect(run, HAL_ERROR_INVALID_ARGUMENT, HAL_ERROR_INVALID_ARGUMENT, mention, what);
}

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t far[2] = {INT64_C(1) << 40, 1}, wide[2] = {1, INT64_C(1) << 40};
    const int64_t shape[2] = {3, 4}, other[2] = {5, 4};
    float got[12];
    scope_begin(run);
    ops_array *x = ops_array_full(run->ops, HAL_TYPE_F32, 2, shape, 1.0);
    ops_array *y = ops_array_full(run->ops, HAL_TYPE_F32, 2, other, 1.0);
    ops_array *i = ops_array_full(run->ops, HAL_TYPE_I32, 2, shape, 1.0);
    array_check(run, x, "a constant");
    array_check(run, y, "a constant");
    array_check(run, i, "a constant");
    refused(run, ops_add(x, y), "f32[3, 4] and f32[5, 4]", "a sum of 3x4 and 5x4");
    refused(run, ops_relu(ops_add(x, ops_mul(y, x))), "f32[5, 4] and f32[3, 4]",
            "the first failure of an expression");
    refused(run, ops_add(x, i), "cast", "f32 plus i32");
    refused(run, ops_exp(i), "exp", "exp of i32");
    refused(run, ops_matmul(x, y), "[m, k] and [k, n]", "3x4 times 5x4");
    refused(run, ops_reduce_sum(x, 2), "expected -2 to 1 for f32[3, 4], got 2",
            "a sum along axis 2 of two");
    refused(run, ops_array_slice(x, 0, 2, 5, 1), "axis 0", "a slice beyond the end");
    refused(run, ops_array_where(x, x, x), "expected a bool", "a condition of floats");
    refused(run,
            ops_add(ops_array_full(run->ops, HAL_TYPE_F32, 2, far, 1.0),
                    ops_array_full(run->ops, HAL_TYPE_F32, 2, wide, 1.0)),
            "63 bits", "2^80 elements");
    case_expect(run, ops_array_read(x, 5, got), HAL_ERROR_INVALID_ARGUMENT, "48",
                "5 bytes for 12 floats");
    case_expect(run, ops_array_read(NULL, 48, got), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "reading null");
    scope_end(run);
}

void cases_ops_array(case_list *list)
{
    const unsigned long long seed = list->seed;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        case_add(list, run_kind, &kinds[i], sizeof kinds[i], "ops/array(%s,seed=%llu)",
                 kinds[i].name, seed);
    }
    case_add(list, run_sums, NULL, 0, "ops/array(exact_sums,seed=%llu)", seed);
    case_add(list, run_read_again, NULL, 0, "ops/array(read_and_used,seed=%llu)", seed);
    case_add(list, run_unread, NULL, 0, "ops/array(unread_work,seed=%llu)", seed);
    case_add(list, run_scopes, NULL, 0, "ops/array(scopes,seed=%llu)", seed);
    case_add(list, run_refusals, NULL, 0, "ops/array(refusals,seed=%llu)", seed);
}

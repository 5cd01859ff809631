/* The order of axes in memory: results of operations take it from their operands, and every
 * consumer sees the same elements. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#define RANK 4u
#define MOST 4096

static ops_array *whole_numbers(uint32_t rank, const int64_t *shape)
{
    float given[MOST];
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    for (int64_t i = 0; i < count; i++) {
        given[i] = (float)((i * 37 + 11) % 101 - 50);
    }
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, rank, shape, given));
}

static ops_array *random_numbers(uint32_t rank, const int64_t *shape)
{
    return made(
        ops_array_uniform(test_context, HAL_TYPE_F32, rank, shape, (ops_random_key){3, 4}, -1, 1));
}

/* The number of elements, which are in row-major order. */
static size_t read_floats(ops_array *x, float *elements)
{
    const size_t count = (size_t)ops_array_get_element_count(x);
    assert_true(count <= MOST);
    ok(ops_array_read(x, count * sizeof *elements, elements));
    return count;
}

static void expect_equal(ops_array *x, ops_array *expected)
{
    float got[MOST], wanted[MOST];
    const size_t count = read_floats(made(x), got);
    assert_int_equal(read_floats(made(expected), wanted), count);
    assert_memory_equal(got, wanted, count * sizeof *got);
}

/* The elements of x, in row-major order in memory. */
static ops_array *row_major(ops_array *x)
{
    float elements[MOST];
    int64_t shape[OPS_MAX_RANK];
    read_floats(x, elements);
    for (uint32_t i = 0; i < ops_array_get_rank(x); i++) {
        shape[i] = ops_array_get_length(x, (int32_t)i);
    }
    return made(
        ops_array_from_host(test_context, HAL_TYPE_F32, ops_array_get_rank(x), shape, elements));
}

static ops_tensor tensor_of(ops_array *x)
{
    ops_tensor tensor;
    ok(ops_array_get_tensor(made(x), &tensor));
    return tensor;
}

static void expect_strides(ops_array *x, const int64_t *strides)
{
    const ops_tensor tensor = tensor_of(x);
    for (uint32_t i = 0; i < tensor.rank; i++) {
        assert_int_equal(tensor.stride[i], strides[i]);
    }
}

/* Permutation number n of the four axes; 0 once there are no more. */
static int permutation(uint32_t n, int32_t *axes)
{
    int32_t left[RANK] = {0, 1, 2, 3};
    uint32_t choices = 24;
    if (n >= choices) {
        return 0;
    }
    for (uint32_t i = 0; i < RANK; i++) {
        choices /= RANK - i;
        const uint32_t chosen = n / choices;
        n %= choices;
        axes[i] = left[chosen];
        for (uint32_t k = chosen; k + 1 < RANK - i; k++) {
            left[k] = left[k + 1];
        }
    }
    return 1;
}

/* The shapes with equal lengths differ in their strides alone, which plans are told apart by. */
static const int64_t shapes[][RANK] = {{2, 3, 4, 5}, {3, 3, 3, 3}, {4, 1, 6, 2}, {4, 4, 1, 4}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Element number `linear` of memory [shape] whose axes are permuted. */
static float permuted_at(const float *memory, const int64_t *shape, const int32_t *axes,
                         int64_t linear)
{
    int64_t at[RANK], place = 0;
    for (uint32_t i = RANK; i-- > 0;) {
        at[axes[i]] = linear % shape[axes[i]];
        linear /= shape[axes[i]];
    }
    for (uint32_t i = 0; i < RANK; i++) {
        place = place * shape[i] + at[i];
    }
    return memory[place];
}

static void check_permutation(const int64_t *shape, const int32_t *axes)
{
    float memory[MOST], got[MOST];
    ok(ops_scope_begin(test_context));
    ops_array *x = whole_numbers(RANK, shape), *turned = made(ops_array_permute(x, axes));
    const uint64_t kernels = statistics_of(test_context).kernels;
    ops_array *y = made(ops_add_scalar(ops_neg(turned), 0.5));
    ops_array *same = made(ops_mul(y, ops_abs(turned)));
    ok(ops_array_evaluate(&same, 1));
    assert_int_equal(statistics_of(test_context).kernels, kernels + 1);
    const size_t count = read_floats(x, memory);
    assert_true(ops_same_strides(&turned->view, &same->view));
    assert_true(ops_is_dense(&same->view));
    assert_int_equal(read_floats(same, got), count);
    for (size_t i = 0; i < count; i++) {
        const float element = permuted_at(memory, shape, axes, (int64_t)i);
        assert_true(got[i] == (0.5f - element) * fabsf(element));
    }
    ok(ops_scope_end(test_context));
}

static void results_keep_every_order(void **state)
{
    int32_t axes[RANK];
    for (size_t s = 0; s < SHAPES; s++) {
        for (uint32_t n = 0; permutation(n, axes); n++) {
            check_permutation(shapes[s], axes);
        }
    }
}

/* The order of x: of 24 by 2 by 3 elements, its axes reversed. */
static ops_array *reversed(ops_array *x)
{
    const int32_t axes[3] = {2, 1, 0};
    return made(ops_array_permute(x, axes));
}

static void operands_agree_on_an_order(void **state)
{
    static const int64_t shape[3] = {4, 3, 2}, turned[3] = {2, 3, 4}, row[1] = {4};
    static const int64_t kept[3] = {1, 2, 6}, usual[3] = {12, 4, 1};
    ok(ops_scope_begin(test_context));
    ops_array *x = reversed(whole_numbers(3, shape)), *y = whole_numbers(3, turned);
    ops_array *bias = whole_numbers(1, row);
    ops_array *wide = made(ops_array_cast(HAL_TYPE_F64, x));
    ops_array *condition = made(ops_array_binary(OPS_LT, x, x));
    expect_strides(ops_neg(x), kept);
    expect_strides(ops_neg(y), usual);
    expect_strides(ops_mul(x, x), kept);
    expect_strides(ops_add(x, bias), kept);
    expect_strides(ops_add(bias, x), kept);
    expect_strides(ops_add_scalar(x, 2), kept);
    expect_strides(ops_add(x, y), usual);
    expect_strides(ops_add(y, x), usual);
    expect_strides(wide, kept);
    expect_strides(ops_array_copy(x), usual);
    expect_strides(ops_array_where(condition, y, y), usual); /* the wider type decides */
    expect_strides(ops_array_where(ops_array_binary(OPS_LT, y, y), x, x), kept);
    expect_equal(ops_add(ops_neg(x), y), ops_sub(y, ops_array_copy(x)));
    expect_equal(ops_add(x, bias), ops_add(ops_array_copy(x), bias));
    ok(ops_scope_end(test_context));
}

/* Along axes that an operand does not have, the others decide. */
static void stretched_axes_have_no_order(void **state)
{
    static const int64_t column[2] = {5, 1}, shape[2] = {3, 5}, all[3] = {2, 5, 3};
    static const int64_t turned[2] = {1, 5}, planes[3] = {15, 1, 5};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_transpose(whole_numbers(2, shape), 0, 1)); /* 5 by 3 */
    expect_strides(ops_mul(x, whole_numbers(2, column)), turned);
    ops_array *stretched = made(ops_array_broadcast(x, 3, all));
    expect_strides(ops_neg(stretched), planes);
    expect_equal(ops_neg(stretched), ops_neg(ops_array_broadcast(ops_array_copy(x), 3, all)));
    ok(ops_scope_end(test_context));
}

/* A view with gaps, or backwards, gives a dense result. */
static void views_with_gaps_become_dense(void **state)
{
    static const int64_t shape[3] = {6, 5, 8}, strides[3] = {1, 20, 4};
    static const int32_t axes[3] = {2, 0, 1};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_slice(whole_numbers(3, shape), 2, 7, 4, -2)); /* 6 by 5 by 4 */
    x = made(ops_array_permute(ops_array_slice(x, 0, 1, 3, 2), axes));          /* 4 by 3 by 5 */
    ops_array *y = made(ops_neg(x));
    expect_strides(y, strides);
    expect_equal(y, ops_neg(ops_array_copy(x)));
    ok(ops_scope_end(test_context));
}

/* Everything that reads a result, next to the same with row-major elements. */
static void consume(ops_array *y, ops_array *usual)
{
    static const int32_t axes[RANK] = {2, 0, 3, 1};
    const int64_t count = ops_array_get_element_count(y);
    expect_equal(y, usual);
    expect_equal(ops_array_reshape(y, 1, &count), ops_array_reshape(usual, 1, &count));
    expect_equal(ops_array_permute(y, axes), ops_array_permute(usual, axes));
    expect_equal(ops_neg(ops_array_permute(y, axes)), ops_neg(ops_array_permute(usual, axes)));
    for (int32_t axis = 0; axis < (int32_t)RANK; axis++) {
        const int64_t length = ops_array_get_length(y, axis);
        ops_array *const twice[2] = {y, usual};
        expect_equal(ops_array_slice(y, axis, length - 1, length, -1),
                     ops_array_slice(usual, axis, length - 1, length, -1));
        expect_equal(ops_array_reduce(OPS_REDUCE_SUM, axis, 0, y),
                     ops_array_reduce(OPS_REDUCE_SUM, axis, 0, usual));
        expect_equal(ops_neg(ops_array_reduce(OPS_REDUCE_MAX, axis, 1, ops_square(y))),
                     ops_neg(ops_array_reduce(OPS_REDUCE_MAX, axis, 1, ops_square(usual))));
        expect_equal(ops_sub(y, ops_array_reduce(OPS_REDUCE_MIN, axis, 1, y)),
                     ops_sub(usual, ops_array_reduce(OPS_REDUCE_MIN, axis, 1, usual)));
        expect_equal(
            ops_array_cast(HAL_TYPE_F32, ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, y)),
            ops_array_cast(HAL_TYPE_F32, ops_array_reduce(OPS_REDUCE_ARGMAX, axis, 0, usual)));
        expect_equal(ops_array_concatenate(axis, twice, 2),
                     ops_array_concatenate(axis, (ops_array *const[2]){usual, y}, 2));
    }
}

static void consumers_see_the_same_elements(void **state)
{
    int32_t axes[RANK];
    for (uint32_t n = 0; permutation(n, axes); n += 5) {
        for (size_t s = 0; s < SHAPES; s++) {
            for (int is_computed = 0; is_computed < 2; is_computed++) {
                ok(ops_scope_begin(test_context));
                ops_array *x = whole_numbers(RANK, shapes[s]);
                ops_array *y = made(ops_neg(ops_array_permute(x, axes)));
                ops_array *usual = row_major(ops_neg(ops_array_permute(x, axes)));
                if (is_computed) {
                    ok(ops_array_evaluate(&y, 1));
                }
                consume(y, usual);
                ok(ops_scope_end(test_context));
            }
        }
    }
}

/* Operands of products in every order of their axes. */
static void products_take_every_order(void **state)
{
    static const int64_t shape[3] = {3, 7, 5}; /* batch, rows, terms */
    static const int32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < 6; i++) {
        int64_t memory[3];
        int32_t back[3];
        for (int32_t k = 0; k < 3; k++) {
            memory[k] = shape[orders[i][k]];
            back[orders[i][k]] = k;
        }
        ok(ops_scope_begin(test_context));
        ops_array *a = made(ops_neg(ops_array_permute(whole_numbers(3, memory), back)));
        ops_array *b = made(ops_array_transpose(a, 1, 2));
        ops_array *product = made(ops_relu(ops_matmul(a, ops_add_scalar(b, 1))));
        ops_array *usual = row_major(a);
        ops_array *other = ops_array_copy(ops_array_transpose(usual, 1, 2));
        expect_equal(product, ops_relu(ops_matmul(usual, ops_add_scalar(other, 1))));
        ok(ops_scope_end(test_context));
    }
}

/* Reductions with a prologue and an epilogue, softmax, programs of rows: of random numbers. */
static ops_array *rows_of(ops_array *x, int32_t axis, int which)
{
    ops_array *y = ops_sin(x), *shifted, *mean;
    switch (which) {
    case 0:
        return ops_exp(ops_array_reduce(OPS_REDUCE_SUM, axis, 0, y));
    case 1:
        return ops_array_softmax(axis, y);
    case 2:
        return ops_array_reduce_axes(OPS_REDUCE_SUM, NULL, 0, 0, y);
    default:
        mean = ops_array_reduce(OPS_REDUCE_MEAN, axis, 1, y);
        shifted = ops_sub(y, mean);
        return which == 3
                   ? ops_array_reduce(OPS_REDUCE_MEAN, axis, 0, ops_square(shifted))
                   : ops_mul(shifted,
                             ops_rsqrt(ops_array_reduce(OPS_REDUCE_SUM, axis, 1, ops_square(y))));
    }
}

static void fusing_keeps_bits_and_strides(void **state)
{
    static const int64_t shape[3] = {3, 260, 5};
    static const int32_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        for (int32_t axis = 0; axis < 3; axis++) {
            for (int which = 0; which < 5; which++) {
                ok(ops_scope_begin(test_context));
                ops_array *x = made(ops_array_permute(random_numbers(3, shape), orders[i]));
                ops_array *fused = made(rows_of(x, axis, which));
                ok(ops_array_evaluate(&fused, 1));
                ops_context_set_fusion(test_context, 0);
                ops_array *single = made(rows_of(x, axis, which));
                ops_context_set_fusion(test_context, 1);
                assert_true(ops_same_strides(&fused->view, &single->view));
                expect_equal(fused, single);
                ok(ops_scope_end(test_context));
            }
        }
    }
}

/* Arrays of one shape whose plans differ in strides alone, and so in their kernels. */
static void plans_are_told_apart_by_strides(void **state)
{
    static const int64_t shape[RANK] = {3, 3, 3, 3};
    int32_t axes[RANK];
    ops_array *x = whole_numbers(RANK, shape), *bias = whole_numbers(1, shape);
    for (uint32_t n = 0; permutation(n, axes); n++) {
        ok(ops_scope_begin(test_context));
        ops_array *y = made(ops_array_permute(x, axes)), *usual = row_major(y);
        expect_equal(ops_add(y, bias), ops_add(usual, bias));
        for (int32_t axis = 0; axis < (int32_t)RANK; axis++) {
            float got[MOST], wanted[MOST];
            const size_t count = read_floats(ops_array_softmax(axis, y), got);
            read_floats(ops_array_softmax(axis, usual), wanted);
            for (size_t i = 0; i < count; i++) {
                assert_true(fabsf(got[i] - wanted[i]) < 1e-5f);
            }
            expect_equal(ops_array_reduce(OPS_REDUCE_SUM, axis, 0, ops_add(y, bias)),
                         ops_array_reduce(OPS_REDUCE_SUM, axis, 0, ops_add(usual, bias)));
        }
        ok(ops_scope_end(test_context));
    }
    release_all(x, bias);
}

/* Reductions and softmax write in the order in which they read. */
static void rows_keep_the_order(void **state)
{
    static const int64_t shape[3] = {4, 3, 2}; /* reversed: 2 by 3 by 4 */
    static const int64_t kept[3] = {1, 2, 6}, left[2] = {1, 2}, one[3] = {1, 2, 2};
    ok(ops_scope_begin(test_context));
    ops_array *x = reversed(whole_numbers(3, shape));
    expect_strides(ops_array_softmax(1, x), kept);
    expect_strides(ops_array_log_softmax(2, x), kept);
    expect_strides(ops_array_reduce(OPS_REDUCE_SUM, 2, 0, x), left);
    const ops_tensor sum = tensor_of(ops_array_reduce(OPS_REDUCE_SUM, 1, 1, x));
    assert_int_equal(sum.stride[0], one[0]);
    assert_int_equal(sum.stride[2], one[2]);
    ok(ops_scope_end(test_context));
}

/* A kernel writes in one order: what is stored in another one is computed first. */
static void stored_values_have_a_kernel_for_each_order(void **state)
{
    static const int64_t shape[2] = {6, 4}, turned[2] = {4, 6};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_transpose(whole_numbers(2, shape), 0, 1));
    ops_array *y = whole_numbers(2, turned);
    ops_array *inner = ops_array_keep(made(ops_neg(x)));
    ops_array *sum = made(ops_add(inner, y));
    uint64_t kernels = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(&sum, 1));
    assert_int_equal(statistics_of(test_context).kernels, kernels + 2);
    assert_int_equal(inner->state, OPS_NODE_MEMORY);
    ops_array *const roots[2] = {made(ops_exp(x)), made(ops_exp(y))};
    kernels = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(roots, 2));
    assert_int_equal(statistics_of(test_context).kernels, kernels + 2);
    ops_array *short_lived = made(ops_add(ops_neg(x), y));
    kernels = statistics_of(test_context).kernels;
    ok(ops_array_evaluate(&short_lived, 1));
    assert_int_equal(statistics_of(test_context).kernels, kernels + 1);
    expect_equal(sum, short_lived);
    ops_array_release(inner);
    ok(ops_scope_end(test_context));
}

/* A graph reads its inputs, and makes its outputs, in the recorded order. */
static void graphs_keep_the_recorded_order(void **state)
{
    static const int64_t shape[2] = {3, 5}, turned[2] = {5, 3};
    ops_graph *graph;
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_neg(ops_array_transpose(whole_numbers(2, shape), 0, 1)));
    ops_array *other = made(ops_array_iota(test_context, HAL_TYPE_F32, 15, 1, 2));
    ops_array *y = made(ops_array_reshape(other, 2, turned));
    ops_array *same = made(ops_mul(x, x)); /* in the order of x */
    ok(ops_array_evaluate(&x, 1));
    ok(ops_graph_begin(test_context));
    ops_array *recorded = made(ops_add_scalar(x, 1));
    ok(ops_graph_end(test_context, &x, 1, &recorded, 1, &graph));
    ops_array *const inputs[] = {NULL, x, y, same};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        ops_array *out;
        ok(ops_graph_launch(graph, &inputs[i], 1, &out, 1));
        assert_true(ops_same_strides(&out->view, &x->view));
        expect_equal(out, ops_add_scalar(inputs[i] ? inputs[i] : x, 1));
    }
    ops_graph_destroy(graph);
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_keep_every_order),
        cmocka_unit_test(operands_agree_on_an_order),
        cmocka_unit_test(stretched_axes_have_no_order),
        cmocka_unit_test(views_with_gaps_become_dense),
        cmocka_unit_test(consumers_see_the_same_elements),
        cmocka_unit_test(products_take_every_order),
        cmocka_unit_test(fusing_keeps_bits_and_strides),
        cmocka_unit_test(plans_are_told_apart_by_strides),
        cmocka_unit_test(rows_keep_the_order),
        cmocka_unit_test(stored_values_have_a_kernel_for_each_order),
        cmocka_unit_test(graphs_keep_the_recorded_order),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}

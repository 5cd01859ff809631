/* Unusual programs of arrays: shapes whose bytes overflow, groups that change before they run,
 * chains of any length, fusion that is turned on and off, contexts that are destroyed early. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#define FAR (INT64_C(1) << 40)

static ops_array_statistics statistics(void)
{
    return statistics_of(test_context);
}

/* The values of floats, uniform in -1 to 1. */
static ops_array *floats(uint32_t rank, const int64_t *shape, uint64_t stream)
{
    return made(ops_array_uniform(test_context, HAL_TYPE_F32, rank, shape,
                                  (ops_random_key){11, stream}, -1, 1));
}

static ops_array *constant(hal_type type, int64_t rows, int64_t columns)
{
    return made(ops_array_full(test_context, type, 2, (int64_t[]){rows, columns}, 1));
}

/* ---- Shapes ---- */

static void shapes_beyond_counting_are_refused(void **state)
{
    const uint64_t before = statistics().arrays;
    ok(ops_scope_begin(test_context));
    ops_array *column = constant(HAL_TYPE_F32, FAR, 1), *row = constant(HAL_TYPE_F32, 1, FAR);
    nothing(ops_add(column, row), "63 bits");
    nothing(ops_array_where(ops_gt(column, column), column, row), "63 bits");
    nothing(ops_matmul(column, row), "at most 2^31 - 1");
    nothing(ops_reduce_sum(row, 1), "at most 2^31 - 1");
    nothing(ops_array_softmax(0, column), "at most 2^31 - 1");
    ops_array *bytes = constant(HAL_TYPE_I8, FAR, FAR >> 18); /* 2^62 */
    nothing(ops_array_cast(HAL_TYPE_F64, bytes), "63 bits");
    nothing(ops_array_reduce(OPS_REDUCE_ARGMAX, 0, 0,
                             made(ops_array_broadcast(bytes, 3, (int64_t[]){1, FAR, FAR >> 18}))),
            "63 bits");
    nothing(ops_array_full(test_context, HAL_TYPE_F32, 2, (int64_t[]){FAR, FAR}, 0), "63 bits");
    nothing(ops_array_slice(row, 1, 0, INT64_MAX, 0), "63 bits");
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().arrays, before);
}

/* Lengths of 0 next to lengths whose product overflows. */
static void empty_shapes_do_not_overflow(void **state)
{
    static const int64_t shapes[][4] = {{0, FAR, FAR, FAR}, {FAR, FAR, FAR, 0}, {FAR, 0, FAR, FAR}};
    ok(ops_scope_begin(test_context));
    for (int i = 0; i < 3; i++) {
        ops_array *x = ops_array_full(test_context, HAL_TYPE_F32, 4, shapes[i], 1);
        if (!x) {
            assert_non_null(strstr(hal_status_message(), "63 bits"));
            continue;
        }
        ops_array *y = ops_exp(x);
        assert_true(!y || ops_array_get_element_count(y) == 0);
        ok(y ? ops_array_read(y, 0, NULL) : HAL_OK);
    }
    ops_tensor tensor;
    nothing(ops_tensor_create(test_context, HAL_TYPE_F32, 4, shapes[0], &tensor) ? NULL : (void *)1,
            "63 bits");
    ops_array *thin = made(ops_array_full(test_context, HAL_TYPE_F32, 2, (int64_t[]){0, FAR}, 1));
    ops_array *cube =
        made(ops_array_full(test_context, HAL_TYPE_F32, 3, (int64_t[]){0, 1, FAR}, 1));
    ops_array *zeros = made(ops_reduce_sum(thin, 0));
    assert_int_equal(ops_array_get_length(zeros, 0), FAR);
    assert_true(ops_array_evaluate(&zeros, 1) != HAL_OK); /* no machine has 4 TiB for it */
    assert_true(hal_status_message()[0] != 0);
    ops_array *none = made(ops_add(cube, made(ops_array_reshape(thin, 3, (int64_t[]){0, 1, FAR}))));
    ok(ops_array_read(none, 0, NULL));
    ok(ops_scope_end(test_context));
}

static void ranks_from_0_to_16(void **state)
{
    enum { BEYOND = OPS_MAX_RANK + 1 };
    const int64_t ones[BEYOND] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                  many[OPS_MAX_RANK] = {2, 1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 2, 2};
    ok(ops_scope_begin(test_context));
    ops_array *number = made(ops_array_scalar(test_context, HAL_TYPE_F32, 3));
    ops_array *x = floats(OPS_MAX_RANK, many, 1);
    float got[48], first[48];
    ok(ops_array_read(x, sizeof first, first));
    ok(ops_array_read(ops_mul(ops_array_transpose(x, 0, 15), number), sizeof got, got));
    assert_true(got[1] == 3 * first[24]);
    nothing(ops_array_broadcast(x, BEYOND, ones), "rank: expected at most 16");
    nothing(ops_array_reshape(number, BEYOND, ones), "shape: expected as many");
    nothing(ops_array_full(test_context, HAL_TYPE_F32, BEYOND, ones, 0),
            "rank: expected at most 16");
    nothing(ops_array_from_host(test_context, HAL_TYPE_F32, BEYOND, ones, got),
            "rank: expected at most 16");
    nothing(ops_reduce_sum(number, 0), "expected an operand with axes");
    nothing(ops_array_slice(number, 0, 0, 1, 1), "expected an operand with axes");
    ok(ops_array_read(ops_neg(ops_array_permute(number, NULL)), 4, got));
    assert_true(got[0] == -3);
    ok(ops_scope_end(test_context));
}

/* ---- Groups that change before they run ---- */

enum { NODES = 20, LENGTH = 33 };

/* Sums of nodes that have memory by then: the running sums on the left or on the right. */
static ops_array *sum_of(ops_array *const *nodes, int from_left)
{
    ops_array *sum = ops_array_retain(nodes[0]);
    for (int i = 1; i < NODES; i++) {
        ops_array *next = made(from_left ? ops_add(sum, nodes[i]) : ops_add(nodes[i], sum));
        ops_array_release(sum);
        sum = next;
    }
    return sum;
}

/* Twenty nodes over two leaves are one kernel; once they have memory they are leaves. */
static void nodes_that_were_read_become_leaves(void **state)
{
    const int64_t shape[1] = {LENGTH};
    const uint64_t before = statistics().arrays;
    ops_array *a = floats(1, shape, 1), *b = floats(1, shape, 2), *nodes[NODES], *sums[3];
    for (int i = 0; i < NODES; i++) {
        nodes[i] = made(ops_array_binary(i % 2 ? OPS_MUL : OPS_SUB, i ? nodes[i - 1] : a, b));
    }
    sums[0] = sum_of(nodes, 1);
    sums[1] = sum_of(nodes, 0);
    ops_array *sum = sum_of(nodes, 0);
    sums[2] = made(ops_reduce_sum(sum, 0));
    ops_array_release(sum);
    float got[LENGTH], want[LENGTH] = {0}, part[LENGTH], total = 0;
    for (int i = 0; i < NODES; i++) {
        ok(ops_array_read(nodes[i], sizeof part, part));
        for (int k = 0; k < LENGTH; k++) {
            want[k] += part[k];
        }
    }
    for (int i = 0; i < 2; i++) {
        ok(ops_array_read(sums[i], sizeof got, got));
        assert_memory_equal(got, want, sizeof want);
    }
    ok(ops_array_read(sums[2], sizeof *got, got));
    for (int k = 0; k < LENGTH; k++) {
        total += want[k];
    }
    assert_true(fabsf(got[0] - total) < 1e-3f);
    arrays_release(nodes, NODES);
    arrays_release(sums, 3);
    release_all(a, b);
    assert_int_equal(statistics().arrays, before);
}

/* Deferred operations are computed after fusion was turned off, and the other way round. */
static void fusion_is_turned_in_between(void **state)
{
    const int64_t shape[2] = {3, 7};
    float got[2][21];
    for (int turned = 0; turned < 2; turned++) {
        ok(ops_scope_begin(test_context));
        ops_array *x = floats(2, shape, 5), *y = x;
        for (int i = 0; i < 300; i++) {
            y = made(i % 7 == 3   ? ops_mul(y, ops_array_reduce(OPS_REDUCE_MAX, 1, 1, y))
                     : i % 7 == 5 ? ops_array_softmax(1, y)
                                  : ops_sin(ops_add(y, x)));
            if (turned && i % 29 == 0) {
                ops_context_set_fusion(test_context, (i / 29) % 2);
            }
        }
        ok(ops_array_read(y, sizeof got[turned], got[turned]));
        ok(ops_scope_end(test_context));
        ops_context_set_fusion(test_context, 1);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

/* The epoch of groups, which arrays store, wraps around. */
static void epochs_wrap_around(void **state)
{
    const int64_t shape[1] = {9};
    float values[3][9], got[9];
    ok(ops_scope_begin(test_context));
    ops_array *x = floats(1, shape, 1), *y = floats(1, shape, 2), *z = floats(1, shape, 3);
    ok(ops_array_read(x, sizeof got, values[0]));
    ok(ops_array_read(y, sizeof got, values[1]));
    ok(ops_array_read(z, sizeof got, values[2]));
    x->cluster_epoch = y->cluster_epoch = z->cluster_epoch = 0; /* in no cluster yet */
    ops_arrays_of(test_context)->cluster_epoch = UINT32_MAX;
    ok(ops_array_read(ops_sub(ops_mul(y, z), x), sizeof got, got));
    for (int i = 0; i < 9; i++) {
        float product = values[1][i] * values[2][i];
        assert_true(got[i] == product - values[0][i]);
    }
    ok(ops_scope_end(test_context));
}

/* Two reductions with the most inputs and operations of a kernel, which differ in the strides of
 * the last input. */
static ops_array *large_reduction(ops_array *const *before, ops_array *const *after, int last)
{
    ops_array *x = ops_array_transpose(before[0], 0, 7);
    for (int i = 0; i < 60; i++) {
        ops_array *other = ops_array_transpose(before[i % 10], 0, 7);
        x = i < 10 ? ops_add(x, other) : ops_sin(x);
    }
    ops_array *y = ops_array_reduce(OPS_REDUCE_SUM, 1, 1, x);
    for (int i = 0; i < 60; i++) {
        ops_array *other = ops_array_transpose(after[i % 10], 0, 7);
        other = i == 9 && last ? ops_array_transpose(other, 6, 7) : other;
        y = i < 10 ? ops_mul(y, other) : ops_neg(y);
    }
    return y;
}

static void the_largest_kernels_are_told_apart(void **state)
{
    const int64_t shape[8] = {2, 3, 2, 1, 2, 1, 2, 2}, reduced[8] = {2, 1, 2, 1, 2, 1, 2, 2};
    float got[2][2][32];
    ok(ops_scope_begin(test_context));
    ops_array *before[10], *after[10];
    for (int i = 0; i < 10; i++) {
        before[i] = floats(8, shape, (uint64_t)i);
        after[i] = floats(8, reduced, (uint64_t)i + 10);
    }
    for (int fusion = 1; fusion >= 0; fusion--) {
        ops_context_set_fusion(test_context, fusion);
        for (int last = 0; last < 2; last++) {
            ok(ops_scope_begin(test_context));
            ok(ops_array_read(large_reduction(before, after, last), sizeof got[0][0],
                              got[fusion][last]));
            ok(ops_scope_end(test_context));
        }
    }
    ops_context_set_fusion(test_context, 1);
    ok(ops_scope_end(test_context));
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_true(memcmp(got[0][0], got[0][1], sizeof got[0][0]) != 0);
}

/* ---- Chains of any length ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHAIN = 3000, HELD = 500, WIDTH = 1000 }; /* links take ten times as long */
#else
enum { CHAIN = 20000, HELD = 3000, WIDTH = 5000 };
#endif

static ops_array *link(int kind, ops_array *x, ops_array *leaf)
{
    const int64_t wide[3] = {2, 4, 6}, narrow[2] = {4, 6}, turned[2] = {6, 4};
    const int64_t square[2] = {6, 6};
    switch (kind) {
    case 0:
        return ops_array_slice(x, 1, 5, 6, -1);
    case 1:
        return ops_array_transpose(ops_array_transpose(x, 0, 1), 0, 1);
    case 2:
        return ops_array_reshape(ops_array_transpose(ops_array_reshape(x, 2, turned), 0, 1), 2,
                                 narrow);
    case 3:
        return ops_reduce_max(ops_array_broadcast(x, 3, wide), 0);
    case 4:
        return ops_add(leaf, ops_array_reduce(OPS_REDUCE_MIN, 0, 1, x));
    case 5:
        return ops_array_softmax(1, x);
    case 6:
        return ops_matmul(x, ops_array_full(test_context, HAL_TYPE_F32, 2, square, 0.125));
    case 7:
        return ops_array_cast(HAL_TYPE_F32, ops_array_cast(HAL_TYPE_I8, x));
    case 8:
        return ops_array_where(ops_gt(x, leaf), leaf, x);
    default:
        return ops_neg(x);
    }
}

static void chains_of_any_length(void **state)
{
    const int64_t shape[2] = {4, 6};
    const ops_array_statistics before = statistics();
    for (int kind = 0; kind < 10; kind++) {
        for (int is_read = 0; is_read < 2; is_read++) {
            ops_array *leaf = floats(2, shape, 3), *x = ops_array_retain(leaf);
            for (int i = 0; i < CHAIN; i++) {
                ok(ops_scope_begin(test_context));
                ops_array *y = ops_array_keep(made(link(kind, x, leaf)));
                ok(ops_scope_end(test_context));
                ops_array_release(x);
                x = y;
                assert_true(statistics().arrays < before.arrays + 400);
            }
            float got[24];
            ok(is_read ? ops_array_read(x, sizeof got, got) : HAL_OK);
            release_all(x, leaf);
        }
    }
    assert_int_equal(statistics().arrays, before.arrays);
    assert_int_equal(statistics().deferred, before.deferred);
}

/* All links are held until the end. */
static void long_chains_that_are_held(void **state)
{
    const int64_t shape[2] = {4, 6};
    const uint64_t before = statistics().arrays;
    for (int kind = 0; kind < 10; kind++) {
        ok(ops_scope_begin(test_context));
        ops_array *leaf = floats(2, shape, 3), *x = leaf;
        for (int i = 0; i < HELD; i++) {
            x = made(link(kind, x, leaf));
        }
        float got[24];
        ok(kind % 2 ? ops_array_read(x, sizeof got, got) : HAL_OK);
        ok(ops_scope_end(test_context));
    }
    assert_int_equal(statistics().arrays, before);
}

/* One array with very many users, and one user of very many arrays. */
static void wide_programs(void **state)
{
    static ops_array *users[WIDTH];
    const int64_t shape[1] = {3};
    float got[3], want[3];
    ok(ops_scope_begin(test_context));
    ops_array *x = floats(1, shape, 3), *y = made(ops_exp(x)), *sum = y;
    for (int i = 0; i < WIDTH; i++) {
        users[i] = made(ops_add(y, ops_array_scalar(test_context, HAL_TYPE_F32, i)));
        sum = made(ops_maximum(sum, users[i]));
    }
    ok(ops_array_evaluate(users, WIDTH));
    ok(ops_array_read(sum, sizeof got, got));
    ok(ops_array_read(users[WIDTH - 1], sizeof want, want));
    assert_memory_equal(got, want, sizeof want);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().deferred, 0);
}

/* The same array in every place, and named several times. */
static void one_array_in_all_places(void **state)
{
    const int64_t shape[2] = {4, 4};
    float got[16], x_values[16];
    ok(ops_scope_begin(test_context));
    ops_array *x = floats(2, shape, 3), *b = ops_gt(x, x);
    ops_array *y = ops_array_where(b, x, x), *product = ops_matmul(y, y);
    ops_array *same[6] = {product, y, product, y, x, b};
    ok(ops_array_evaluate(same, 6));
    ok(ops_array_evaluate(same, 6));
    ok(ops_array_evaluate(same, 0));
    ok(ops_array_read(y, sizeof got, got));
    ok(ops_array_read(x, sizeof x_values, x_values));
    assert_memory_equal(got, x_values, sizeof got);
    ops_array_keep(y);
    ops_array_keep(y);
    ops_array_release(y);
    ok(ops_scope_end(test_context));
}

/* ---- Graphs and contexts ---- */

/* All arrays of a value share one constant: a launch that replaced it would change them too. */
static void constants_are_no_inputs(void **state)
{
    ops_graph *graph = NULL;
    float got = 0;
    ops_array *rate = made(ops_array_scalar(test_context, HAL_TYPE_F32, 1));
    ok(ops_graph_begin(test_context));
    ops_array *y = made(ops_add(ops_neg(rate), ops_array_scalar(test_context, HAL_TYPE_F32, 1)));
    hal_status status = ops_graph_end(test_context, &rate, 1, &y, 1, &graph);
    ops_array_release(y);
    if (status) {
        assert_non_null(strstr(hal_status_message(), "constant"));
    } else {
        ops_array *half = made(ops_array_scalar(test_context, HAL_TYPE_F32, 0.5));
        ok(ops_graph_launch(graph, &half, 1, &y, 1));
        ok(ops_array_read(y, sizeof got, &got));
        assert_true(got == 0.5f);
    }
    ops_graph_destroy(graph);
    ops_array_release(rate);
}

static void recordings_end_with_their_context(void **state)
{
    ops_context *other;
    float got[3];
    ok(ops_context_create(test_queue, &other));
    ops_array *x = made(ops_array_full(other, HAL_TYPE_F32, 1, (int64_t[]){3}, 2));
    ok(ops_graph_begin(other));
    made(ops_exp(x));
    ops_context_destroy(other);
    ops_array *y = made(ops_array_full(test_context, HAL_TYPE_F32, 1, (int64_t[]){3}, 2));
    ops_array *z = made(ops_neg(y));
    ok(ops_array_read(z, sizeof got, got)); /* the queue is not recording any more */
    release_all(y, z);
}

/* Scopes that begin before a recording and end in it, and the other way round. */
static void scopes_across_recordings(void **state)
{
    const int64_t shape[1] = {5};
    const uint64_t before = statistics().arrays;
    ops_graph *graph = NULL;
    ok(ops_scope_begin(test_context));
    ops_array *x = ops_array_keep(floats(1, shape, 1)), *lost = made(ops_exp(x));
    ok(ops_graph_begin(test_context));
    ops_array *y = made(ops_neg(ops_exp(x)));
    ops_array_retain(y);
    ok(ops_scope_end(test_context));
    (void)lost;
    ok(ops_scope_begin(test_context));
    ops_array *z = made(ops_abs(y)), *view = made(ops_array_slice(z, 0, 1, 3, 1));
    ok(ops_graph_end(test_context, &x, 1, (ops_array *[]){z, view}, 2, &graph));
    nothing(ops_neg(view), "ops_graph_launch");
    nothing(ops_array_slice(y, 0, 0, 1, 1), "ops_graph_launch");
    ok(ops_scope_end(test_context));
    ops_array_release(y);
    float got[5], part[3], in[5];
    ops_array *outputs[2];
    ok(ops_scope_begin(test_context));
    ok(ops_graph_launch(graph, &x, 1, outputs, 2));
    ok(ops_array_read(outputs[0], sizeof got, got));
    ok(ops_array_read(outputs[1], sizeof part, part));
    assert_memory_equal(part, got + 1, sizeof part);
    ok(ops_array_read(x, sizeof in, in));
    assert_true(fabsf(got[2] - expf(in[2])) < 1e-5f);
    ok(ops_scope_end(test_context));
    ops_graph_destroy(graph);
    ops_array_release(x);
    assert_int_equal(statistics().arrays, before);
}

static void graphs_of_odd_inputs(void **state)
{
    const int64_t shape[1] = {5};
    ops_graph *graph = NULL;
    ops_array *x = floats(1, shape, 1), *part = made(ops_array_slice(x, 0, 1, 4, 1));
    ops_array *twice[2] = {x, x};
    ok(ops_graph_begin(test_context));
    ops_array *y = made(ops_neg(x));
    hal_status status = ops_graph_end(test_context, twice, 2, &y, 1, &graph);
    assert_true(status == HAL_ERROR_INVALID_ARGUMENT && hal_status_message()[0]);
    ops_array_release(y);
    ok(ops_graph_begin(test_context));
    y = made(ops_neg(part));
    invalid(ops_graph_end(test_context, &part, 1, &y, 1, &graph), "a view of a larger array");
    ops_array_release(y);
    assert_null(graph);
    ok(ops_graph_begin(test_context));
    y = made(ops_neg(x));
    ok(ops_graph_end(test_context, &x, 1, (ops_array *[]){y, y}, 2, &graph));
    ops_array_release(y);
    ops_array *both[2];
    ok(ops_graph_launch(graph, (ops_array *[]){NULL}, 1, both, 2));
    invalid(ops_graph_launch(graph, (ops_array *[]){part}, 1, both + 1, 2),
            "expected f32[5], as recorded");
    invalid(ops_graph_launch(NULL, NULL, 0, both, 2), "graph: exp");
    invalid(ops_graph_launch(graph, &x, 1, NULL, 2), "outputs: exp");
    float got[2][5];
    ok(ops_array_read(both[0], sizeof got[0], got[0]));
    ok(ops_array_read(both[1], sizeof got[1], got[1]));
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    ops_graph_destroy(graph);
    release_all(both[0], both[1], part, x);
}

/* The front of a larger array begins where its memory does, but does not fill it. */
static void graphs_of_fronts(void **state)
{
    const int64_t shape[1] = {9};
    ops_graph *graph = NULL;
    float values[9], got[3];
    ops_array *x = floats(1, shape, 1), *front = made(ops_array_slice(x, 0, 0, 3, 1)), *out;
    ok(ops_array_read(x, sizeof values, values));
    ok(ops_graph_begin(test_context));
    ops_array *y = made(ops_neg(x)), *part = made(ops_array_slice(y, 0, 0, 3, 1));
    ok(ops_graph_end(test_context, &x, 1, &part, 1, &graph));
    release_all(y, part);
    ok(ops_graph_launch(graph, &x, 1, &out, 1));
    ok(ops_array_read(out, sizeof got, got));
    for (int i = 0; i < 3; i++) {
        assert_true(got[i] == -values[i]);
    }
    ops_array_release(out);
    ops_graph_destroy(graph);
    graph = NULL;
    ok(ops_graph_begin(test_context));
    y = made(ops_neg(front));
    invalid(ops_graph_end(test_context, &front, 1, &y, 1, &graph), "its memory");
    assert_null(graph);
    release_all(y, front, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_beyond_counting_are_refused),
        cmocka_unit_test(empty_shapes_do_not_overflow),
        cmocka_unit_test(ranks_from_0_to_16),
        cmocka_unit_test(nodes_that_were_read_become_leaves),
        cmocka_unit_test(fusion_is_turned_in_between),
        cmocka_unit_test(epochs_wrap_around),
        cmocka_unit_test(the_largest_kernels_are_told_apart),
        cmocka_unit_test(chains_of_any_length),
        cmocka_unit_test(long_chains_that_are_held),
        cmocka_unit_test(wide_programs),
        cmocka_unit_test(one_array_in_all_places),
        cmocka_unit_test(constants_are_no_inputs),
        cmocka_unit_test(scopes_across_recordings),
        cmocka_unit_test(graphs_of_odd_inputs),
        cmocka_unit_test(graphs_of_fronts),
        cmocka_unit_test(recordings_end_with_their_context),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}

/* Loops and branches on values of the device: results, kernels of an iteration, reads by the host,
 * graphs, errors of the caller and of callbacks, no array left. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <ops/loop.h>

typedef struct loop_user {
    uint32_t bodies, conditions;
    int failure; /* what a callback does wrong; 0: nothing */
} loop_user;

enum {
    BODY_FAILS = 1,
    BODY_NULL,
    BODY_SHAPE,
    BODY_TYPE,
    CONDITION_NULL,
    CONDITION_SHAPE,
    CONDITION_TYPE
};

/* state: the sum, and the last number added to it; while the sum is below 100. */
static ops_array *below_100(void *user, ops_array *const *s)
{
    loop_user *u = user;
    u->conditions++;
    return u->failure == CONDITION_NULL    ? ops_add(s[0], NULL)
           : u->failure == CONDITION_SHAPE ? ops_array_binary_scalar(OPS_LT, s[2], 1)
           : u->failure == CONDITION_TYPE  ? s[0]
                                           : ops_array_binary_scalar(OPS_LT, s[0], 100);
}

static hal_status add_next(void *user, ops_array *const *s, ops_array **next)
{
    loop_user *u = user;
    u->bodies++;
    next[1] = ops_add_scalar(s[1], 1);
    next[0] = ops_add(s[0], ops_mul(next[1], next[1]));
    next[2] = s[2];
    if (u->failure == BODY_FAILS) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED, "the body says no");
    }
    next[0] = u->failure == BODY_NULL    ? ops_add(next[0], s[2])
              : u->failure == BODY_SHAPE ? ops_array_reshape(next[0], 1, (int64_t[]){1})
              : u->failure == BODY_TYPE  ? ops_array_cast(HAL_TYPE_I32, next[0])
                                         : next[0];
    next[0] = u->failure == BODY_NULL ? NULL : next[0];
    return HAL_OK;
}

static void make_state(ops_array *state[3])
{
    const float two[2] = {3, 4};
    const int64_t shape[1] = {2};
    state[0] = made(ops_array_scalar(test_context, HAL_TYPE_F32, 0));
    state[1] = made(ops_array_scalar(test_context, HAL_TYPE_F32, 0));
    state[2] = made(ops_array_from_host(test_context, HAL_TYPE_F32, 1, shape, two));
}

static void sums_are(ops_array *const *results, float sum, float last)
{
    float got[2];
    ok(ops_array_read(results[0], sizeof *got, got));
    assert_true(*got == sum);
    ok(ops_array_read(results[1], sizeof *got, got));
    assert_true(*got == last);
    ok(ops_array_read(results[2], sizeof got, got));
    assert_true(got[0] == 3 && got[1] == 4);
}

/* 1 + 4 + 9 + 16 + 25 + 36 = 91; with 49 it is 140. */
static void a_loop_ends_by_its_condition(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    ops_array *start[3], *results[3];
    make_state(start);
    for (uint32_t stride = 0; stride < 12; stride++) {
        loop_user u = {0};
        const ops_loop_options options = {.size = sizeof options, .stride = stride, .limit = 12};
        ok(ops_array_while(&options, below_100, add_next, &u, start, 3, results));
        sums_are(results, 140, 7);
        const uint32_t of = stride ? stride : 1;
        assert_int_equal(u.bodies, (7 + of - 1) / of * of > 12 ? 12 : (7 + of - 1) / of * of);
        assert_int_equal(u.conditions, u.bodies + 1);
        release_all(results[0], results[1], results[2]);
    }
    sums_are(start, 0, 0);
    release_all(start[0], start[1], start[2]);
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void a_limit_ends_a_loop(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    for (uint32_t stride = 1; stride < 5; stride++) {
        loop_user u = {0};
        ops_array *s[3], *results[3];
        const ops_loop_options options = {.size = sizeof options, .stride = stride, .limit = 3};
        make_state(s);
        ok(ops_array_while(&options, below_100, add_next, &u, s, 3, results));
        sums_are(results, 14, 3);
        assert_int_equal(u.bodies, 3);
        release_all(results[0], results[1], results[2], s[0], s[1], s[2]);
    }
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static hal_status add_once(void *user, ops_array *const *s, ops_array **next)
{
    next[0] = ops_add_scalar(s[0], 200);
    next[1] = next[0];
    next[2] = s[2];
    return HAL_OK;
}

/* The arrays of the state may be those of the results, and results one array. */
static void results_replace_the_state(void **state)
{
    loop_user u = {0};
    ops_array *s[3], *start[3];
    const uint64_t arrays = statistics_of(test_context).arrays;
    ok(ops_scope_begin(test_context));
    make_state(start);
    memcpy(s, start, sizeof s);
    ok(ops_array_while(NULL, below_100, add_once, &u, s, 3, s));
    sums_are(s, 200, 200);
    ok(ops_array_while(NULL, below_100, add_once, &u, s, 3, s)); /* false at first */
    sums_are(s, 200, 200);
    sums_are(start, 0, 0);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

/* The body, the condition and what holds the state still are one kernel. */
static void an_iteration_is_one_kernel(void **state)
{
    for (uint32_t stride = 1; stride < 3; stride++) {
        loop_user u = {0};
        ops_array *s[3], *results[3];
        ok(ops_scope_begin(test_context));
        make_state(s);
        const ops_loop_options options = {.size = sizeof options, .stride = stride};
        const uint64_t before = statistics_of(test_context).kernels;
        ok(ops_array_while(&options, below_100, add_next, &u, s, 3, results));
        assert_int_equal(statistics_of(test_context).kernels - before, u.bodies + 1);
        ok(ops_scope_end(test_context));
    }
}

/* Without a read by the host a loop is part of a graph. */
static void a_graph_holds_a_loop_without_reads(void **state)
{
    loop_user u = {0};
    ops_array *s[3], *results[3], *again[3];
    ops_loop_options options = {.size = sizeof options, .stride = 8, .limit = 9};
    ops_graph *graph;
    make_state(s);
    ok(ops_array_evaluate(s, 3));
    ok(ops_graph_begin(test_context));
    assert_int_equal(ops_array_while(&options, below_100, add_next, &u, s, 3, results),
                     HAL_ERROR_INVALID_STATE);
    assert_null(results[0]);
    options.limit = 8;
    ok(ops_array_while(&options, below_100, add_next, &u, s, 3, results));
    assert_int_equal(u.bodies, 8);
    ops_array *recorded[3] = {results[0], results[1], made(ops_add_scalar(results[2], 0))};
    ok(ops_graph_end(test_context, NULL, 0, recorded, 3, &graph));
    ok(ops_graph_launch(graph, NULL, 0, again, 3));
    sums_are(again, 140, 7);
    release_all(again[0], again[1], again[2], results[0], results[1], results[2], recorded[2]);
    release_all(s[0], s[1], s[2]);
    ops_graph_destroy(graph);
}

static hal_status two_products(void *user, ops_array *const *x, ops_array **results)
{
    (*(int *)user)++;
    results[0] = ops_mul(x[0], x[1]);
    results[1] = results[0];
    return HAL_OK;
}

static hal_status operands_again(void *user, ops_array *const *x, ops_array **results)
{
    *(int *)user += 10;
    results[0] = x[1];
    results[1] = x[0];
    return HAL_OK;
}

static void a_branch_is_called(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    int calls = 0;
    float got[2];
    ops_array *x[2] = {made(ops_array_scalar(test_context, HAL_TYPE_F32, 5)),
                       made(ops_array_scalar(test_context, HAL_TYPE_F32, 7))};
    for (int i = 0; i < 2; i++) {
        ops_array *results[2];
        ops_array *condition = made(ops_array_binary_scalar(i ? OPS_LT : OPS_GT, x[0], 6));
        ok(ops_array_cond(condition, two_products, operands_again, &calls, x, 2, results, 2));
        ok(ops_array_read(results[0], sizeof *got, &got[0]));
        ok(ops_array_read(results[1], sizeof *got, &got[1]));
        assert_true(got[0] == (i ? 35 : 7) && got[1] == (i ? 35 : 5));
        release_all(condition, results[0], results[1]);
    }
    assert_int_equal(calls, 11);
    release_all(x[0], x[1]);
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

static void errors_are_told(void **state)
{
    static const char *words[] = {
        [BODY_FAILS] = "the body says no",
        [BODY_NULL] = "body: results",
        [BODY_SHAPE] = "type and shape of the state",
        [BODY_TYPE] = "type and shape of the state",
        [CONDITION_NULL] = "condition: expected an array, got null",
        [CONDITION_SHAPE] = "condition: expected one bool",
        [CONDITION_TYPE] = "condition: expected one bool",
    };
    const uint64_t arrays = statistics_of(test_context).arrays;
    ops_array *s[3], *results[3];
    int calls = 0;
    ok(ops_scope_begin(test_context));
    make_state(s);
    for (int failure = BODY_FAILS; failure <= CONDITION_TYPE; failure++) {
        loop_user u = {.failure = failure};
        const hal_status status = ops_array_while(NULL, below_100, add_next, &u, s, 3, results);
        assert_int_equal(status, failure == BODY_FAILS ? HAL_ERROR_UNSUPPORTED
                                                       : HAL_ERROR_INVALID_ARGUMENT);
        assert_true(strstr(hal_status_message(), words[failure]));
        assert_null(results[0]);
    }
    loop_user u = {0};
    const ops_loop_options unset = {0};
    assert_int_equal(ops_array_while(&unset, below_100, add_next, &u, s, 3, results),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_array_while(NULL, below_100, add_next, &u, s, 17, results),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_array_while(NULL, below_100, NULL, &u, s, 3, results),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_array_cond(s[2], two_products, operands_again, &calls, s, 2, results, 2),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_array_cond(NULL, two_products, operands_again, &calls, s, 2, results, 2),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(calls, 0);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_ends_by_its_condition),
        cmocka_unit_test(a_limit_ends_a_loop),
        cmocka_unit_test(results_replace_the_state),
        cmocka_unit_test(an_iteration_is_one_kernel),
        cmocka_unit_test(a_graph_holds_a_loop_without_reads),
        cmocka_unit_test(a_branch_is_called),
        cmocka_unit_test(errors_are_told),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}

/* Split-K in arrays, over the mock plugin, which declines products of more than 1,000 rows: cached
 * plans, graphs, kernels compiled ahead or deferred, and too little memory for partial sums. */
#include "ops_mock_place.h"

#include "ops_device.h"
#include <ops/ops.h>

enum { M = 1001, N = 3, K = 40, DEPTH = 2, PARTS_BYTES = K / DEPTH * M * N * 4 };

static int open_with_parts(void **state)
{
    if (open_place(state) != 0) {
        return -1;
    }
    test_tune(context)->compile.fast_ns = UINT64_MAX;
    test_tune(context)->gemm.split_depth = DEPTH;
    return 0;
}

#define ok(call) assert_int_equal((call), HAL_OK)

static float a_at(int row, int k, int salt)
{
    return (float)((row * 7 + k * 3 + salt) % 5) - 2;
}

static float b_at(int k, int column, int salt)
{
    return (float)((k * 5 + column + 2 * salt) % 7) - 3;
}

static ops_array *make_a(int salt)
{
    static float values[M * K];
    const int64_t shape[2] = {M, K};
    for (int i = 0; i < M * K; i++) {
        values[i] = a_at(i / K, i % K, salt);
    }
    return ops_array_from_host(context, HAL_TYPE_F32, 2, shape, values);
}

static ops_array *make_b(int salt)
{
    float values[K * N];
    const int64_t shape[2] = {K, N};
    for (int i = 0; i < K * N; i++) {
        values[i] = b_at(i / N, i % N, salt);
    }
    return ops_array_from_host(context, HAL_TYPE_F32, 2, shape, values);
}

/* relu(A B + 1): the epilogue is the adding kernel's. */
static ops_array *layer(ops_array *a, ops_array *b)
{
    ops_array *product = ops_array_matmul(a, b, HAL_GEMM_STRICT);
    ops_array *one = ops_array_scalar(context, HAL_TYPE_F32, 1);
    ops_array *sum = ops_add(product, one), *y = ops_relu(sum);
    release_all(product, one, sum);
    assert_non_null(y);
    return y;
}

static void is_right(ops_array *y, int salt)
{
    static float got[M * N];
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < M * N; i++) {
        float sum = 1;
        for (int k = 0; k < K; k++) {
            sum += a_at(i / N, k, salt) * b_at(k, i % N, salt);
        }
        if (got[i] != (sum > 0 ? sum : 0)) {
            fail_msg("element %d, salt %d: %g", i, salt, (double)got[i]);
        }
    }
    if (mock->problem[0]) {
        fail_msg("%s", mock->problem);
    }
}

static void compute(int salt)
{
    ops_array *a = make_a(salt), *b = make_b(salt), *y = layer(a, b);
    is_right(y, salt);
    release_all(y, a, b);
}

/* Kernels of the context, without entries of declined products. */
static uint32_t kernels(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < context->kernels.capacity; i++) {
        count += context->kernels.entries[i].kernel != NULL;
    }
    return count;
}

static uint64_t compiled(void)
{
    return statistics_of(context).compiled;
}

/* The second call replays the first one's plan, with its kernels and temporaries. */
static void what_was_recorded_is_recorded_again(void **state)
{
    compute(1);
    assert_int_equal(kernels(), 2);
    assert_int_equal(compiled(), 1);
    /* A call that is planned anew would have one kernel. */
    test_tune(context)->gemm.split_depth = 0;
    for (int salt = 2; salt < 5; salt++) {
        compute(salt);
    }
    assert_int_equal(kernels(), 2);
    assert_int_equal(compiled(), 1);
}

static void graphs_keep_their_parts(void **state)
{
    ops_graph *graph;
    ops_array *a = make_a(1), *b = make_b(1), *inputs[2] = {a, b}, *outputs[1];
    ok(ops_graph_begin(context));
    ops_array *y = layer(a, b);
    ok(ops_graph_end(context, inputs, 2, &y, 1, &graph));
    ops_array_release(y);
    assert_int_equal(kernels(), 2);
    for (int salt = 2; salt < 5; salt++) {
        inputs[0] = make_a(salt);
        inputs[1] = make_b(salt);
        ok(ops_graph_launch(graph, inputs, 2, outputs, 1));
        is_right(outputs[0], salt);
        release_all(outputs[0], inputs[0], inputs[1]);
        compute(salt + 10); /* whose parts are not the graph's */
    }
    release_all(a, b);
    ops_graph_destroy(graph);
}

static hal_status program(ops_context *with, void *user)
{
    ops_array **operands = user;
    assert_ptr_equal(with, context);
    ops_array *y = layer(operands[0], operands[1]);
    hal_status status = ops_array_evaluate(&y, 1);
    ops_array_release(y);
    return status;
}

/* A warm program makes no kernel (promise 10). */
static void both_kernels_are_made_ahead(void **state)
{
    ops_array *operands[2] = {make_a(3), make_b(3)};
    ok(ops_prepare(context, program, operands));
    assert_int_equal(kernels(), 2);
    const uint32_t calls = atomic_load(&mock->calls[MOCK_KERNEL]);
    compute(4);
    assert_int_equal(atomic_load(&mock->calls[MOCK_KERNEL]), calls);
    release_all(operands[0], operands[1]);
}

/* Room for C, and not for the parts. */
static void leave_no_room(void)
{
    ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    ok(hal_device_trim(device));
    atomic_store(&mock->memory_limit, atomic_load(&mock->memory_bytes) + PARTS_BYTES / 2);
}

static void without_room_it_is_one_product(void **state)
{
    ops_array *a = make_a(1), *b = make_b(1);
    ok(ops_array_evaluate(&a, 1));
    ok(ops_array_evaluate(&b, 1));
    leave_no_room();
    ops_array *y = layer(a, b);
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(kernels(), 1);
    atomic_store(&mock->memory_limit, UINT64_C(1) << 30);
    is_right(y, 1);
    ops_array_release(y);
    y = layer(a, b); /* the plan of the call without memory was not cached */
    is_right(y, 1);
    assert_int_equal(kernels(), 3);
    release_all(y, a, b);
}

static void without_room_what_was_recorded_is_planned_again(void **state)
{
    ops_array *a = make_a(1), *b = make_b(1), *y = layer(a, b);
    is_right(y, 1);
    ops_array_release(y);
    assert_int_equal(kernels(), 2);
    leave_no_room();
    y = layer(a, b);
    ok(ops_array_evaluate(&y, 1));
    atomic_store(&mock->memory_limit, UINT64_C(1) << 30);
    is_right(y, 1);
    ops_array_release(y);
    assert_int_equal(kernels(), 3); /* the one product */
    const uint64_t before = compiled();
    y = layer(a, b);
    is_right(y, 1);
    assert_int_equal(compiled(), before);
    release_all(y, a, b);
}

/* While kernels are not made, one that is missing leaves nothing recorded of the other. */
static void a_missing_kernel_leaves_nothing(void **state)
{
    ops_tensor a, b, c;
    ops_array *all[2] = {make_a(1), make_b(1)};
    const int64_t shape[2] = {M, N};
    ops_gemm_options options = {.size = sizeof(ops_gemm_options), .alpha = 1};
    ok(ops_array_get_tensor(all[0], &a));
    ok(ops_array_get_tensor(all[1], &b));
    ok(ops_tensor_create(context, HAL_TYPE_F32, 2, shape, &c));
    ok(ops_gemm(context, &options, &a, &b, &c));
    ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(kernels(), 2);
    const uint32_t logged = mock->logged_count;
    options.beta = 0.5; /* only the adding kernel is another one */
    ops_compile_policy_begin_refusing(context->compile_policy, OPS_MISSING_REFUSED);
    assert_int_equal(ops_gemm(context, &options, &a, &b, &c), HAL_ERROR_NOT_FOUND);
    assert_true(ops_compile_policy_end_refusing(context->compile_policy));
    ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, logged);
    ok(ops_gemm(context, &options, &a, &b, &c));
    ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
    assert_int_equal(mock->logged_count, logged + 2);
    assert_int_equal(kernels(), 3);
    ops_tensor_release(&c);
    release_all(all[0], all[1]); /* with the buffers of a and b */
}

#define WITH_PARTS(test) cmocka_unit_test_setup_teardown(test, open_with_parts, close_place)

int main(void)
{
    setenv("HAL_CACHE_DIR", "off",
           1); /* a kernel that an earlier run stored would not be missing */
    const struct CMUnitTest tests[] = {
        WITH_PARTS(what_was_recorded_is_recorded_again),
        WITH_PARTS(graphs_keep_their_parts),
        WITH_PARTS(both_kernels_are_made_ahead),
        WITH_PARTS(without_room_it_is_one_product),
        WITH_PARTS(without_room_what_was_recorded_is_planned_again),
        WITH_PARTS(a_missing_kernel_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Products and what follows them in arrays, over the mock plugin, which has a kernel for products
 * of up to 1,000 rows, except for none whose epilogue reads a mask: an epilogue must not take a
 * product to another kernel, whose sums have another order. */
#include "ops_mock_place.h"

#include "ops_device.h"
#include <ops/ops.h>

enum { K = 24, N = 16, MOST_ROWS = 1001 };

static ops_array *matrix(hal_type type, int64_t rows, int64_t columns)
{
    static float values[MOST_ROWS * K];
    const int64_t shape[2] = {rows, columns};
    return made(ops_array_from_host(context, type, 2, shape, values));
}

/* Evaluates an array and releases it. Returns the dispatches that it took. */
static uint32_t dispatches_of(ops_array *y)
{
    static float got[MOST_ROWS * N];
    uint32_t count = 0;
    const uint32_t before = mock->logged_count;
    const uint64_t bytes = (uint64_t)y->view.shape[0] * N * hal_type_size(y->view.type);
    assert_int_equal(ops_array_read(y, bytes, got), HAL_OK);
    for (uint32_t i = before; i < mock->logged_count; i++) {
        count += mock->logged[i].command.kind == HAL_COMMAND_DISPATCH;
    }
    ops_array_release(y);
    return count;
}

/* relu(A B), or A B where a mask says so and else 0. */
static uint32_t dispatches(int64_t rows, int is_masked)
{
    ops_array *a = matrix(HAL_TYPE_F32, rows, K), *b = matrix(HAL_TYPE_F32, K, N);
    ops_array *mask = matrix(HAL_TYPE_BOOL, rows, N);
    ops_array *zero = made(ops_array_scalar(context, HAL_TYPE_F32, 0));
    ops_array *product = made(ops_array_matmul(a, b, HAL_GEMM_STRICT));
    ops_array *y = made(is_masked ? ops_array_where(mask, product, zero) : ops_relu(product));
    release_all(a, b, mask, zero, product);
    return dispatches_of(y);
}

static void an_epilogue_stays_with_a_product_that_takes_it(void **state)
{
    assert_int_equal(dispatches(64, 0), 1);
}

static void an_epilogue_that_the_plugin_declines_is_a_kernel_of_its_own(void **state)
{
    for (int i = 0; i < 3; i++) { /* planned, then replayed */
        assert_int_equal(dispatches(64, 1), 2);
    }
}

/* Where compilation is slow, the operations of a new plan run one by one at first: the product is
 * computed once. */
static void a_deferred_plan_computes_its_product_once(void **state)
{
    test_tune(context)->compile.fast_ns = 0;
    context->compile_policy->recent_compile_ns = UINT64_MAX / 4;
    context->compile_policy->eager_plans = 0;
    assert_int_equal(dispatches(64, 1), 2);
}

static void a_portable_product_keeps_its_epilogue(void **state)
{
    assert_int_equal(dispatches(MOST_ROWS, 0), 1);
    assert_int_equal(dispatches(MOST_ROWS, 1), 1);
}

/* Bytes of device memory that relu(A B) takes in addition to what the pool has. */
static uint64_t memory_of_relu(ops_array *a, ops_array *b)
{
    ops_array *product = made(ops_array_matmul(a, b, HAL_GEMM_STRICT));
    ops_array *y = made(ops_relu(product));
    ops_array_release(product);
    const uint64_t before = mock->memory_bytes;
    assert_int_equal(ops_array_evaluate(&y, 1), HAL_OK);
    const uint64_t more = mock->memory_bytes - before;
    ops_array_release(y);
    return more;
}

/* Which kernel takes a product, with its epilogue and without, is asked without memory: the plan
 * that is recorded has none of it. A step of 2: A is copied for the product. */
static void questions_take_no_memory(void **state)
{
    for (int64_t step = 1; step <= 2; step++) {
        ops_array *whole = matrix(HAL_TYPE_F32, MOST_ROWS, K);
        ops_array *a = made(ops_array_slice(whole, 1, 0, K / step, step));
        ops_array *b = matrix(HAL_TYPE_F32, K / step, N);
        const uint64_t bytes = memory_of_relu(a, b); /* in classes of sizes */
        const uint64_t least = MOST_ROWS * (N + (step == 2 ? K / 2 : 0)) * sizeof(float);
        assert_in_range(bytes, least, least + least / 4);
        for (int i = 0; i < 2; i++) { /* replayed */
            assert_int_equal(memory_of_relu(a, b), 0);
        }
        release_all(whole, a, b);
        assert_int_equal(hal_queue_wait(queue, HAL_WAIT_FOREVER), HAL_OK);
        assert_int_equal(hal_device_trim(device), HAL_OK);
    }
}

/* Bytes to 32 bits, a product, a bias, and a scale in floats, as quantised networks have them: one
 * kernel reads the bytes. Without the cast of one operand the sums are those of the other's type.
 */
static void casts_of_narrow_integers_are_in_the_product(void **state)
{
    enum { M = 5, DEPTH = 9, COLUMNS = 7, BIAS = 1000 };
    int8_t a_values[M * DEPTH], b_values[DEPTH * COLUMNS];
    float got[M * COLUMNS];
    for (int i = 0; i < M * DEPTH; i++) {
        a_values[i] = (int8_t)(i * 37 - 128);
    }
    for (int i = 0; i < DEPTH * COLUMNS; i++) {
        b_values[i] = (int8_t)(127 - i * 29);
    }
    ops_array *a =
        made(ops_array_from_host(context, HAL_TYPE_I8, 2, (const int64_t[]){M, DEPTH}, a_values));
    ops_array *b = made(
        ops_array_from_host(context, HAL_TYPE_I8, 2, (const int64_t[]){DEPTH, COLUMNS}, b_values));
    ops_array *bias = made(ops_array_scalar(context, HAL_TYPE_I32, BIAS));
    ops_array *wide[2] = {made(ops_array_cast(HAL_TYPE_I32, a)),
                          made(ops_array_cast(HAL_TYPE_I32, b))};
    ops_array *product = made(ops_array_matmul(wide[0], wide[1], HAL_GEMM_STRICT));
    ops_array *sum = made(ops_add(product, bias));
    ops_array *number = made(ops_array_cast(HAL_TYPE_F32, sum));
    ops_array *y = made(ops_mul_scalar(number, 0.5));
    release_all(wide[0], wide[1], product, sum, number);
    const uint32_t before = mock->logged_count;
    assert_int_equal(ops_array_read(y, sizeof got, got), HAL_OK);
    uint32_t count = 0;
    for (uint32_t i = before; i < mock->logged_count; i++) {
        count += mock->logged[i].command.kind == HAL_COMMAND_DISPATCH;
    }
    assert_int_equal(count, 1);
    for (int i = 0; i < M * COLUMNS; i++) {
        int32_t expected = BIAS;
        for (int k = 0; k < DEPTH; k++) {
            expected += a_values[i / COLUMNS * DEPTH + k] * b_values[k * COLUMNS + i % COLUMNS];
        }
        assert_true(got[i] == (float)expected * 0.5F);
    }
    release_all(a, b, bias, y);
}

static void factors_of_integers_are_integers(void **state)
{
    const int64_t shape[2] = {2, 2};
    ops_tensor x[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ops_tensor_create(context, HAL_TYPE_I16, 2, shape, &x[i]), HAL_OK);
    }
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.alpha = 0.5;
    assert_int_equal(ops_gemm(context, &options, &x[0], &x[1], &x[2]), HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(
        strstr(hal_status_message(), "options.alpha: expected a whole number that i32"));
    options.alpha = 1;
    options.impl = OPS_GEMM_NATIVE;
    assert_int_equal(ops_gemm(context, &options, &x[0], &x[1], &x[2]), HAL_ERROR_UNSUPPORTED);
    for (int i = 0; i < 3; i++) {
        ops_tensor_release(&x[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_MOCK(casts_of_narrow_integers_are_in_the_product),
        OVER_MOCK(factors_of_integers_are_integers),
        OVER_MOCK(an_epilogue_stays_with_a_product_that_takes_it),
        OVER_MOCK(an_epilogue_that_the_plugin_declines_is_a_kernel_of_its_own),
        OVER_MOCK(a_deferred_plan_computes_its_product_once),
        OVER_MOCK(a_portable_product_keeps_its_epilogue),
        OVER_MOCK(questions_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

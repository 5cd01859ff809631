/* The code in the opening comments of public headers compiles, does what they say, and leaks no
 * array. */

#include "unit.h"
#include <math.h>
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>

static hal_device *opened;
static hal_queue *queue;
static ops_context *context;

/* A square array that a product leaves as its other operand is. */
static ops_array *unit(void)
{
    const int64_t shape[2] = {2, 2};
    const float ones[4] = {1.0f, 0.0f, 0.0f, 1.0f};
    return ops_array_from_host(context, HAL_TYPE_F32, 2, shape, ones);
}

static ops_array *some(const float *numbers)
{
    const int64_t shape[2] = {2, 2};
    return ops_array_from_host(context, HAL_TYPE_F32, 2, shape, numbers);
}

static void expect_no_arrays(void)
{
    ops_array_statistics now = {.size = sizeof now};
    ops_context_get_statistics(context, &now);
    assert_int_equal(now.arrays, 0);
}

static void hal_opens_a_device(void **state)
{
#include "example_hal.h"
    assert_ok(status);
    hal_device_release(device);
}

static void arrays_are_kept_and_read(void **state)
{
    const float first[4] = {0.5f, -1.0f, 0.25f, 2.0f};
    float numbers[4];
    ops_array *x = some(first), *w = unit(), *b = ops_array_scalar(context, HAL_TYPE_F32, 0.25);
#include "example_array.h"
    for (int i = 0; i < 4; i++) {
        assert_true(fabs((double)numbers[i] - tanh((double)first[i] + 0.25)) < 1e-6);
    }
    ops_array_release(x);
    ops_array_release(w);
    ops_array_release(b);
    expect_no_arrays();
}

static void a_graph_repeats_a_step(void **unused)
{
    (void)unused;
    const float first[4] = {0.5f, -1.0f, 0.25f, 2.0f};
    const int steps = 3;
    float numbers[4];
    ops_graph *graph = NULL;
    ops_array *state = some(first), *w = unit();
#include "example_graph.h"
    assert_ok(ops_array_read(state, sizeof numbers, numbers));
    for (int i = 0; i < 4; i++) {
        assert_true(fabs((double)numbers[i] - tanh(tanh(tanh((double)first[i])))) < 1e-6);
    }
    ops_graph_destroy(graph);
    ops_array_release(state);
    ops_array_release(w);
    expect_no_arrays();
}

static void an_expression_is_built(void **state)
{
    const int64_t shape[1] = {4};
    const float first[4] = {0.5f, -1.0f, 0.25f, 2.0f}, second[4] = {1.0f, 2.0f, -3.0f, 0.0f};
    float numbers[4];
    ops_tensor inputs[2], result;
#include "example_pointwise.h"
    assert_int_equal(ops_tensor_from_host(context, HAL_TYPE_F32, 1, shape, first, &inputs[0]), 0);
    assert_int_equal(ops_tensor_from_host(context, HAL_TYPE_F32, 1, shape, second, &inputs[1]), 0);
    assert_ok(ops_tensor_create(context, HAL_TYPE_F32, 1, shape, &result));
    assert_ok(ops_pointwise(context, chain, inputs, 2, &result, 1));
    assert_ok(ops_tensor_read(context, &result, sizeof numbers, numbers));
    for (int i = 0; i < 4; i++) {
        const double relu = fmax((double)first[i] * (double)second[i] + (double)first[i], 0.0);
        assert_true(fabs((double)numbers[i] - 1.0 / (1.0 + exp(-relu))) < 1e-6);
    }
    ops_expression_destroy(chain);
    ops_tensor_release(&inputs[0]);
    ops_tensor_release(&inputs[1]);
    ops_tensor_release(&result);
}

static int begin(void **state)
{
    setenv("HAL_BACKEND", "cpu", 1);
    return hal_device_open(NULL, &opened) || hal_queue_create(opened, &queue) ||
           ops_context_create(queue, &context);
}

static int end(void **state)
{
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(opened);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hal_opens_a_device),
        cmocka_unit_test(arrays_are_kept_and_read),
        cmocka_unit_test(a_graph_repeats_a_step),
        cmocka_unit_test(an_expression_is_built),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/* Gradients by weights of one channel per group as a GPU: several steps of the innermost loop load
 * at once, but not more than the loop has. Read from the IR in the log. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <ops/convolution.h>

static unsigned loads; /* of the last new kernel */

static void look(void *user, hal_log_level level, const char *line)
{
    if (strstr(line, "kernel depthwise_weights\n")) {
        loads = 0;
        for (const char *at = line; (at = strstr(at, " load ")) != NULL; at++) {
            loads++;
        }
    }
}

/* The loads of the kernel, a new one or that of the call before, for windows of two elements along
 * the first of three axes. */
static unsigned loads_of(int64_t middle)
{
    const int64_t window[3] = {2, 1, 1}, from[5] = {2, 8, 9, middle, 8},
                  to[5] = {2, 8, 8, middle, 8};
    const ops_convolution_options options = {.size = sizeof options, .groups = 8};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_full(test_context, HAL_TYPE_F32, 5, from, 1));
    ops_array *dy = made(ops_array_full(test_context, HAL_TYPE_F32, 5, to, 2));
    ops_array *dw =
        ops_array_convolution_weights(&options, ops_array_copy(x), ops_array_copy(dy), window);
    float elements[16];
    ok(ops_array_read(made(dw), sizeof elements, elements));
    for (int i = 0; i < 16; i++) {
        assert_true(elements[i] == (float)(2 * 2 * 8 * 8 * middle));
    }
    ok(ops_scope_end(test_context));
    return loads;
}

static void short_loops_load_their_steps(void **state)
{
    const unsigned one = loads_of(1);
    assert_true(one > 0);
    assert_int_equal(loads_of(2), 2 * one);
    assert_int_equal(loads_of(3), 2 * one);
    assert_int_equal(loads_of(9), 4 * one);
}

static int open_logged(void **state)
{
    const int failed = open_other_context(state);
    if (!failed) {
        hal_log_set_callback(look, NULL, HAL_LOG_DEBUG);
    }
    return failed;
}

static int close_logged(void **state)
{
    hal_log_set_callback(NULL, NULL, HAL_LOG_DEBUG);
    return close_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_loops_load_their_steps)};
    setenv("HAL_DUMP", "ir", 1);
    return cmocka_run_group_tests(tests, open_logged, close_logged);
}

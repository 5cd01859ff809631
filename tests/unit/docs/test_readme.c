/* README.md: its program is examples/arrays and runs; its array code is one kernel, and right. */

#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int readme_main(void);
#define main readme_main
#include "readme_1.h"
#undef main

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 65536);
    assert_in_range(fread(text, 1, 65535, file), 1, 65534);
    fclose(file);
    return text;
}

static void the_program_is_the_example_and_runs(void **state)
{
    char *page = read_file(README), *example = read_file(EXAMPLE);
    assert_non_null(strstr(page, example));
    free(page);
    free(example);
    assert_int_equal(readme_main(), 0);
}

/* tanh(x w + b), with whatever names the page uses. */
static void the_arrays_become_one_kernel(void **state)
{
    const int64_t shape[2] = {2, 2};
    const float first[4] = {0.5f, -1.0f, 0.25f, 2.0f}, ones[4] = {1.0f, 0.0f, 0.0f, 1.0f};
    float numbers[4] = {0};
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    assert_ok(hal_device_open("cpu", &device));
    assert_ok(hal_queue_create(device, &queue));
    assert_ok(ops_context_create(queue, &context));
    ops_array *x = ops_array_from_host(context, HAL_TYPE_F32, 2, shape, first);
    ops_array *w = ops_array_from_host(context, HAL_TYPE_F32, 2, shape, ones);
    ops_array *b = ops_array_scalar(context, HAL_TYPE_F32, 0.25);
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    ops_context_get_statistics(context, &before);
#include "readme_2.h"
    ops_context_get_statistics(context, &after);
    assert_int_equal(after.kernels - before.kernels, 1);
    assert_int_equal(after.arrays, before.arrays);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs((double)numbers[i] - tanh((double)first[i] + 0.25)) < 1e-6);
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

int main(void)
{
    setenv("HAL_BACKEND", "cpu", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_is_the_example_and_runs),
        cmocka_unit_test(the_arrays_become_one_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

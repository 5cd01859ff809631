/* Softmax of rows in shared memory on a GPU: rows of whole sectors, and rows that begin inside of
 * sectors, which are stored by whole ones. Read from the IR in the log. */
#include "ops_fixture.h"

enum { ROWS = 3, EVEN = 1408, PART = 32 };

static unsigned room, barriers; /* of the last kernel that keeps a row in shared memory */

static unsigned count_words(const char *text, const char *words)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

static void look(void *user, hal_log_level level, const char *line)
{
    static const char cache[] = "shared cache_00 f32 ";
    const char *at = strstr(line, cache);
    if (at) {
        room = (unsigned)strtoul(at + sizeof cache - 1, NULL, 10);
        barriers = count_words(line, "barrier\n");
    }
}

/* Softmax of rows of a length, held to double precision. */
static void softmax(int64_t length)
{
    const int64_t shape[2] = {ROWS, length};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -1, 1);
    box y = box_make(HAL_TYPE_F32, 2, shape, NULL, -1, 1);
    double *want = box_want(&y);
    for (int64_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
            sum += exp(box_at(&x, &x.t, row * length + i));
        }
        for (int64_t i = 0; i < length; i++) {
            const int64_t linear = row * length + i;
            want[place_of(&y.t, 2, shape, linear)] = exp(box_at(&x, &x.t, linear)) / sum;
        }
    }
    room = barriers = 0;
    ok(ops_softmax(test_context, 1, &x.t, &y.t));
    box_check(&y, want, 0, 1e-7);
    boxes_free(&x, &y);
}

/* Their first steps begin before the row, for which shared memory has room, and each work-item may
 * store what another has loaded. */
static void ragged_rows_are_stored_by_sectors(void **state)
{
    softmax(EVEN);
    const unsigned even_room = room, even_barriers = barriers;
    softmax(EVEN - 1);
    assert_true(even_room >= EVEN);
    assert_int_equal(room, even_room + PART);
    assert_int_equal(barriers, even_barriers + 1);
}

/* A GPU with groups so small that a row does not fit registers. */
static int open_gpu(void **state)
{
    static hal_device_info gpu;
    const int failed = open_context(state);
    if (!failed) {
        gpu = *test_context->info;
        gpu.kind = HAL_DEVICE_DISCRETE;
        gpu.max_vector_bytes = 16;
        gpu.compute_units = 1;
        gpu.max_group_items = gpu.max_group_size[0] = gpu.max_group_size[1] = 32;
        gpu.preferred_group = 32;
        test_set_device(test_context, &gpu);
        hal_log_set_callback(look, NULL, HAL_LOG_DEBUG);
    }
    return failed;
}

static int close_gpu(void **state)
{
    hal_log_set_callback(NULL, NULL, HAL_LOG_DEBUG);
    return close_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ragged_rows_are_stored_by_sectors)};
    setenv("HAL_DUMP", "ir", 1);
    return cmocka_run_group_tests_name("sectors", tests, open_gpu, close_gpu);
}

/* Kernels whose work-items compute several planes, or tiles, have 64-bit indices where those of the
 * last plane need them, though those of the first one do not. Read from the IR in the log. */
#include "ops_fixture.h"

#include "kernels/pool.h"
#include "kernels/resize.h"

#include <ops/windows.h>

enum { PLANES = 64, SMALL = 8, LARGE = 64, PADDED = SMALL + 2 };

static const char *scalar; /* the distance of planes in the result */
static char index_type[4]; /* of the last kernel that has it */

static void look(void *user, hal_log_level level, const char *line)
{
    const char *at = strstr(line, scalar);
    if (at) {
        memcpy(index_type, at + strlen(scalar), 3);
    }
}

/* Runs a call with a limit that the elements of the result are below, and one that only those of
 * the first plane are below. Null strides: those without gaps. */
static void check(const char *name, void (*call)(const ops_tensor *x, const ops_tensor *y),
                  uint32_t rank, const int64_t *from, const int64_t *to, const int64_t *strides)
{
    box x = box_make(HAL_TYPE_F32, rank, from, NULL, -1, 1);
    box y = box_make(HAL_TYPE_F32, rank, to, strides, -1, 1);
    ops_tuning *tuning = test_tune(test_context);
    int64_t elements = 1, usual = tuning->index32_limit;
    for (uint32_t i = 0; i < rank; i++) {
        elements += (y.t.shape[i] - 1) * y.t.stride[i];
    }
    scalar = name;
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        memset(index_type, 0, sizeof index_type);
        tuning->index32_limit = is_wide ? elements - 1 : usual;
        call(&x.t, &y.t);
        assert_string_equal(index_type, is_wide ? "u64" : "u32");
    }
    tuning->index32_limit = usual;
    boxes_free(&x, &y);
}

static void resize(const ops_tensor *x, const ops_tensor *y)
{
    const ops_resize_form form = {
        .first = 1, .axes = 2, .along = {{2 * SMALL, 0, 2 * LARGE}, {2 * SMALL, 0, 2 * LARGE}}};
    ok(ops_resize(test_context, &form, x, y));
}

static void planes_of_resizing(void **state)
{
    const int64_t from[3] = {PLANES, SMALL, SMALL}, to[3] = {PLANES, LARGE, LARGE};
    check("scalar plane_y ", resize, 3, from, to, NULL);
}

/* One line of zeros before and after; all planes of y are those of x. */
static void unfold(const ops_tensor *x, const ops_tensor *y)
{
    ops_unfold_places places = {
        .size = sizeof places, .axis = {0, 1, 2}, .step = {0, 1, 1}, .origin = {0, -1, -1}};
    const int64_t one = 1;
    box zero = box_make(HAL_TYPE_F32, 1, &one, NULL, 0, 0);
    ok(ops_unfold(test_context, &places, x, &zero.t, y));
    box_free(&zero);
}

static void planes_of_padding(void **state)
{
    const int64_t from[3] = {1, SMALL, SMALL}, to[3] = {PLANES, PADDED, PADDED};
    check("scalar y_plane ", unfold, 3, from, to, NULL);
}

static void pool(const ops_tensor *x, const ops_tensor *y)
{
    const ops_pool_form form = {.rank = 2,
                                .divisor = OPS_POOL_VOLUME,
                                .window = {3, 3},
                                .stride = {1, 1},
                                .dilation = {1, 1}};
    ok(ops_pool_windows(test_context, &form, x, y, NULL));
}

/* Lines of results that are far apart. */
static void tiles_of_pooling(void **state)
{
    const int64_t from[4] = {1, PLANES, LARGE + 2, 3}, to[4] = {1, PLANES, LARGE, 1};
    const int64_t far = PLANES * LARGE, strides[4] = {far * LARGE, 1, far, 1};
    check("scalar to0 ", pool, 4, from, to, strides);
}

/* A GPU so small that work-items have several planes of few elements. */
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(planes_of_resizing),
                                       cmocka_unit_test(planes_of_padding),
                                       cmocka_unit_test(tiles_of_pooling)};
    setenv("HAL_DUMP", "ir", 1);
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}

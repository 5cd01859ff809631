/* Split-K against sums in double: every kernel that may compute the parts, whole and partial ones,
 * all layouts, types and epilogues; which shapes are split; the same bits every time (promise
 * 17). */
#include "ops_gemm_fixture.h"

#include "gemm/candidates.h"

/* A device of the other kind on which every product is split: `units` steers whether staged tiles
 * or slices compute the parts. */
static hal_device_info split_info;

static int open_split_context(void **state)
{
    int failed = open_other_context(state);
    if (!failed) {
        split_info = *test_context->info;
        test_set_device(test_context, &split_info);
    }
    return failed;
}

static int open_split_wide_context(void **state)
{
    int failed = open_split_context(state);
    if (!failed) {
        test_tune(test_context)->index32_limit = 0;
    }
    return failed;
}

static void split(uint32_t units, uint32_t depth)
{
    split_info.compute_units = units;
    split_info.max_grid[0] = 65535;
    test_tune(test_context)->gemm.split_depth = depth;
    forget_products();
}

/* Fills the pool with NaN, so that the partial sums do not start from zero by chance. */
static void soil_pool(void)
{
    const int64_t shape[1] = {1 << 16};
    ops_tensor soil;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, shape, &soil));
    ok(ops_fill(test_context, (double)NAN, &soil));
    ops_tensor_release(&soil);
}

/* Kernels that the context has made for products of this kind: two of a split one. */
static uint32_t kernels_of(product *p)
{
    const uint32_t before = test_context->kernels.count;
    ok(ops_gemm(test_context, &p->options, &p->a.t, &p->b.t, &p->c.t));
    box_upload(&p->c);
    return test_context->kernels.count - before;
}

static void two_kernels(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 21, 23, 50, PLAIN, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_PORTABLE;
    split(4, 50);
    assert_int_equal(kernels_of(&p), 1);
    split(4, 16);
    assert_int_equal(kernels_of(&p), 2);
    release(&p);
    p = make(HAL_TYPE_F32, HAL_TYPE_F32, 2, 22, 23, 50, PLAIN, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_PORTABLE;
    assert_int_equal(kernels_of(&p), 1); /* a batch is not split */
    release(&p);
}

static void shapes(void **state)
{
    const int64_t sizes[][3] = {{1, 1, 700},    {1, 64, 300},  {64, 1, 130},  {16, 16, 256},
                                {17, 33, 257},  {64, 64, 512}, {64, 64, 500}, {100, 70, 129},
                                {128, 256, 96}, {3, 200, 999}, {40, 12, 64},  {257, 5, 65}};
    const uint32_t depths[] = {64, 16, 7, 32}, units[] = {1, 4, 132};
    for (int i = 0; i < 12 * 4 * 3; i++) {
        const int64_t *n = sizes[i / 12];
        split(units[i % 3], depths[i / 3 % 4]);
        soil_pool();
        try_problem((problem){.m = n[0],
                              .n = n[1],
                              .k = n[2],
                              .layout_a = i % 2 ? PLAIN : TURNED,
                              .layout_b = i % 5 > 2 ? PLAIN : TURNED,
                              .is_aligned = i % 7 > 2,
                              .alpha = i % 4 == 1 ? 2 : 1,
                              .beta = i % 3 == 2 ? -1 : 0,
                              .impl = OPS_GEMM_PORTABLE});
    }
}

/* Devices of little memory, small groups and a grid that does not count all parts at once. */
static void small_devices(void **state)
{
    const hal_device_info kept = split_info;
    for (int i = 0; i < 8; i++) {
        split(i % 2 ? 132 : 2, i & 4 ? 16 : 2);
        split_info.max_group_items = split_info.max_group_size[0] = i & 2 ? 64 : 128;
        split_info.shared_bytes = i & 2 ? 16384 : 2048;
        split_info.max_grid[2] = 3;
        try_problem((problem){.m = 20, .n = 36, .k = 530, .impl = OPS_GEMM_PORTABLE});
    }
    split_info = kept;
}

static void layouts(void **state)
{
    for (int i = 0; i < LAYOUTS * LAYOUTS * LAYOUTS; i++) {
        split(i % 2 ? 1 : 132, i % 3 ? 16 : 5);
        try_problem((problem){.m = 37,
                              .n = 24,
                              .k = 48,
                              .layout_a = i % LAYOUTS,
                              .layout_b = i / LAYOUTS % LAYOUTS,
                              .layout_c = i / (LAYOUTS * LAYOUTS),
                              .alpha = 2,
                              .beta = i % 4 ? -3 : 0,
                              .impl = OPS_GEMM_PORTABLE});
    }
}

static void types(void **state)
{
    for (int i = 0; i < 7 * 4 * 2; i++) {
        split(i % 2 ? 1 : 132, i % 3 ? 64 : 40);
        try_problem((problem){.type = type_pairs[i / 8][0],
                              .type_c = type_pairs[i / 8][1],
                              .m = 45,
                              .n = i % 3 ? 72 : 70,
                              .k = 203,
                              .layout_a = i / 2 % 2,
                              .layout_b = i / 4 % 2,
                              .is_aligned = i % 3 != 0,
                              .is_rounded = 1,
                              .alpha = 0.75,
                              .beta = i % 2 ? 0.5 : 0,
                              .impl = OPS_GEMM_PORTABLE});
    }
}

/* C is not read when beta is 0, nor anything around the matrices (promise 16). */
static void nan_around(void **state)
{
    for (int i = 0; i < 18; i++) {
        split(i % 2 ? 1 : 132, i % 5 ? 16 : 9);
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 19, 35, 53, i / 2 % 3, i / 6, PADDED);
        if (i % 4 > 1) {
            align(&p);
        }
        surround_with_nan(&p);
        soil_pool();
        p.options.impl = OPS_GEMM_PORTABLE;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

/* Row, column and batch, further inputs that are read in every way, C stored either way; the last
 * ones have C itself for a residual. */
static void epilogues(void **state)
{
    for (int i = 0; i < 16; i++) {
        split(i % 3 ? 132 : 1, i % 5 ? 16 : 11);
        try_epilogue((problem){.m = i % 2 ? 29 : 1,
                               .n = i & 4 ? 44 : 43,
                               .k = 70,
                               .layout_b = i / 2 % 2,
                               .layout_c = i / 4 % 3,
                               .is_aligned = 1,
                               .beta = i % 2,
                               .impl = OPS_GEMM_PORTABLE},
                     i < 12 ? i % 3 : -1);
    }
}

/* The shape and the device decide the order of additions, and nothing else does. */
static void same_bits(void **state)
{
    split(132, 48);
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 33, 40, 1000, PLAIN, PLAIN, PLAIN);
    const uint64_t bytes = (uint64_t)p.c.count * sizeof(float);
    char *first = malloc(bytes), *again = malloc(bytes);
    p.options.impl = OPS_GEMM_PORTABLE;
    for (int i = 0; i < 4; i++) {
        soil_pool();
        ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
        ok(hal_queue_read(test_queue, p.c.t.buffer, 0, bytes, i ? again : first));
        assert_true(i == 0 || memcmp(first, again, bytes) == 0);
    }
    free(first);
    free(again);
    release(&p);
}

/* ---- Which products are split ---- */

static uint32_t depth_of(const hal_device_info *info, hal_type type, int64_t m, int64_t k,
                         int64_t n)
{
    const ops_gemm_shape shape = {.tuning = &ops_tuning_gpu.gemm,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .batch = 1,
                                  .precision = HAL_GEMM_STRICT,
                                  .type = type,
                                  .a_k_contiguous = 1,
                                  .a_width = 4,
                                  .b_width = 4};
    ops_gemm_candidate candidate;
    assert_in_range(ops_gemm_find_candidate(info, &shape, 1, 1, &candidate), 1,
                    OPS_GEMM_MAX_CANDIDATES);
    return candidate.depth;
}

static hal_device_info large_device(void)
{
    return (hal_device_info){.kind = HAL_DEVICE_DISCRETE,
                             .max_group_items = 1024,
                             .max_group_size = {1024, 1024, 64},
                             .max_grid = {0x7fffffff, 65535, 65535},
                             .max_binding = UINT64_C(1) << 36,
                             .compute_units = 132,
                             .subgroup_width = 32,
                             .shared_bytes = 227 << 10,
                             .max_vector_bytes = 16,
                             .features = HAL_FEATURE_ASYNC_COPY};
}

static void few_elements_and_long_k(void **state)
{
    const int64_t sizes[][3] = {{64, 65536, 64},   {128, 16384, 128},  {256, 8192, 256},
                                {512, 16384, 512}, {1024, 16384, 256}, {16, 65536, 16},
                                {1, 1000000, 1},   {784, 8192, 128}};
    const hal_device_info info = large_device();
    for (int i = 0; i < 8; i++) {
        const int64_t *n = sizes[i];
        const uint32_t depth = depth_of(&info, HAL_TYPE_F32, n[0], n[1], n[2]);
        if (depth == 0 || depth % 64 != 0 || depth < 256 || 2 * depth > n[1]) {
            fail_msg("%lld x %lld x %lld: depth %u", (long long)n[0], (long long)n[1],
                     (long long)n[2], depth);
        }
    }
}

static void others_are_whole(void **state)
{
    const int64_t sizes[][3] = {{1, 128, 128},      {64, 64, 64},       {1, 16384, 16384},
                                {2048, 2048, 2048}, {4096, 4096, 4096}, {64, 64, 16384},
                                {1024, 64, 1024},   {2048, 65536, 2048}};
    const hal_device_info info = large_device();
    for (int i = 0; i < 8; i++) {
        const int64_t *n = sizes[i];
        if (depth_of(&info, HAL_TYPE_F32, n[0], n[1], n[2]) != 0) {
            fail_msg("%lld x %lld x %lld is split", (long long)n[0], (long long)n[1],
                     (long long)n[2]);
        }
    }
}

static void processors_split_nothing(void **state)
{
    hal_device_info info = large_device();
    info.kind = HAL_DEVICE_CPU;
    assert_int_equal(depth_of(&info, HAL_TYPE_F32, 64, 65536, 64), 0);
    info.item_vector_bytes = 64;
    assert_int_equal(depth_of(&info, HAL_TYPE_F32, 64, 65536, 64), 0);
    info.kind = HAL_DEVICE_DISCRETE;
    assert_int_equal(depth_of(&info, HAL_TYPE_F32, 64, 65536, 64), 0);
    info.item_vector_bytes = 0;
    assert_int_not_equal(depth_of(&info, HAL_TYPE_F32, 64, 65536, 64), 0);
}

/* Matrix units with as little shared memory as OpenCL offers have two stages, multiply-adds a ring
 * of three. */
static void stages_fit_the_memory(void **state)
{
    hal_device_info info = large_device();
    info.matrix_types = HAL_TYPE_BIT(HAL_TYPE_F16);
    ops_gemm_shape shape = {.tuning = &ops_tuning_gpu.gemm,
                            .m = 2048,
                            .n = 2048,
                            .k = 2048,
                            .batch = 1,
                            .precision = HAL_GEMM_FAST,
                            .access = 16,
                            .type = HAL_TYPE_F16,
                            .a_k_contiguous = 1,
                            .a_width = 8,
                            .b_width = 8};
    ops_gemm_candidate c;
    assert_true(ops_gemm_find_candidate(&info, &shape, 0, 1, &c) > 0);
    assert_true(c.tiles.matrix && c.tiles.stages > 2);
    info.shared_bytes = 48 << 10;
    assert_true(ops_gemm_find_candidate(&info, &shape, 0, 1, &c) > 0);
    assert_true(c.tiles.matrix && c.tiles.stages == 2);
    shape.precision = HAL_GEMM_STRICT;
    shape.access = 0;
    shape.type = HAL_TYPE_F32;
    shape.a_width = shape.b_width = 4;
    assert_true(ops_gemm_find_candidate(&info, &shape, 0, 1, &c) > 0);
    assert_int_equal(c.tiles.stages, 3);
}

/* Halves of few rows, such as gradients by the weights of few channels, have matrix units too, with
 * copies, without, and with narrow accesses. */
static void few_rows_have_units(void **state)
{
    hal_device_info info = large_device();
    info.matrix_types = HAL_TYPE_BIT(HAL_TYPE_BF16);
    ops_gemm_shape shape = {.tuning = &ops_tuning_gpu.gemm,
                            .n = 288,
                            .k = 65536,
                            .batch = 1,
                            .precision = HAL_GEMM_ACCURATE,
                            .type = HAL_TYPE_BF16,
                            .a_width = 8,
                            .b_width = 8,
                            .is_staged = 1};
    for (int i = 0; i < 6; i++) {
        ops_gemm_candidate c;
        shape.m = i % 2 ? 32 : 24;
        shape.access = i < 4 ? 16 : 2;
        info.shared_bytes = i / 2 % 2 ? 48 << 10 : 227 << 10;
        assert_true(ops_gemm_find_candidate(&info, &shape, 1, 1, &c) > 0);
        assert_true(c.tiles.matrix && c.tiles.block_m == 32);
    }
}

/* Parts that no binding holds, and grids that are too small for their blocks. */
static void limits_of_the_device(void **state)
{
    hal_device_info info = large_device();
    info.max_binding = 1 << 12;
    assert_int_equal(depth_of(&info, HAL_TYPE_F32, 64, 65536, 64), 0);
    info = large_device();
    info.max_grid[0] = 7; /* the reduction takes 64 columns per group */
    assert_int_equal(depth_of(&info, HAL_TYPE_F32, 128, 65536, 512), 0);
    info.max_grid[0] = 8;
    assert_int_not_equal(depth_of(&info, HAL_TYPE_F32, 128, 65536, 512), 0);
}

/* Shapes at the limits have a candidate, of which the grid has room for the columns if it can. */
static void every_shape_has_one(void **state)
{
    const int64_t shapes[][4] = {{1, 1000000, 1, 3},      {10000, 8, 8, 8},  {1, 1, 8000000, 900},
                                 {1, 2147483647, 3, 1},   {65535, 1, 1, 1},  {1, 1, 1, 1},
                                 {1, 3, 2147483647, 100}, {9, 40, 70, 5000}, {1, 1, 1, 2147483647}};
    for (int i = 0; i < 9 * 2; i++) {
        const int64_t *s = shapes[i / 2];
        hal_device_info info = large_device();
        info.max_grid[0] = i % 2 ? 65535 : 0x7fffffff;
        const ops_gemm_shape shape = {.tuning = &ops_tuning_gpu.gemm,
                                      .m = s[1],
                                      .n = s[2],
                                      .k = s[3],
                                      .batch = (uint32_t)s[0],
                                      .type = HAL_TYPE_F32,
                                      .a_width = 1,
                                      .b_width = 1};
        ops_gemm_candidate c;
        assert_in_range(ops_gemm_find_candidate(&info, &shape, 1, 1, &c), 1,
                        OPS_GEMM_MAX_CANDIDATES);
        assert_true(c.tiles.block_m > 0 && c.tiles.block_n > 0 && c.ns > 0 && c.ns < 1e18);
        if (s[2] <= 65535 * 128) {
            assert_in_range((s[2] + c.tiles.block_n - 1) / c.tiles.block_n, 1, info.max_grid[0]);
        }
    }
}

/* The kernel that reduces partial sums stays within the device's limits. */
static void reduction_fits(void **state)
{
    for (int i = 0; i < 4 * 3 * 5 * 2; i++) {
        const int64_t sizes[] = {1, 5, 64, 1000};
        const uint32_t parts[] = {2, 8, 9, 131, 5000};
        const uint32_t width = i / 60 ? 8 : 4;
        hal_device_info info = large_device();
        info.max_group_items = info.max_group_size[0] = 64u << i / 4 % 3;
        info.shared_bytes = 1024u << i % 3;
        ops_gemm_tiles t;
        ops_gemm_choose_reduce_tiles(&info, &ops_tuning_gpu.gemm, sizes[i % 4], sizes[i / 4 % 4],
                                     parts[i / 12 % 5], width, &t);
        assert_in_range((uint32_t)t.lanes_m * t.lanes_n * t.intra_group_split_k, 1,
                        info.max_group_items);
        assert_in_range(ops_gemm_intra_group_elements(&t) * width, 1, info.shared_bytes);
        assert_int_equal(t.block_m, t.lanes_m * t.thread_m);
        assert_int_equal(t.block_n, t.lanes_n * t.thread_n);
    }
}

/* A product that the device's own info asks to split, through ops_gemm. */
static void chosen_by_shape(void **state)
{
    split(132, 0);
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 48, 40, 20000, PLAIN, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_PORTABLE;
    truncate_to_small(&p);
    char how[512];
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof how, how));
    assert_non_null(strstr(how, "split-K in parts of"));
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_kernels),    cmocka_unit_test(shapes),
        cmocka_unit_test(layouts),        cmocka_unit_test(types),
        cmocka_unit_test(nan_around),     cmocka_unit_test(epilogues),
        cmocka_unit_test(same_bits),      cmocka_unit_test(small_devices),
        cmocka_unit_test(chosen_by_shape)};
    const struct CMUnitTest wide[] = {cmocka_unit_test(layouts), cmocka_unit_test(epilogues)};
    const struct CMUnitTest choices[] = {
        cmocka_unit_test(few_elements_and_long_k),  cmocka_unit_test(others_are_whole),
        cmocka_unit_test(processors_split_nothing), cmocka_unit_test(every_shape_has_one),
        cmocka_unit_test(limits_of_the_device),     cmocka_unit_test(reduction_fits),
        cmocka_unit_test(stages_fit_the_memory),    cmocka_unit_test(few_rows_have_units)};
    return cmocka_run_group_tests_name("choices", choices, NULL, NULL) +
           cmocka_run_group_tests_name("split", tests, open_split_context, close_context) +
           cmocka_run_group_tests_name("split, wide", wide, open_split_wide_context, close_context);
}

/* Matrix products through both implementations against sums in double: shapes around the edges of
 * tiles, all layouts, types, batches, alpha, beta, epilogues, operands that are copied, errors. */
#include "ops_gemm_fixture.h"

#include "gemm/candidates.h"

static void shapes(void **state)
{
    const int64_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257};
    const int64_t further[][4] = {
        {5, 33, 17, 9}, {1, 1, 300, 400}, {1, 300, 1, 400}, {1, 400, 6, 64}};
    const int count = sizeof sizes / sizeof sizes[0];
    for (int i = 0; i < 2 * (50 + 4); i++) {
        problem q = {.impl = i % 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY};
        if (i < 100) {
            q.m = sizes[next_random() % count];
            q.n = sizes[next_random() % count];
            q.k = sizes[next_random() % count];
        } else {
            const int64_t *size = further[(i - 100) / 2];
            q.batch = size[0];
            q.m = size[1];
            q.n = size[2];
            q.k = size[3];
        }
        try_problem(q);
    }
}

static void layouts(void **state)
{
    for (int i = 0; i < LAYOUTS * LAYOUTS * LAYOUTS * 4; i++) {
        const int layout = i / 4;
        try_problem((problem){.batch = i & 1 ? 3 : 1,
                              .m = 37,
                              .n = 21,
                              .k = 18,
                              .layout_a = layout % LAYOUTS,
                              .layout_b = layout / LAYOUTS % LAYOUTS,
                              .layout_c = layout / (LAYOUTS * LAYOUTS),
                              .alpha = 2,
                              .beta = layout % 2 ? -3 : 0,
                              .impl = i & 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY});
    }
}

/* On one compute unit the tile that wastes least is taken: every row of the table of tiles, with
 * asynchronous copies and without, in the middle and at the edges of the matrices. The smallest
 * tile is for devices that have no shared memory for the next one. */
static void every_tile(void **state)
{
    const int64_t shapes[][3] = {{256, 512, 120}, {130, 270, 133}, {64, 128, 128}, {60, 125, 134},
                                 {128, 128, 144}, {120, 121, 137}, {64, 64, 32},   {61, 50, 13},
                                 {32, 32, 40},    {29, 18, 20},    {64, 128, 48},  {65, 129, 9},
                                 {200, 270, 33},  {128, 256, 16},  {32, 48, 40},   {29, 18, 33}};
    const hal_device_info *kept = test_context->info;
    hal_device_info one = *kept;
    test_set_device(test_context, &one);
    one.kind = HAL_DEVICE_DISCRETE;
    one.compute_units = 1;
    for (int i = 0; i < 16 * 2 * 4; i++) {
        const int64_t *n = shapes[i / 8];
        one.features = i & 1 ? kept->features : kept->features & ~HAL_FEATURE_ASYNC_COPY;
        one.shared_bytes = i / 8 < 14 ? kept->shared_bytes : 8 << 10;
        try_problem((problem){.batch = i % 5 ? 1 : 2,
                              .m = n[0],
                              .n = n[1],
                              .k = n[2],
                              .layout_a = i & 2 ? PLAIN : TURNED,
                              .layout_b = i & 4 ? PLAIN : TURNED,
                              .alpha = i % 3 == 1 ? 1 : 2,
                              .beta = i % 3 ? 0 : -1,
                              .impl = OPS_GEMM_PORTABLE});
    }
    test_set_device(test_context, kept);
}

/* With a small k, C is written as by an elementwise kernel: no shared memory, few rows for each
 * work-item; widths of 4, 2 and 1, edges, all layouts, types, epilogues of beta. */
static void outer_products(void **state)
{
    const hal_device_info *kept = test_context->info;
    hal_device_info other = *kept;
    ops_gemm_candidate candidate;
    ops_gemm_shape shape = {.tuning = &ops_tuning_gpu.gemm,
                            .m = 5168,
                            .n = 926,
                            .k = 2,
                            .batch = 1,
                            .type = HAL_TYPE_F32,
                            .a_k_contiguous = 1};
    other.kind = HAL_DEVICE_DISCRETE;
    other.compute_units = 132;
    other.max_grid[0] = 0x7fffffff;
    other.item_vector_bytes = 0;
    uint32_t count = ops_gemm_find_candidate(&other, &shape, 1, 1, &candidate), direct = 0;
    for (uint32_t i = 1; i <= count; i++) {
        ops_gemm_find_candidate(&other, &shape, 1, i, &candidate);
        if (candidate.tiles.stages + candidate.tiles.unroll == 0) {
            assert_int_equal(candidate.tiles.strip_n, 2);
            direct++;
        }
    }
    assert_int_equal(direct, 1);
    shape.k = 64;
    count = ops_gemm_find_candidate(&other, &shape, 1, 1, &candidate);
    for (uint32_t i = 1; i <= count; i++) {
        ops_gemm_find_candidate(&other, &shape, 1, i, &candidate);
        assert_int_not_equal(candidate.tiles.stages + candidate.tiles.unroll, 0);
    }
    other.compute_units = 1;
    test_set_device(test_context, &other);
    for (int i = 0; i < 8 * 9; i++) {
        try_problem((problem){.type = type_pairs[i % 7][0],
                              .type_c = type_pairs[i % 7][1],
                              .batch = i % 5 ? 1 : 2,
                              .m = 40 + i % 11,
                              .n = 60 + i % 7,
                              .k = 1 + i / 9,
                              .layout_a = i % 3,
                              .layout_b = i / 3 % 3,
                              .layout_c = i / 2 % 3,
                              .is_rounded = 1,
                              .alpha = i % 4 ? 1 : 2,
                              .beta = i % 3 ? 0 : -1,
                              .impl = OPS_GEMM_PORTABLE});
    }
    test_set_device(test_context, kept);
}

/* Work-items along the rows are in the second dimension of the group, which has its own limit. */
static void groups_keep_to_each_dimension(void **state)
{
    hal_device_info info = *test_context->info;
    info.item_vector_bytes = 64;
    for (uint32_t most = 1; most <= 64; most *= 4) {
        ops_gemm_tiles tiles;
        info.max_group_size[1] = most;
        ops_gemm_choose_cpu_tiles(&info, &ops_tuning_processor.gemm, 4096, 4096, 1, 4, 0, &tiles);
        assert_in_range(tiles.block_m / tiles.thread_m, most < 16 ? most : 16, most);
    }
}

/* Shapes for which operands are exchanged or packed first. */
static void large_layouts(void **state)
{
    const int64_t shapes[][3] = {{70, 50, 30}, {100, 5, 40}, {64, 130, 9}, {5, 100, 40}};
    for (int i = 0; i < 4 * 9 * 2; i++) {
        const int64_t *n = shapes[i / 18];
        try_problem((problem){.batch = i % 2 ? 2 : 1,
                              .m = n[0],
                              .n = n[1],
                              .k = n[2],
                              .layout_a = i / 2 % 3,
                              .layout_b = i / 6 % 3,
                              .layout_c = i % 3,
                              .impl = OPS_GEMM_PORTABLE});
    }
}

static void types(void **state)
{
    for (int i = 0; i < 7 * 4 * 2; i++) {
        try_problem((problem){.type = type_pairs[i / 8][0],
                              .type_c = type_pairs[i / 8][1],
                              .m = 45,
                              .n = 70,
                              .k = 131,
                              .layout_a = i & 1,
                              .layout_b = i >> 1 & 1,
                              .is_rounded = 1,
                              .alpha = 0.75,
                              .beta = i & 1 ? 0.5 : 0,
                              .impl = i & 4 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY});
    }
}

/* C is not read when beta is 0, and nothing around the matrices is used. */
static void nan_around(void **state)
{
    for (int impl = 0; impl < 2; impl++) {
        for (int i = 0; i < 9; i++) {
            product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 19, 35, 13, i % 3, i / 3, PADDED);
            surround_with_nan(&p);
            p.options.impl = impl ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
            try_product(&p, 1, NULL, NULL);
            release(&p);
        }
    }
}

static void epilogues(void **state)
{
    for (int i = 0; i < 24; i++) {
        try_epilogue((problem){.batch = i % 2 ? 3 : 1,
                               .m = 29,
                               .n = 43,
                               .k = 17,
                               .layout_b = i / 2 % 2,
                               .layout_c = i / 4 % 3,
                               .beta = 1,
                               .impl = i / 12 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY},
                     i % 3);
    }
    try_epilogue((problem){.m = 20, .n = 30, .k = 10}, -1);
}

/* Intra-group split-K, as on a GPU: few rows, few columns, few elements per unit; whole blocks and
 * partial ones, all layouts, one turn of k and several. */
static void intra_group_split_k(void **state)
{
    const int64_t shapes[][3] = {{1, 512, 512}, {1, 64, 64},  {1, 16, 16},   {1, 37, 1500},
                                 {512, 1, 200}, {3, 70, 100}, {7, 5, 3},     {16, 40, 129},
                                 {64, 64, 64},  {64, 96, 80}, {13, 200, 1},  {1, 1, 2000},
                                 {90, 11, 30},  {64, 16, 16}, {33, 61, 130}, {2, 3, 0}};
    const uint32_t units[3] = {1, 12, 132};
    const hal_device_info *kept = test_context->info;
    hal_device_info faked = *kept;
    test_set_device(test_context, &faked);
    faked.kind = HAL_DEVICE_DISCRETE;
    for (int i = 0; i < 16 * 9 * 3; i++) {
        const int64_t *n = shapes[i / 27];
        faked.compute_units = units[i % 3];
        faked.max_group_items = i % 2 ? kept->max_group_items : 64;
        faked.shared_bytes = i % 5 ? kept->shared_bytes : 4 << 10;
        faked.max_grid[0] = i % 11 ? kept->max_grid[0] : 40; /* slices of 512 columns need more */
        try_problem((problem){.batch = i % 4 ? 1 : 3,
                              .m = n[0],
                              .n = n[1],
                              .k = n[2],
                              .layout_a = i / 3 % 3,
                              .layout_b = i / 9 % 3,
                              .layout_c = i % 7 == 0,
                              .is_aligned = i % 8 > 2,
                              .alpha = i % 3 == 1 ? 1 : 2,
                              .beta = i % 5 ? 0 : -1,
                              .impl = OPS_GEMM_PORTABLE});
    }
    test_set_device(test_context, kept);
}

/* The same with every type, and with an epilogue whose inputs are loaded before the sums. */
static void intra_group_split_k_of_all_types(void **state)
{
    const hal_device_info *kept = test_context->info;
    hal_device_info faked = *kept;
    test_set_device(test_context, &faked);
    faked.kind = HAL_DEVICE_DISCRETE;
    faked.compute_units = 12;
    for (int i = 0; i < 4 * 4 * 3; i++) {
        static const int pairs[4] = {1, 2, 4, 5};
        try_problem((problem){.type = type_pairs[pairs[i / 12]][0],
                              .type_c = type_pairs[pairs[i / 12]][1],
                              .m = i % 3 == 0   ? 1
                                   : i % 3 == 1 ? 16
                                                : 31,
                              .n = i % 3 == 2 ? 29 : 72,
                              .k = i % 3 == 1 ? 256 : 75,
                              .layout_a = i / 3 % 2,
                              .layout_b = i / 6 % 2,
                              .is_aligned = 1,
                              .is_rounded = 1,
                              .alpha = 0.75,
                              .beta = i % 2 ? 0.5 : 0,
                              .impl = OPS_GEMM_PORTABLE});
    }
    for (int i = 0; i < 6; i++) {
        try_epilogue((problem){.batch = i % 2 ? 3 : 1,
                               .m = i / 2 == 0 ? 1 : 17,
                               .n = 43,
                               .k = 100,
                               .layout_b = i % 3,
                               .layout_c = i == 5,
                               .beta = i % 2,
                               .impl = OPS_GEMM_PORTABLE},
                     i % 3);
    }
    test_set_device(test_context, kept);
}

/* A, B and C are columns of one matrix. */
static void side_by_side(void **state)
{
    for (int impl = 0; impl < 2; impl++) {
        const int64_t shape[2] = {16, 60};
        box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -3, 3);
        box_truncate(&x);
        ops_tensor a, b, c;
        ok(ops_tensor_slice(&x.t, 1, 0, 16, 1, &a));
        ok(ops_tensor_slice(&x.t, 1, 16, 20, 1, &b));
        ok(ops_tensor_slice(&x.t, 1, 36, 20, 1, &c));
        const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                          .alpha = 1,
                                          .impl = impl ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY};
        ok(ops_gemm(test_context, &options, &a, &b, &c));
        double *want = box_want(&x);
        for (int64_t i = 0; i < 320; i++) {
            double sum = 0;
            for (int64_t k = 0; k < 16; k++) {
                sum += x.host[x.t.offset + i / 20 * 60 + k] *
                       x.host[x.t.offset + k * 60 + 16 + i % 20];
            }
            want[x.t.offset + i / 20 * 60 + 36 + i % 20] = sum;
        }
        box_check(&x, want, 0, 0);
        box_free(&x);
    }
}

static void broadcast_batch(void **state)
{
    for (int i = 0; i < 4; i++) {
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 4, 12, 14, 16, PLAIN, PLAIN, PLAIN);
        truncate_to_small(&p);
        p.options.impl = i % 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        box *one = i / 2 ? &p.a : &p.b;
        one->t.shape[0] = 1;
        try_product(&p, 1, NULL, NULL);
        one->t.rank = 2;
        memmove(one->t.shape, one->t.shape + 1, 2 * sizeof(int64_t));
        memmove(one->t.stride, one->t.stride + 1, 2 * sizeof(int64_t));
        box_upload(&p.c);
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

static void empty(void **state)
{
    for (int i = 0; i < 8; i++) {
        try_problem((problem){.m = i / 2 == 0 ? 0 : 6,
                              .n = i / 2 == 1 ? 0 : 5,
                              .k = i / 2 == 2 ? 0 : 4,
                              .beta = 2,
                              .impl = i % 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY});
    }
}

static void bad_arguments(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 6, 5, 4, PLAIN, PLAIN, PLAIN);
    box wide = make_matrix(HAL_TYPE_F64, 1, 4, 5, PLAIN);
    const ops_gemm_options *o = &p.options;
    invalid(ops_gemm(NULL, o, &p.a.t, &p.b.t, &p.c.t), "context");
    invalid(ops_gemm(test_context, o, NULL, &p.b.t, &p.c.t), "a: expected");
    invalid(ops_gemm(test_context, o, &p.a.t, NULL, &p.c.t), "b: expected");
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, NULL), "c: expected");
    invalid(ops_gemm(test_context, o, &p.b.t, &p.a.t, &p.c.t), "got f32[4, 5]");
    invalid(ops_gemm(test_context, o, &p.a.t, &wide.t, &p.c.t), "got f32, f64 and f32");
    invalid(ops_gemm(test_context, o, &wide.t, &wide.t, &p.c.t), "expected shapes");
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.a.t), "expected shapes");
    ops_tensor c = p.a.t;
    c.shape[1] = 4;
    ops_tensor square = p.b.t;
    square.shape[1] = 4;
    invalid(ops_gemm(test_context, o, &p.a.t, &square, &c), "memory that a does not use");
    p.options.impl = (ops_gemm_impl)7;
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), "options.impl: expected");
    p.options.impl = OPS_GEMM_ANY;
    p.options.levels = 3;
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), "options.levels: expected at most");
    p.options.levels = 0;
    p.options.input_count = 1;
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), "options.input_count: expected 0");
    p.options.epilogue = make_epilogue();
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), "got 6 and 1");
    ops_tensor inputs[2] = {p.a.t, p.c.t};
    p.options.inputs = inputs;
    p.options.input_count = 2;
    invalid(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), "to f32[6, 5], got f32[6, 4]");
    ops_expression_destroy((ops_expression *)(uintptr_t)p.options.epilogue);
    box_expect(&p.c, p.c.host, 0, 0);
    box_free(&wide);
    release(&p);
}

/* Options of products whose kernels were found before are checked as well. */
static void bad_levels_of_a_repeated_product(void **state)
{
    const int64_t shape[2] = {16, 16};
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ops_tensor a, c;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &a));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &c));
    ok(ops_fill(test_context, 1, &a));
    ok(ops_gemm(test_context, &options, &a, &a, &c));
    options.levels = 3;
    invalid(ops_gemm(test_context, &options, &a, &a, &c), "options.levels: expected at most 2");
    ops_tensor_release(&a);
    ops_tensor_release(&c);
}

/* Every shape is another kernel of the plugin: the context evicts old ones. */
static void ever_new_shapes(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 80, 80, 2, PLAIN, PLAIN, PLAIN);
    for (int64_t i = 0; i < 6400; i++) {
        ops_tensor a = p.a.t, b = p.b.t, c = p.c.t;
        a.shape[0] = c.shape[0] = i / 80 + 1;
        b.shape[1] = c.shape[1] = i % 80 + 1;
        ok(ops_gemm(test_context, NULL, &a, &b, &c));
        assert_true(test_context->kernels.count <= OPS_CACHE_KERNELS);
    }
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    truncate_to_small(&p);
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

static double negated(double value, int64_t row, int64_t column, int64_t batch, const box *inputs)
{
    (void)row;
    (void)column;
    (void)batch;
    (void)inputs;
    return -value;
}

static double negated_with_row(double value, int64_t row, int64_t column, int64_t batch,
                               const box *inputs)
{
    return negated(value + (double)row, row, column, batch, inputs);
}

/* A structure of zeros is the plain product; fields without a size are an error, not alpha = 0. */
static void options_have_a_size(void **state)
{
    (void)state;
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 6, 5, 4, PLAIN, PLAIN, PLAIN);
    truncate_to_small(&p);
    const ops_gemm_options zero = {0}, forgotten = {.beta = 1}, longer = {.size = 4096, .alpha = 1};
    ok(ops_gemm(test_context, &zero, &p.a.t, &p.b.t, &p.c.t));
    try_product(&p, 1, NULL, NULL);
    ok(ops_gemm(test_context, NULL, &p.a.t, &p.b.t, &p.c.t));
    try_product(&p, 1, NULL, NULL);
    invalid(ops_gemm(test_context, &forgotten, &p.a.t, &p.b.t, &p.c.t), "options.size: expected");
    invalid(ops_gemm(test_context, &longer, &p.a.t, &p.b.t, &p.c.t), "got 4096");
    release(&p);
}

/* An epilogue without further inputs ends where it likes: here, at the value and at the row. */
static void short_epilogues(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        hal_ir_builder *b;
        ops_expression *e;
        ok(hal_ir_builder_create_fragment("short", &b));
        hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
        if (i % 2) {
            hal_ir_value row = hal_ir_input(b, 1, HAL_TYPE_U32);
            value = hal_ir_add(b, value, hal_ir_cast(b, HAL_TYPE_F32, row));
        }
        hal_ir_output(b, 0, ops_unary_value(b, OPS_NEG, value));
        ok(ops_expression_create(b, &e));
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 40, 30, 20, PLAIN, PLAIN, PLAIN);
        truncate_to_small(&p);
        p.options.impl = i / 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        p.options.epilogue = e;
        try_product(&p, 1, i % 2 ? negated_with_row : negated, NULL);
        ops_expression_destroy(e);
        release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes),
                                       cmocka_unit_test(layouts),
                                       cmocka_unit_test(large_layouts),
                                       cmocka_unit_test(types),
                                       cmocka_unit_test(nan_around),
                                       cmocka_unit_test(epilogues),
                                       cmocka_unit_test(side_by_side),
                                       cmocka_unit_test(broadcast_batch),
                                       cmocka_unit_test(empty),
                                       cmocka_unit_test(bad_arguments),
                                       cmocka_unit_test(bad_levels_of_a_repeated_product),
                                       cmocka_unit_test(short_epilogues),
                                       cmocka_unit_test(options_have_a_size)};
    const struct CMUnitTest growth[] = {
        cmocka_unit_test(ever_new_shapes),     cmocka_unit_test(groups_keep_to_each_dimension),
        cmocka_unit_test(every_tile),          cmocka_unit_test(outer_products),
        cmocka_unit_test(intra_group_split_k), cmocka_unit_test(intra_group_split_k_of_all_types)};
    return RUN_ON_ALL(tests) + cmocka_run_group_tests(growth, open_context, close_context);
}

/* The portable kernels of a product, each pinned by its config, against sums in double; what the
 * choice depends on; products that are kept. */
#include "ops_gemm_fixture.h"

#include "gemm/candidates.h"

static void try_candidates(problem q, int least)
{
    product p = problem_make(&q);
    hal_status status = HAL_OK;
    int count = 0;
    char text[512], chosen[512], config[96], last[96] = "";
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof chosen, chosen));
    for (;;) {
        p.options.config = NULL;
        status = ops_gemm_get_config(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t,
                                     (uint32_t)count + 1, sizeof config, config);
        if (status != HAL_OK) {
            break;
        }
        assert_string_not_equal(config, last);
        memcpy(last, config, sizeof last);
        p.options.config = config;
        ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof text, text));
        if (count == 0) { /* the choice */
            assert_string_equal(text, chosen);
        }
        try_product(&p, !q.is_rounded, NULL, NULL);
        box_upload(&p.c);
        count++;
    }
    refused(status, HAL_ERROR_UNSUPPORTED, "rank: expected at most");
    assert_in_range(count, least, 255);
    p.options.config = "portable:1x1x1:1x1:0.1.0.9:0";
    refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t), HAL_ERROR_UNSUPPORTED,
            "options.config");
    release(&p);
}

static void every_candidate(void **state)
{
    static const struct {
        int64_t m, n, k;
        int least;
    } shapes[] = {
        {70, 130, 300, 15}, {3, 50, 700, 6}, {65, 1, 260, 4}, {40, 60, 5, 5}, {1, 1, 1, 1}};
    for (int i = 0; i < 5 * 6; i++) {
        try_candidates((problem){.type = i % 6 == 5   ? HAL_TYPE_F64
                                         : i % 6 == 4 ? HAL_TYPE_BF16
                                                      : HAL_TYPE_F32,
                                 .type_c = i % 6 == 5 ? HAL_TYPE_F64 : HAL_TYPE_F32,
                                 .m = shapes[i / 6].m,
                                 .n = shapes[i / 6].n,
                                 .k = shapes[i / 6].k,
                                 .layout_a = i % 2 ? PLAIN : TURNED,
                                 .layout_b = i % 3 ? PLAIN : TURNED,
                                 .layout_c = i % 4 == 3 ? TURNED : PLAIN,
                                 .alpha = i % 3 == 1 ? 1 : 2,
                                 .beta = i % 3 ? 0 : -1,
                                 .impl = OPS_GEMM_PORTABLE},
                       shapes[i / 6].least);
    }
}

/* Batches have no parts of k. */
static void batches(void **state)
{
    try_candidates((problem){.batch = 3, .m = 33, .n = 34, .k = 300, .impl = OPS_GEMM_PORTABLE}, 5);
}

static hal_buffer *buffer_of(int64_t count)
{
    hal_buffer *buffer = NULL;
    ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, (uint64_t)count * sizeof(float), &buffer));
    return buffer;
}

/* What is chosen, and its bits, do not depend on where A and B begin. */
static void offsets_have_no_part_in_the_choice(void **state)
{
    enum { M = 200, N = 240, K = 800, BITS_EVERY = 8 };
    static float numbers[(M + N) * K], results[2][M * N];
    hal_buffer *a = buffer_of(M * K + 1), *b = buffer_of(K * N + 1), *c = buffer_of(M * N);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.impl = OPS_GEMM_PORTABLE;
    forget_products();
    for (int i = 0; i < (M + N) * K; i++) {
        numbers[i] = (float)between(-1, 1);
    }
    for (int i = 0; i < 64; i++) {
        const int64_t m = 1 + next_random() % M, n = 4 * (1 + next_random() % (N / 4)),
                      k = 4 * (1 + next_random() % (K / 4));
        const ops_tensor to = {c, HAL_TYPE_F32, 2, 0, {m, n}, {n, 1}};
        char text[2][512];
        for (int offset = 0; offset < 2; offset++) {
            const ops_tensor from_a = {a, HAL_TYPE_F32, 2, offset, {m, k}, {k, 1}},
                             from_b = {b, HAL_TYPE_F32, 2, offset, {k, n}, {n, 1}};
            ok(ops_gemm_describe(test_context, &options, &from_a, &from_b, &to, sizeof text[0],
                                 text[offset]));
            if (i % BITS_EVERY == 0) {
                ok(hal_queue_write(test_queue, a, (uint64_t)offset * 4, numbers, M * K * 4));
                ok(hal_queue_write(test_queue, b, (uint64_t)offset * 4, numbers + M * K,
                                   K * N * 4));
                ok(ops_gemm(test_context, &options, &from_a, &from_b, &to));
                ok(hal_queue_read(test_queue, c, 0, sizeof results[0], results[offset]));
            }
        }
        assert_string_equal(text[0], text[1]);
        assert_memory_equal(results[0], results[1], (size_t)(m * n) * sizeof(float));
    }
    hal_buffer_release(a);
    hal_buffer_release(b);
    hal_buffer_release(c);
}

/* The same product again, of other numbers in other buffers, records the dispatches that were kept,
 * one or two, and keeps its hands off products with another alpha, beta or config. */
static void kept_products(void **state)
{
    for (int i = 0; i < 2 * 2 * 3; i++) {
        const problem q = {.m = 20,
                           .n = i % 2 ? 70 : 3,
                           .k = i / 2 % 2 ? 900 : 30,
                           .layout_a = i / 4 == 1 ? TURNED : PLAIN,
                           .layout_c = i / 4 == 2 ? TURNED : PLAIN,
                           .beta = i % 3 ? 0 : 2,
                           .impl = OPS_GEMM_PORTABLE};
        product first = problem_make(&q);
        try_product(&first, 1, NULL, NULL);
        box_upload(&first.c);
        try_product(&first, 1, NULL, NULL); /* the second kernel of two was new */
        void *kept = test_context->plans;
        assert_non_null(kept);
        test_context->plans = NULL;
        product second = problem_make(&q);
        test_context->plans = kept;
        const uint64_t before = test_context->kernels.insertions;
        /* A call that is planned anew has other kernels. */
        test_tune(test_context)->gemm.split_depth = 10;
        try_product(&second, 1, NULL, NULL);
        test_tune(test_context)->gemm.split_depth = 0;
        assert_int_equal(test_context->kernels.insertions, before);
        assert_ptr_equal(test_context->plans, kept);
        box_upload(&second.c);
        second.options.alpha = 3;
        try_product(&second, 1, NULL, NULL);
        box_upload(&second.c);
        second.options.beta = -1;
        try_product(&second, 1, NULL, NULL);
        box_upload(&second.c);
        char config[96];
        ok(ops_gemm_get_config(test_context, &second.options, &second.a.t, &second.b.t, &second.c.t,
                               2, sizeof config, config));
        second.options.config = config;
        try_product(&second, 1, NULL, NULL);
        release(&first);
        release(&second);
    }
}

/* A product with a matrix of one buffer twice, and then of two. */
static void kept_squares(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 33, 33, 33, PLAIN, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_PORTABLE;
    truncate_to_small(&p);
    product square = p;
    square.b = square.a;
    for (int i = 0; i < 4; i++) {
        try_product(i % 2 ? &p : &square, 1, NULL, NULL);
        box_upload(&p.c);
    }
    release(&p);
}

/* A product whose C is in the buffer of A or of B, and then one whose C has a buffer to itself. */
static void kept_neighbours(void **state)
{
    enum { LENGTH = 8, C_ROW = 32 };
    const int64_t shape[2] = {C_ROW + LENGTH, LENGTH};
    for (int i = 0; i < 2 * 2; i++) {
        product apart =
            make(HAL_TYPE_F32, HAL_TYPE_F32, 1, LENGTH, LENGTH, LENGTH, PLAIN, PLAIN, PLAIN);
        release(&apart);
        box *const boxes[3] = {&apart.a, &apart.b, &apart.c};
        for (int j = 0; j < 3; j++) {
            *boxes[j] = box_make(HAL_TYPE_F32, 2, shape, NULL, -1, 1);
            boxes[j]->t.shape[0] = LENGTH;
            boxes[j]->t.offset = j < 2 ? 0 : C_ROW * LENGTH;
        }
        truncate_to_small(&apart);
        apart.options.impl = i / 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        product together = apart;
        box *const other = i % 2 ? &together.b : &together.a;
        together.c = *other;
        together.c.t.offset = apart.c.t.offset;
        try_product(&together, 1, NULL, NULL);
        box_upload(other);
        try_product(&apart, 1, NULL, NULL);
        box_expect(&apart.a, apart.a.host, 0, 0);
        box_expect(&apart.b, apart.b.host, 0, 0);
        release(&apart);
    }
}

/* Sums need levels, whether the product was met before or not. */
static void kept_products_have_no_sums(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 8, 8, 8, PLAIN, PLAIN, PLAIN);
    ops_tensor sums;
    const int64_t shape[3] = {7, 4, 4};
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 3, shape, &sums));
    truncate_to_small(&p);
    try_product(&p, 1, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        p.options.a_sums = i ? &sums : NULL;
        p.options.c_sums = i ? NULL : &sums;
        refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                HAL_ERROR_INVALID_ARGUMENT, "expected HAL_GEMM_NORMWISE with levels");
    }
    ops_tensor_release(&sums);
    release(&p);
}

static void processors_have_one(void **state)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 21, 23, 50, PLAIN, PLAIN, PLAIN);
    char config[96];
    p.options.impl = OPS_GEMM_PORTABLE;
    ok(ops_gemm_get_config(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, 1, sizeof config,
                           config));
    refused(ops_gemm_get_config(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, 2, sizeof config,
                                config),
            HAL_ERROR_UNSUPPORTED, "one portable kernel");
    invalid(ops_gemm_get_config(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, 0, sizeof config,
                                config),
            "rank");
    release(&p);
}

/* A processor without subgroups whose groups are too small for staged tiles. */
static int open_small_groups_context(void **state)
{
    static hal_device_info small;
    const int failed = open_context(state);
    if (!failed) {
        small = *test_context->info;
        small.kind = HAL_DEVICE_CPU;
        small.subgroup_width = small.item_vector_bytes = 0;
        small.max_group_items = small.max_group_size[0] = 32;
        small.preferred_group = 32;
        test_set_device(test_context, &small);
    }
    return failed;
}

static void small_groups_have_candidates(void **state)
{
    static const int64_t shapes[][3] = {{5, 5, 5}, {1, 1, 1}, {70, 90, 100}, {3, 130, 700}};
    for (int i = 0; i < 4; i++) {
        const ops_gemm_shape shape = {.tuning = &test_context->tuning->gemm,
                                      .m = shapes[i][0],
                                      .n = shapes[i][1],
                                      .k = shapes[i][2],
                                      .batch = 1,
                                      .type = HAL_TYPE_F32,
                                      .a_k_contiguous = 1,
                                      .a_width = 1,
                                      .b_width = 1};
        ops_gemm_candidate found;
        assert_true(ops_gemm_find_candidate(test_context->info, &shape, 1, 1, &found) > 0);
        try_problem((problem){.m = shape.m, .n = shape.n, .k = shape.k, .impl = OPS_GEMM_PORTABLE});
    }
}

int main(void)
{
    const struct CMUnitTest cpu[] = {cmocka_unit_test(processors_have_one),
                                     cmocka_unit_test(kept_neighbours),
                                     cmocka_unit_test(kept_products_have_no_sums)};
    const struct CMUnitTest other[] = {cmocka_unit_test(every_candidate),
                                       cmocka_unit_test(batches),
                                       cmocka_unit_test(offsets_have_no_part_in_the_choice),
                                       cmocka_unit_test(kept_products),
                                       cmocka_unit_test(kept_squares),
                                       cmocka_unit_test(kept_neighbours)};
    const struct CMUnitTest small[] = {cmocka_unit_test(small_groups_have_candidates)};
    return cmocka_run_group_tests_name("cpu", cpu, open_context, close_context) +
           cmocka_run_group_tests_name("small groups", small, open_small_groups_context,
                                       close_context) +
           cmocka_run_group_tests_name("gpu", other, open_other_context, close_context);
}

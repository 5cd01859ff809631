/* Native matrix products of a plugin that takes only lines of whole 16 bytes, as copy engines of
 * matrix units do: which operands are copied, with what result, within which memory, and what is
 * told. The plugin is the cpu one with entries in front of its own. */
#include "ops_gemm_fixture.h"

#include "core/device.h"
#include "ops_arrays.h"

enum { LINE = 512, ALIGNMENT = 16 };

static hal_plugin_entries inside; /* the table of the cpu plugin */
static int has_memory;
static int refused_allocations;
static double estimate_ns; /* that the plugin tells */
static double portable_ns; /* that the plugin was told */
static uint64_t workspace; /* that kernels ask for; they do not use it */

static int is_aligned(int64_t leading, int64_t lines, int64_t stride, hal_type type)
{
    const int64_t size = hal_type_size(type);
    return (lines == 1 || leading * size % ALIGNMENT == 0) && stride * size % ALIGNMENT == 0;
}

static int takes(const hal_gemm_description *d)
{
    return is_aligned(d->lda, d->transpose_a ? d->k : d->m, d->stride_a, d->type_a) &&
           is_aligned(d->ldb, d->transpose_b ? d->n : d->k, d->stride_b, d->type_b);
}

static hal_status estimate_of_lines(hal_plugin_device *device, const hal_gemm_description *d,
                                    double most_ns, double *nanoseconds)
{
    portable_ns = most_ns;
    *nanoseconds = estimate_ns;
    return takes(d) ? HAL_OK : HAL_ERROR_UNSUPPORTED;
}

static hal_status gemm_of_lines(hal_plugin_device *device, const hal_gemm_description *d,
                                hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    if (!takes(d)) {
        return HAL_ERROR_UNSUPPORTED;
    }
    const hal_status status = inside.gemm(device, d, kernel, workspace_bytes);
    *workspace_bytes += workspace;
    return status;
}

static hal_status allocate_some(hal_plugin_device *device, hal_memory_kind kind, uint64_t bytes,
                                hal_plugin_memory **memory)
{
    refused_allocations += !has_memory;
    return has_memory ? inside.memory_allocate(device, kind, bytes, memory)
                      : HAL_ERROR_OUT_OF_MEMORY;
}

static int open_lines_context(void **state)
{
    if (open_other_context(state)) {
        return -1;
    }
    hal_plugin_entries *table = &test_device->module->table;
    inside = *table;
    has_memory = 1;
    table->gemm = gemm_of_lines;
    table->gemm_estimate = estimate_of_lines;
    table->memory_allocate = allocate_some;
    return 0;
}

static int close_lines_context(void **state)
{
    test_device->module->table = inside;
    return close_context(state);
}

static product make_native(hal_type type, int64_t batch, const int64_t shape[3], int layout_a,
                           int layout_b)
{
    product p = make(type, type, batch, shape[0], shape[1], shape[2], layout_a, layout_b, PLAIN);
    p.options.impl = OPS_GEMM_NATIVE;
    align(&p);
    truncate_to_small(&p);
    return p;
}

/* All layouts of both operands, odd and whole lengths, one line, batches. */
static void odd_lines_are_copied(void **state)
{
    static const int64_t shapes[][3] = {{17, 23, 29}, {16, 24, 40}, {1, 33, 65}, {33, 1, 65}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16};
    for (int i = 0; i < 4 * 2 * 2 * LAYOUTS * LAYOUTS; i++) {
        product p = make_native(types[i / 4 % 2], i / 8 % 2 ? 3 : 1, shapes[i % 4],
                                i / 16 % LAYOUTS, i / 16 / LAYOUTS);
        p.options.beta = i % 3 == 0 ? 1 : 0;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

/* NaN next to the elements, and in the memory that copies get, does not reach C. */
static void padding_is_not_read(void **state)
{
    static const int64_t shape[3] = {19, 21, 23};
    product p = make_native(HAL_TYPE_F32, 1, shape, PADDED, PADDED);
    surround_with_nan(&p);
    for (int i = 0; i < 2; i++) {
        ops_tensor nan; /* its memory is the copies' afterwards */
        const int64_t length = 19 * 24;
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, &length, &nan));
        ok(ops_fill(test_context, (double)NAN, &nan));
        ops_tensor_release(&nan);
        try_product(&p, 1, NULL, NULL);
    }
    release(&p);
}

/* The bits of the operands that are copied. */
static uint32_t copied_of(const product *p)
{
    const ops_tensor *b = p->options.prepared ? NULL : &p->b.t;
    char line[LINE];
    ok(ops_gemm_describe(test_context, &p->options, &p->a.t, b, &p->c.t, LINE, line));
    return strstr(line, ", both copied") ? 3
           : strstr(line, ", a copied")  ? 1
           : strstr(line, ", b copied")  ? 2
                                         : 0;
}

static void expect_copied(int64_t m, int64_t n, int64_t k, int layout_a, int layout_b,
                          uint32_t copied)
{
    const int64_t shape[3] = {m, n, k};
    product p = make_native(HAL_TYPE_F32, 1, shape, layout_a, layout_b);
    try_product(&p, 1, NULL, NULL);
    assert_int_equal(copied_of(&p), copied);
    release(&p);
}

/* Only the operands whose lines are odd; a single line is never odd. */
static void only_odd_lines_are_copied(void **state)
{
    expect_copied(17, 24, 16, PLAIN, PLAIN, 0);
    expect_copied(17, 24, 15, PLAIN, PLAIN, 1);
    expect_copied(16, 23, 16, PLAIN, PLAIN, 2);
    expect_copied(17, 23, 15, PLAIN, PLAIN, 3);
    expect_copied(1, 24, 15, PLAIN, PLAIN, 0);
    expect_copied(16, 23, 15, TURNED, PLAIN, 2);
    expect_copied(17, 23, 16, TURNED, TURNED, 1);
    expect_copied(16, 27, 16, PLAIN, EVERY_OTHER, 2);
}

/* One B for all products of a batch is copied once. */
static void a_shared_operand_is_copied_once(void **state)
{
    static const int64_t shape[3] = {16, 23, 16};
    char line[LINE];
    product p = make_native(HAL_TYPE_F32, 3, shape, PLAIN, PLAIN);
    box_free(&p.b);
    p.b = make_matrix(HAL_TYPE_F32, 1, 16, 23, PLAIN);
    p.b.t.offset += 3;
    truncate_to_small(&p);
    try_product(&p, 1, NULL, NULL);
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, LINE, line));
    assert_non_null(strstr(line, "a by rows, b by rows, b copied (1536 bytes), ")); /* 16 x 24 */
    release(&p);
}

static void expect_words(const product *p, const char *words)
{
    char line[LINE];
    ok(ops_gemm_describe(test_context, &p->options, &p->a.t, &p->b.t, &p->c.t, LINE, line));
    if (!strstr(line, words)) {
        fail_msg("'%s' lacks '%s'", line, words);
    }
}

/* A copy takes longer than a small product. */
static void small_products_are_not_copied(void **state)
{
    static const int64_t shape[3] = {18, 22, 14};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    expect_words(&p, "both copied");
    p.options.impl = OPS_GEMM_ANY;
    expect_words(&p, "portable");
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

static void max_workspace_bounds_copies(void **state)
{
    static const int64_t shape[3] = {117, 123, 115};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_ANY;
    p.options.max_workspace = (117 * 116 + 115 * 124) * 4;
    expect_words(&p, "native: f32, a by rows, b by rows, both copied (111328 bytes), ");
    p.options.max_workspace--;
    expect_words(&p, "; a native kernel needs options.max_workspace of at least the copies");
    try_product(&p, 1, NULL, NULL);
    p.options.impl = OPS_GEMM_NATIVE;
    refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t), HAL_ERROR_UNSUPPORTED,
            "options.max_workspace");
    release(&p);
}

/* Computes a product for which there is no memory, and expects that memory is asked for, and that
 * the success says nothing of it. */
static void try_without_memory(product *p)
{
    has_memory = 0;
    refused_allocations = 0;
    box_upload(&p->c);
    hal_status_set(HAL_OK, "%s", "of an earlier failure");
    try_product(p, 1, NULL, NULL);
    assert_string_equal(hal_status_message(), "of an earlier failure");
    has_memory = 1;
    assert_true(refused_allocations > 0);
}

/* A product that a limit has left to the portable kernel is not kept for calls without the limit.
 */
static void limits_of_memory_are_not_kept(void **state)
{
    static const int64_t shape[3] = {301, 203, 157};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    p.options.impl = OPS_GEMM_ANY;
    p.options.max_workspace = 1;
    try_product(&p, 1, NULL, NULL);
    p.options.max_workspace = 0;
    try_without_memory(&p);
    release(&p);
}

/* Nor is one for whose first choice there was no memory: copies, a workspace, split-K. */
static void choices_without_memory_are_not_kept(void **state)
{
    static const int64_t shapes[][3] = {{301, 203, 157}, {300, 208, 156}, {256, 256, 64}};
    for (int i = 0; i < 3; i++) {
        product p = make_native(HAL_TYPE_F32, 1, shapes[i], PLAIN, PLAIN);
        p.options.impl = i == 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        workspace = i == 1 ? UINT64_C(1) << 30 : 0;
        test_tune(test_context)->gemm.split_depth = i == 2 ? 4 : 0;
        try_without_memory(&p);
        try_without_memory(&p);
        test_tune(test_context)->gemm.split_depth = 0;
        workspace = 0;
        release(&p);
    }
}

/* The plugin's estimate, with the copies, decides against the portable kernel, which reads A and B
 * where they are; where that is no alternative it decides nothing. */
static void estimates_decide(void **state)
{
    static const int64_t shapes[][3] = {{30, 21, 15}, {300, 210, 150}};
    double last = 0;
    for (int i = 0; i < 2; i++) {
        product p = make_native(HAL_TYPE_F32, 1, shapes[i], PLAIN, PLAIN);
        p.options.impl = OPS_GEMM_ANY;
        p.options.precision = HAL_GEMM_ACCURATE;
        estimate_ns = 1e12;
        expect_words(&p, "portable");
        try_product(&p, 1, NULL, NULL);
        assert_true(portable_ns > last);
        last = portable_ns;
        forget_products();
        estimate_ns = 0; /* not known */
        expect_words(&p, i ? "native" : "portable");
        forget_products();
        estimate_ns = 1e-3; /* and the copies */
        expect_words(&p, i && portable_ns > 3000 ? "native" : "portable");
        p.options.impl = OPS_GEMM_NATIVE;
        estimate_ns = 1e12;
        expect_words(&p, "native");
        try_product(&p, 1, NULL, NULL);
        assert_true(portable_ns == 0);
        estimate_ns = 0;
        release(&p);
    }
}

/* Where strict products are never copied, as the portable kernel is as fast, those of integers are:
 * plugins have units for them, and sums are exact. */
static void strict_integers_are_copied(void **state)
{
    const hal_type types[][2] = {{HAL_TYPE_F32, HAL_TYPE_F32}, {HAL_TYPE_I8, HAL_TYPE_I32}};
    const bool has_integers = test_context->info->features & HAL_FEATURE_INTEGER_PRODUCTS;
    ops_gemm_tuning *tuning = &test_tune(test_context)->gemm;
    const bool copies_strict = tuning->copies_strict;
    tuning->copies_strict = false;
    estimate_ns = 1e-3;
    for (int i = 0; i < (has_integers ? 2 : 1); i++) {
        product p = make(types[i][0], types[i][1], 1, 501, 503, 517, PLAIN, PLAIN, PLAIN);
        align(&p);
        expect_words(&p, i ? ", both copied" : "portable");
        release(&p);
    }
    estimate_ns = 0;
    tuning->copies_strict = copies_strict;
}

/* Without memory for the copies the portable kernel, which needs none, multiplies. */
static void without_memory_the_portable_kernel_multiplies(void **state)
{
    static const int64_t shape[3] = {301, 203, 157};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    has_memory = 0;
    refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t), HAL_ERROR_OUT_OF_MEMORY,
            "");
    p.options.impl = OPS_GEMM_ANY;
    try_product(&p, 1, NULL, NULL);
    has_memory = 1;
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

/* Nor does it need a workspace. */
static void without_a_workspace_the_portable_kernel_multiplies(void **state)
{
    static const int64_t shape[3] = {304, 204, 156};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    workspace = UINT64_C(1) << 30;
    p.options.max_workspace = workspace - 1;
    refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t), HAL_ERROR_UNSUPPORTED,
            "options.max_workspace");
    p.options.impl = OPS_GEMM_ANY;
    try_product(&p, 1, NULL, NULL);
    p.options.impl = OPS_GEMM_NATIVE;
    p.options.max_workspace = 0;
    has_memory = 0;
    refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t), HAL_ERROR_OUT_OF_MEMORY,
            "");
    p.options.impl = OPS_GEMM_ANY;
    try_product(&p, 1, NULL, NULL);
    workspace = 0;
    has_memory = 1;
    release(&p);
}

/* A prepared B has aligned lines, so that no product copies it; sums may follow it. */
static void prepared_lines_are_aligned(void **state)
{
    for (int i = 0; i < 6; i++) {
        const int64_t shape[3] = {20, 22, 16};
        const int layout = i / 2 % 3 == 0 ? PLAIN : i / 2 % 3 == 1 ? TURNED : EVERY_OTHER;
        product p = make_native(i == 1 ? HAL_TYPE_BF16 : HAL_TYPE_F32, 1, shape, PLAIN, layout);
        ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
        ops_gemm_prepared *prepared = NULL;
        options.levels = i >= 2 ? (uint32_t)i % 2 : 0;
        options.precision = HAL_GEMM_NORMWISE;
        ok(ops_gemm_prepare(test_context, &options, &p.b.t, &prepared));
        const uint32_t levels = ops_gemm_prepared_get_levels(prepared);
        assert_int_equal(levels, options.levels);
        if (levels == 0 && layout != TURNED) {
            assert_int_equal(ops_gemm_prepared_get_bytes(prepared), i == 1 ? 768 : 16 * 24 * 4);
        }
        p.options.prepared = prepared;
        p.options.precision = levels ? HAL_GEMM_NORMWISE : HAL_GEMM_STRICT;
        p.options.levels = levels;
        try_product(&p, 1, NULL, NULL);
        assert_true(levels > 0 || copied_of(&p) == 0);
        ops_gemm_prepared_destroy(prepared);
        release(&p);
    }
}

/* Lines of at least 512 bytes are whole lines of a GPU's caches. */
static void long_lines_fill_cache_lines(void **state)
{
    static const int64_t shape[3] = {5, 203, 3};
    for (int i = 0; i < 2; i++) {
        product p = make_native(i ? HAL_TYPE_BF16 : HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
        ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
        ops_gemm_prepared *prepared = NULL;
        ok(ops_gemm_prepare(test_context, &options, &p.b.t, &prepared));
        assert_int_equal(ops_gemm_prepared_get_bytes(prepared), i ? 3 * 208 * 2 : 3 * 224 * 4);
        try_product(&p, 1, NULL, NULL); /* copies B the same way */
        p.options.prepared = prepared;
        try_product(&p, 1, NULL, NULL);
        ops_gemm_prepared_destroy(prepared);
        release(&p);
    }
}

/* The copies of a product of arrays are temporaries of its plan, which the second call replays. */
static void plans_of_arrays_have_the_copies(void **state)
{
    enum { M = 117, N = 123 };
    static const int64_t shape[3] = {M, N, 115};
    static float want[M * N], got[M * N];
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
    ok(ops_tensor_read(test_context, &p.c.t, sizeof want, want));
    for (int i = 0; i < 2; i++) {
        ops_array *a = made(ops_array_from_tensor(test_context, &p.a.t));
        ops_array *b = made(ops_array_from_tensor(test_context, &p.b.t));
        const uint64_t before = statistics_of(test_context).compiled;
        ops_array *c = ops_array_keep(made(ops_matmul(a, b)));
        ok(ops_array_read(c, sizeof got, got));
        assert_int_equal(statistics_of(test_context).compiled - before, 1 - i);
        assert_memory_equal(got, want, sizeof want);
        memset(got, 0, sizeof got);
        release_all(a, b, c);
    }
    release(&p);
}

/* Configs name portable kernels; the cpu plugin's product has one kernel. */
static void configs_are_portable(void **state)
{
    static const int64_t shape[3] = {16, 24, 40};
    product p = make_native(HAL_TYPE_F32, 1, shape, PLAIN, PLAIN);
    for (int i = 0; i < 2; i++) {
        p.options.config = "portable:none";
        p.options.impl = i ? OPS_GEMM_ANY : OPS_GEMM_NATIVE;
        refused(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t),
                HAL_ERROR_INVALID_ARGUMENT, "options.config");
    }
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_lines_are_copied),
        cmocka_unit_test(padding_is_not_read),
        cmocka_unit_test(only_odd_lines_are_copied),
        cmocka_unit_test(a_shared_operand_is_copied_once),
        cmocka_unit_test(small_products_are_not_copied),
        cmocka_unit_test(max_workspace_bounds_copies),
        cmocka_unit_test(limits_of_memory_are_not_kept),
        cmocka_unit_test(choices_without_memory_are_not_kept),
        cmocka_unit_test(without_memory_the_portable_kernel_multiplies),
        cmocka_unit_test(without_a_workspace_the_portable_kernel_multiplies),
        cmocka_unit_test(configs_are_portable),
        cmocka_unit_test(prepared_lines_are_aligned),
        cmocka_unit_test(long_lines_fill_cache_lines),
        cmocka_unit_test(plans_of_arrays_have_the_copies),
        cmocka_unit_test(strict_integers_are_copied),
        cmocka_unit_test(estimates_decide), /* the last one: it leaves memory in the pool */
    };
    return cmocka_run_group_tests(tests, open_lines_context, close_lines_context);
}

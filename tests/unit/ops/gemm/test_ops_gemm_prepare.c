/* B of matrix products prepared ahead, for tensors and arrays, and what ops_gemm_describe says. */
#include "ops_gemm_fixture.h"

#include "gemm/normwise/normwise.h"
#include "ops_arrays.h"

#include <inttypes.h>

static ops_gemm_prepared *prepare(const ops_tensor *b, uint32_t precision, uint32_t levels,
                                  uint64_t max_bytes)
{
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    ops_gemm_prepared *made = NULL;
    options.precision = precision;
    options.levels = levels;
    options.max_bytes = max_bytes;
    ok(ops_gemm_prepare(test_context, &options, b, &made));
    return made;
}

/* Products of two sizes of A with one prepared B, whose own memory holds NAN by then. */
static void try_prepared(uint32_t levels, uint32_t precision, problem q)
{
    product p = problem_make(&q);
    ops_gemm_prepared *prepared = prepare(&p.b.t, precision, levels, 0);
    const int has_sums =
        precision == HAL_GEMM_NORMWISE && p.batch == 1 && (q.n < q.k ? q.n : q.k) >> levels > 0;
    assert_int_equal(ops_gemm_prepared_get_levels(prepared), has_sums ? levels : 0);
    ok(ops_fill(test_context, NAN, &p.b.t));
    for (int i = 0; i < 2; i++) {
        problem r = q;
        r.m = q.m + 13 * i;
        product s = problem_make(&r);
        box_free(&s.b);
        s.b = p.b;
        s.options.precision = precision;
        s.options.levels = levels;
        s.options.prepared = prepared;
        try_product(&s, 1, NULL, NULL);
        box_free(&s.a);
        box_free(&s.c);
    }
    ops_gemm_prepared_destroy(prepared);
    release(&p);
}

TEST(a_prepared_b_multiplies_as_b_does)
{
    for (uint32_t levels = 0; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
        for (int layout = 0; layout < LAYOUTS; layout++) {
            const problem q = {.m = 20, .n = 27, .k = 22, .layout_b = layout, .beta = layout};
            try_prepared(levels, HAL_GEMM_NORMWISE, q);
            try_prepared(levels, HAL_GEMM_STRICT, q);
        }
        try_prepared(levels, HAL_GEMM_NORMWISE,
                     (problem){.type = HAL_TYPE_F64, .m = 8, .n = 16, .k = 12});
        try_prepared(levels, HAL_GEMM_NORMWISE, (problem){.m = 1, .n = 1, .k = 1});
    }
}

/* Levels that were not prepared make their own sums. */
TEST(other_levels_ignore_the_sums)
{
    problem q = {.m = 24, .n = 28, .k = 20};
    product p = problem_make(&q);
    ops_gemm_prepared *prepared = prepare(&p.b.t, HAL_GEMM_NORMWISE, 1, 0);
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.prepared = prepared;
    p.options.levels = 2;
    try_product(&p, 1, NULL, NULL);
    ops_gemm_prepared_destroy(prepared);
    release(&p);
}

TEST(recorded_products_outlive_the_object)
{
    problem q = {.m = 24, .n = 28, .k = 20};
    product p = problem_make(&q);
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.levels = 1;
    ops_gemm_prepared *prepared = prepare(&p.b.t, HAL_GEMM_NORMWISE, 1, 0);
    p.options.prepared = prepared;
    ok(ops_gemm(test_context, &p.options, &p.a.t, NULL, &p.c.t));
    ops_gemm_prepared_destroy(prepared);
    float c[24 * 28];
    ok(ops_tensor_read(test_context, &p.c.t, sizeof c, c));
    for (int i = 0; i < 24 * 28; i++) {
        double sum = 0;
        for (int k = 0; k < 20; k++) {
            sum += element(&p.a, 0, i / 28, k) * element(&p.b, 0, k, i % 28);
        }
        assert_float_equal(c[i], sum, 0);
    }
    release(&p);
}

TEST(memory_is_stated_and_bounded)
{
    problem q = {.m = 8, .n = 32, .k = 16};
    product p = problem_make(&q);
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    ops_gemm_prepared *made = NULL;
    const uint64_t copy = 32 * 16 * 4, sums[3] = {0, copy * 7 / 4, copy * 49 / 16};
    for (uint32_t levels = 0; levels < 3; levels++) {
        made = prepare(&p.b.t, HAL_GEMM_NORMWISE, 2, copy + sums[levels]);
        assert_int_equal(ops_gemm_prepared_get_levels(made), levels);
        assert_int_equal(ops_gemm_prepared_get_bytes(made), copy + sums[levels]);
        ops_gemm_prepared_destroy(made);
    }
    options.max_bytes = copy - 1;
    assert_fails(ops_gemm_prepare(test_context, &options, &p.b.t, &made),
                 HAL_ERROR_INVALID_ARGUMENT, "options.max_bytes");
    assert_null(made);
    assert_int_equal(ops_gemm_prepared_get_bytes(NULL), 0);
    assert_int_equal(ops_gemm_prepared_get_levels(NULL), 0);
    ops_gemm_prepared_destroy(NULL);
    release(&p);
}

static hal_status prepare_in_program(ops_context *context, void *user)
{
    ops_gemm_prepared *none = NULL;
    const hal_status status = ops_gemm_prepare(context, NULL, user, &none);
    assert_null(none);
    return status;
}

/* The copy would be a command of the graph. */
TEST(recordings_prepare_nothing)
{
    problem q = {.m = 8, .n = 8, .k = 8};
    product p = problem_make(&q);
    ops_gemm_prepared *prepared = NULL;
    hal_graph *graph = NULL;
    ok(hal_graph_begin(test_queue));
    assert_fails(ops_gemm_prepare(test_context, NULL, &p.b.t, &prepared), HAL_ERROR_INVALID_STATE,
                 "ops_gemm_prepare: b: expected a call outside of the recording");
    assert_null(prepared);
    ok(hal_graph_end(test_queue, NULL, 0, &graph));
    assert_int_equal(hal_graph_get_command_count(graph), 0);
    hal_graph_destroy(graph);
    assert_fails(ops_prepare(test_context, prepare_in_program, &p.b.t), HAL_ERROR_INVALID_STATE,
                 "outside of the recording");
    prepared = prepare(&p.b.t, HAL_GEMM_STRICT, 0, 0);
    ops_gemm_prepared_destroy(prepared);
    release(&p);
}

TEST(unsuitable_arguments_are_reported)
{
    const int64_t shape[3] = {4, 6, 8}, other[2] = {5, 8};
    ops_tensor b, c, a, whole, wrong, half;
    ops_gemm_prepared *prepared = NULL, *none = NULL;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ops_gemm_prepare_options prepare_options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &a));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape + 1, &b));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, (int64_t[2]){4, 8}, &c));
    ok(ops_tensor_create(test_context, HAL_TYPE_I32, 2, shape + 1, &whole));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, other, &wrong));
    ok(ops_tensor_create(test_context, HAL_TYPE_F16, 2, shape, &half));
    ok(ops_gemm_prepare(test_context, NULL, &b, &prepared));
    options.prepared = prepared;
    assert_fails(ops_gemm(test_context, &options, &a, &b, &c), HAL_ERROR_INVALID_ARGUMENT,
                 "expected null with options.prepared");
    assert_fails(ops_gemm(test_context, &options, &wrong, NULL, &c), HAL_ERROR_INVALID_ARGUMENT,
                 "[5, 8]");
    assert_fails(ops_gemm(test_context, &options, &half, NULL, &c), HAL_ERROR_INVALID_ARGUMENT,
                 "f16");
    assert_fails(ops_gemm(test_context, NULL, &a, NULL, &c), HAL_ERROR_INVALID_ARGUMENT,
                 "ops_gemm: b:");
    assert_fails(ops_gemm_prepare(test_context, NULL, &whole, &none), HAL_ERROR_INVALID_ARGUMENT,
                 "expected floats");
    assert_fails(ops_gemm_prepare(test_context, NULL, NULL, &none), HAL_ERROR_INVALID_ARGUMENT,
                 "ops_gemm_prepare: b:");
    assert_fails(ops_gemm_prepare(NULL, NULL, &b, &none), HAL_ERROR_INVALID_ARGUMENT, "context");
    assert_fails(ops_gemm_prepare(test_context, NULL, &b, NULL), HAL_ERROR_INVALID_ARGUMENT,
                 "prepared:");
    prepare_options.levels = 3;
    assert_fails(ops_gemm_prepare(test_context, &prepare_options, &b, &none),
                 HAL_ERROR_INVALID_ARGUMENT, "options.levels: expected at most 2, got 3");
    prepare_options.levels = 0;
    prepare_options.rows = -1;
    assert_fails(ops_gemm_prepare(test_context, &prepare_options, &b, &none),
                 HAL_ERROR_INVALID_ARGUMENT, "rows");
    prepare_options.size = 0;
    assert_fails(ops_gemm_prepare(test_context, &prepare_options, &b, &none),
                 HAL_ERROR_INVALID_ARGUMENT, "options.size");
    assert_null(none);
    ops_gemm_prepared_destroy(prepared);
    ops_tensor *all[] = {&a, &b, &c, &whole, &wrong, &half};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ops_tensor_release(all[i]);
    }
}

/* ---- Arrays ---- */

static ops_array *make_array(int64_t rows, int64_t columns, int salt)
{
    float values[64 * 64];
    const int64_t shape[2] = {rows, columns};
    for (int64_t i = 0; i < rows * columns; i++) {
        values[i] = (float)((i * 7 + salt) % 11 - 5);
    }
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, shape, values));
}

static void expect_equal(ops_array *x, ops_array *y)
{
    float values[2][64 * 64];
    const uint64_t bytes = (uint64_t)ops_array_get_element_count(x) * sizeof(float);
    ok(ops_array_read(made(x), bytes, values[0]));
    ok(ops_array_read(made(y), bytes, values[1]));
    assert_memory_equal(values[0], values[1], bytes);
}

static ops_gemm_prepare_options prepare_options_of(uint32_t levels)
{
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    options.levels = levels;
    return options;
}

/* Twice, so that the second product replays the plan of the first, with other weights. */
TEST(arrays_use_prepared_weights)
{
    for (uint32_t levels = 0; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
        const ops_gemm_prepare_options options = prepare_options_of(levels);
        for (int i = 0; i < 2; i++) {
            ops_array *x = make_array(33, 30, i), *w = make_array(30, 27, 3 + i);
            ops_array *bias = make_array(1, 27, 5), *ready = made(ops_array_prepare(w, &options));
            assert_int_equal(ops_gemm_prepared_get_levels(ready->prepared), levels);
            ok(ops_scope_begin(test_context));
            expect_equal(ops_relu(ops_add(ops_array_matmul_by_levels(x, ready, levels), bias)),
                         ops_relu(ops_add(ops_array_matmul(x, w, HAL_GEMM_STRICT), bias)));
            expect_equal(ops_matmul(x, ready), ops_matmul(x, w));
            ops_array *turned = made(ops_array_transpose(ready, 0, 1));
            assert_int_equal(turned->operation, OPS_OPERATION_NONE);
            expect_equal(ops_array_matmul_by_levels(turned, ops_array_transpose(x, 0, 1), levels),
                         ops_array_transpose(ops_matmul(x, w), 0, 1));
            expect_equal(ready, w);
            ok(ops_scope_end(test_context));
            release_all(x, w, bias, ready);
        }
    }
}

enum { SQUARE = 64 * 64 };
static const int64_t square[2] = {64, 64};

/* Two matrices whose products are rounded. */
static void fill_fractions(float values[2][SQUARE])
{
    for (int i = 0; i < 2 * SQUARE; i++) {
        values[i / SQUARE][i % SQUARE] = (float)(i * 37 % 101) / 7 - 6;
    }
}

/* Their product by arrays, with a prepared second one if `prepares`. */
static void product_of_arrays(uint32_t levels, int prepares, float values[2][SQUARE], float *c)
{
    const ops_gemm_prepare_options options = prepare_options_of(levels);
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, square, values[0]));
    ops_array *w = made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, square, values[1]));
    ops_array *ready = made(prepares ? ops_array_prepare(w, &options) : ops_array_copy(w));
    assert_int_equal(ready->operation == OPS_OPERATION_PREPARED, prepares);
    ops_array *y = made(ops_array_matmul_by_levels(x, ready, levels));
    ok(ops_array_read(y, SQUARE * sizeof(float), c));
    release_all(x, w, ready, y);
}

/* Arrays have the bits of ops_gemm with that many levels, which differ from each other. */
TEST(arrays_are_multiplied_by_the_levels_that_are_asked_for)
{
    static float values[2][SQUARE], c[3][SQUARE], again[SQUARE];
    ops_tensor t[3];
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    fill_fractions(values);
    for (int i = 0; i < 3; i++) {
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, square, &t[i]));
    }
    ok(ops_tensor_write(test_context, &t[0], values[0], sizeof values[0]));
    ok(ops_tensor_write(test_context, &t[1], values[1], sizeof values[1]));
    options.precision = HAL_GEMM_NORMWISE;
    for (uint32_t levels = 0; levels < 3; levels++) {
        options.levels = levels;
        ok(ops_gemm(test_context, &options, &t[0], &t[1], &t[2]));
        ok(ops_tensor_read(test_context, &t[2], sizeof c[0], c[levels]));
        assert_true(levels == 0 || memcmp(c[levels], c[levels - 1], sizeof c[0]) != 0);
        product_of_arrays(levels, 0, values, again);
        assert_memory_equal(again, c[levels], sizeof again);
        product_of_arrays(levels, 1, values, again);
        assert_true(levels == 0 || memcmp(again, c[levels - 1], sizeof again) != 0);
    }
    for (int i = 0; i < 3; i++) {
        ops_tensor_release(&t[i]);
    }
    ops_array *x = make_array(4, 4, 1);
    nothing(ops_array_matmul_by_levels(x, x, 3), "levels: expected at most 2, got 3");
    ops_array_release(x);
}

TEST(deferred_weights_are_computed_when_they_are_prepared)
{
    const ops_gemm_prepare_options options = prepare_options_of(1);
    ops_array *x = make_array(8, 16, 1), *w = make_array(16, 12, 2);
    ops_array *twice = made(ops_mul_scalar(w, 2));
    ops_array *ready = made(ops_array_prepare(twice, &options));
    ok(ops_scope_begin(test_context));
    expect_equal(ops_array_matmul_by_levels(x, ready, 1), ops_mul_scalar(ops_matmul(x, w), 2));
    ok(ops_scope_end(test_context));
    nothing(ops_array_prepare(NULL, NULL), "");
    release_all(x, w, twice, ready);
}

/* A graph keeps prepared weights that it does not get as inputs. */
TEST(graphs_keep_prepared_weights)
{
    const ops_gemm_prepare_options options = prepare_options_of(1);
    ops_array *x = make_array(8, 16, 1), *w = make_array(16, 12, 2), *result = NULL;
    ops_array *ready = made(ops_array_prepare(w, &options));
    ops_graph *graph = NULL;
    ok(ops_graph_begin(test_context));
    nothing(ops_array_prepare(w, NULL), "outside of the recording");
    ops_array *y = made(ops_array_matmul_by_levels(x, ready, 1));
    ops_array *const inputs[2] = {x, ready};
    ok(ops_graph_end(test_context, inputs, 1, &y, 1, &graph));
    ops_array_release(y);
    ok(ops_graph_launch(graph, inputs, 1, &result, 1));
    ops_array *want = made(ops_matmul(x, w));
    expect_equal(result, want);
    ops_graph_destroy(graph);
    ok(ops_graph_begin(test_context));
    y = made(ops_array_matmul_by_levels(x, ready, 1));
    assert_fails(ops_graph_end(test_context, inputs, 2, &y, 1, &graph), HAL_ERROR_INVALID_ARGUMENT,
                 "inputs[1]");
    release_all(x, w, ready, result, want, y);
}

/* ---- What is told ---- */

enum { LINE = 512 }; /* bytes that suffice */

static void describe(ops_context *context, product *p, char line[LINE])
{
    const ops_tensor *b = p->options.prepared ? NULL : &p->b.t;
    ok(ops_gemm_describe(context, &p->options, &p->a.t, b, &p->c.t, LINE, line));
    assert_true(strlen(line) < LINE - 1); /* nothing was cut */
}

static void expect_words(product *p, const char *words)
{
    char line[LINE];
    describe(test_context, p, line);
    if (!strstr(line, words)) {
        fail_msg("'%s' lacks '%s'", line, words);
    }
}

TEST(the_choice_is_told)
{
    problem q = {.m = 64, .n = 64, .k = 64};
    product p = problem_make(&q);
    expect_words(&p, "; a native kernel needs c stored by rows from an aligned offset");
    p.c.t.offset = 64;
    expect_words(&p, "64 x 64 x 64, strict, native: f32, a by rows, b by rows, both copied (32768 "
                     "bytes), ");
    p.options.impl = OPS_GEMM_PORTABLE;
    expect_words(&p, "strict, portable: tile ");
    expect_words(&p, "as options.impl says");
    test_tune(test_context)->gemm.split_depth = 16;
    expect_words(&p, "split-K in parts of 16");
    test_tune(test_context)->gemm.split_depth = 0;
    p.options.impl = OPS_GEMM_ANY;
    p.options.alpha = 0;
    expect_words(&p, "; k or alpha is 0");
    p.options.alpha = 1;
    p.options.precision = HAL_GEMM_NORMWISE;
    expect_words(&p, "normwise, no levels of strassen: not faster");
    expect_words(&p, "accurate, native: ");
    p.options.levels = 2;
    expect_words(&p, "normwise, 2 levels of strassen within the kernel; ");
    p.options.impl = OPS_GEMM_PORTABLE;
    expect_words(&p, "normwise, 2 levels of strassen, without prepared sums of b, at most ");
    p.options.impl = OPS_GEMM_ANY;
    ops_gemm_prepared *prepared = prepare(&p.b.t, HAL_GEMM_NORMWISE, 2, 0);
    p.options.prepared = prepared;
    expect_words(&p, "prepared sums of b");
    ops_gemm_prepared_destroy(prepared);
    release(&p);
}

/* The longest lines need more than 256 bytes. */
TEST(long_lines_have_their_end)
{
    problem q = {.m = 64, .n = 64, .k = 64, .layout_c = TURNED};
    product p = problem_make(&q);
    char line[LINE];
    p.options.precision = HAL_GEMM_NORMWISE;
    test_tune(test_context)->gemm.split_depth = 16;
    describe(test_context, &p, line);
    assert_true(strlen(line) > 256);
    assert_non_null(strstr(line, "as the transposed product; a native kernel needs c stored by "
                                 "rows from an aligned offset"));
    test_tune(test_context)->gemm.split_depth = 0;
    release(&p);
}

/* A transposed B stays so, unless many rows are announced. */
TEST(the_order_of_b_follows_the_rows)
{
    problem q = {.m = 64, .n = 64, .k = 64, .layout_b = TURNED};
    product p = problem_make(&q);
    ops_gemm_prepare_options options = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    p.c.t.offset = 64;
    for (int i = 0; i < 3; i++) {
        ops_gemm_prepared *prepared = NULL;
        options.rows = i * 32;
        ok(ops_gemm_prepare(test_context, &options, &p.b.t, &prepared));
        p.options.prepared = prepared;
        expect_words(&p, i < 2 ? "b by columns, a copied" : "b by rows, a copied");
        ops_gemm_prepared_destroy(prepared);
    }
    release(&p);
}

/* With less than the workspace of the chosen levels there are none. Nothing is computed. */
TEST(the_workspace_is_bounded)
{
    const int64_t shape[2] = {8192, 8192};
    ops_tensor row, c, wide, whole;
    char line[LINE];
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_NORMWISE;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, shape, &row));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &c));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &whole));
    ok(ops_tensor_broadcast(&row, 2, shape, &wide));
    for (int is_native = 0; is_native < 2; is_native++) {
        const ops_tensor *x = is_native ? &whole : &wide;
        options.impl = is_native ? OPS_GEMM_ANY : OPS_GEMM_PORTABLE;
        options.levels = is_native ? 0 : 1;
        options.max_workspace = 0;
        ok(ops_gemm_describe(test_context, &options, x, x, &c, sizeof line, line));
        const char *levels = strstr(line, is_native ? "of strassen within" : "1 level of strassen");
        assert_non_null(levels);
        const char *bytes = strstr(levels, is_native ? "b by rows, " : "at most ");
        assert_non_null(bytes);
        assert_int_equal(
            sscanf(bytes + strcspn(bytes, "0123456789"), "%" SCNu64, &options.max_workspace), 1);
        ok(ops_gemm_describe(test_context, &options, x, x, &c, sizeof line, line));
        assert_non_null(strstr(line, " of strassen"));
        assert_null(strstr(line, "no levels of strassen"));
        options.max_workspace = is_native ? 1 : options.max_workspace - 1;
        ok(ops_gemm_describe(test_context, &options, x, x, &c, sizeof line, line));
        assert_non_null(strstr(line, "no levels of strassen"));
    }
    ops_tensor_release(&row);
    ops_tensor_release(&whole);
    ops_tensor_release(&c);
}

/* The line is a function of shapes, types and the device: other work, memory and contexts change
 * nothing. */
TEST(the_choice_depends_on_nothing_else)
{
    const problem problems[] = {
        {.m = 64, .n = 64, .k = 64},
        {.m = 1, .n = 500, .k = 300},
        {.m = 300, .n = 3, .k = 64, .layout_a = EVERY_OTHER},
        {.type = HAL_TYPE_F64, .m = 70, .n = 33, .k = 90, .layout_b = TURNED},
        {.m = 96, .n = 8, .k = 0}};
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        for (int impl = OPS_GEMM_ANY; impl <= OPS_GEMM_PORTABLE; impl++) {
            problem q = problems[i];
            product p = problem_make(&q);
            char lines[3][LINE];
            ops_tensor ballast;
            ops_context *other;
            p.options.impl = (ops_gemm_impl)impl;
            describe(test_context, &p, lines[0]);
            ok(ops_tensor_create(test_context, HAL_TYPE_F32, 1, (int64_t[1]){1 << 24}, &ballast));
            ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
            describe(test_context, &p, lines[1]);
            ok(ops_context_create(test_queue, &other));
            test_set_device(other, test_context->info);
            describe(other, &p, lines[2]);
            ops_context_destroy(other);
            ops_tensor_release(&ballast);
            assert_string_equal(lines[0], lines[1]);
            assert_string_equal(lines[0], lines[2]);
            release(&p);
        }
    }
}

static void collect(void *user, hal_log_level level, const char *message)
{
    if (level == HAL_LOG_DEBUG && strncmp(message, "ops_gemm: ", 10) == 0) {
        snprintf(user, LINE, "%s", message + 10);
    }
}

/* Products that were described before are logged as well. */
TEST(repeated_products_are_logged)
{
    problem q = {.m = 64, .n = 64, .k = 64};
    product p = problem_make(&q);
    p.a.t.offset = p.b.t.offset = p.c.t.offset = 64;
    for (int i = 0; i < 3; i++) {
        char logged[LINE] = "";
        hal_log_set_callback(collect, logged, i ? HAL_LOG_DEBUG : HAL_LOG_ERROR);
        ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
        hal_log_set_callback(NULL, NULL, 0);
        assert_int_equal(strstr(logged, "native: ") != NULL, i > 0);
    }
    release(&p);
}

static void find_native(void *user, hal_log_level level, const char *message)
{
    if (level == HAL_LOG_DEBUG && strncmp(message, "ops_gemm: ", 10) == 0) {
        *(int *)user += strstr(message, "native: ") != NULL;
    }
}

/* The portable implementation is used for every part of a product by levels. */
TEST(levels_keep_to_the_implementation)
{
    problem q = {.m = 65, .n = 65, .k = 67, .impl = OPS_GEMM_PORTABLE};
    product p = problem_make(&q);
    int natives = 0;
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.levels = 2;
    hal_log_set_callback(find_native, &natives, HAL_LOG_DEBUG);
    ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
    hal_log_set_callback(NULL, NULL, 0);
    assert_int_equal(natives, 0);
    release(&p);
}

/* The log has the line of a product that is recorded, and describing records nothing. */
TEST(the_log_has_the_same_line)
{
    problem q = {.m = 64, .n = 61, .k = 67, .layout_b = EVERY_OTHER};
    for (uint32_t precision = 0; precision <= HAL_GEMM_NORMWISE; precision++) {
        product p = problem_make(&q);
        char told[LINE], logged[LINE] = "";
        p.options.precision = precision;
        p.options.impl = precision == HAL_GEMM_FAST ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        describe(test_context, &p, told);
        hal_log_set_callback(collect, logged, HAL_LOG_DEBUG);
        ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
        hal_log_set_callback(NULL, NULL, 0);
        assert_string_equal(told, logged);
        release(&p);
    }
}

TEST(a_line_is_cut_and_nothing_is_written)
{
    problem q = {.m = 8, .n = 8, .k = 8};
    product p = problem_make(&q);
    char line[LINE], short_line[16];
    memset(short_line, 'x', sizeof short_line);
    describe(test_context, &p, line);
    ok(ops_gemm_describe(test_context, NULL, &p.a.t, &p.b.t, &p.c.t, 8, short_line));
    assert_memory_equal(short_line, line, 7);
    assert_int_equal(short_line[7], 0);
    assert_int_equal(short_line[8], 'x');
    assert_fails(ops_gemm_describe(test_context, NULL, &p.a.t, &p.b.t, &p.c.t, 0, line),
                 HAL_ERROR_INVALID_ARGUMENT, "text: expected memory");
    assert_fails(ops_gemm_describe(test_context, NULL, &p.a.t, NULL, &p.c.t, LINE, line),
                 HAL_ERROR_INVALID_ARGUMENT, "b:");
    float c[64];
    for (int i = 0; i < 4; i++) { /* native in place, portable, levels, native with copies */
        p.options.impl = i % 3 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        p.a.t.offset = p.b.t.offset = i == 0 ? 64 : 5;
        p.c.t.offset = i % 3 ? 5 : 64;
        p.options.levels = i == 2;
        p.options.precision = i == 2 ? HAL_GEMM_NORMWISE : HAL_GEMM_STRICT;
        describe(test_context, &p, line);
        assert_int_equal(strstr(line, "native: f32") != NULL, i % 3 == 0);
        ok(ops_tensor_read(test_context, &p.c.t, sizeof c, c));
        for (int j = 0; j < 64; j++) {
            assert_float_equal(c[j], p.c.host[j + p.c.t.offset], 0);
        }
    }
    release(&p);
}

UNIT_MAIN(open_context, close_context)

/* Products of groups of rows: the kernel that finds groups in the device's memory, on every kind of
 * device, products for each group, and what is refused. */
#include "ops_gemm_fixture.h"

enum { MOST_GROUPS = 12 };

/* A grouped product; zeros mean F32, PLAIN, an alpha of 1. Small whole numbers are exact. */
typedef struct trial {
    hal_type type, type_c, type_offsets;
    int64_t groups, rows, n, k;
    int64_t offsets[MOST_GROUPS + 1];
    int layout_a, layout_b, layout_c;
    int64_t stride; /* of the offsets */
    double alpha, beta;
    bool has_epilogue, has_host, has_no_device;
    bool is_native; /* C begins where the plugin's kernel takes it */
} trial;

/* What a trial multiplies: inputs are a bias of each group, [groups, 1, n], and a residual. */
typedef struct operands {
    box a, b, c, offsets, inputs[2];
} operands;

static box make_offsets(const trial *t)
{
    const int64_t count[1] = {t->groups + 1}, stride[1] = {t->stride ? t->stride : 1};
    box b = box_make(t->type_offsets ? t->type_offsets : (hal_type)HAL_TYPE_I32, 1, count, stride,
                     -9, 9);
    for (int64_t i = 0; i <= t->groups; i++) {
        b.host[b.t.offset + i * stride[0]] = (double)t->offsets[i];
    }
    box_truncate(&b);
    return b;
}

static box make_small(hal_type type, int64_t batch, int64_t rows, int64_t columns, int layout)
{
    int64_t strides[3];
    const int64_t shape[3] = {batch, rows, columns};
    lay_out(layout, rows, columns, strides);
    box b = batch ? box_make(type, 3, shape, strides, -3.9, 3.9)
                  : box_make(type, 2, shape + 1, strides + 1, -3.9, 3.9);
    box_truncate(&b);
    return b;
}

/* Rows without a group are NAN in A, so that their reads would be seen, where nothing else is. */
static void hide_other_rows(const trial *t, box *a)
{
    if (!hal_type_is_float(a->t.type)) {
        return;
    }
    for (int64_t row = 0; row < t->rows; row++) {
        const bool has_group = row >= t->offsets[0] && row < t->offsets[t->groups];
        for (int64_t k = 0; k < t->k && !has_group; k++) {
            a->host[a->t.offset + row * a->t.stride[0] + k * a->t.stride[1]] = (double)NAN;
        }
    }
    box_upload(a);
}

static operands make_operands(const trial *t)
{
    const hal_type type = t->type ? t->type : (hal_type)HAL_TYPE_F32;
    const hal_type type_c = t->type_c ? t->type_c : type;
    operands o = {.a = make_small(type, 0, t->rows, t->k, t->layout_a),
                  .b = make_small(type, t->groups, t->k, t->n, t->layout_b),
                  .c = make_small(type_c, 0, t->rows, t->n, t->layout_c),
                  .offsets = make_offsets(t),
                  .inputs = {make_small(HAL_TYPE_F32, t->groups, 1, t->n, PLAIN),
                             make_small(HAL_TYPE_F32, 0, t->rows, t->n, PADDED)}};
    hide_other_rows(t, &o.a);
    box *const aligned[] = {&o.c, &o.inputs[0], &o.inputs[1]};
    for (int i = 0; i < 3 && t->is_native; i++) {
        aligned[i]->t.offset += 3; /* from 5 elements to 8 */
    }
    return o;
}

static void operands_free(operands *o)
{
    boxes_free(&o->a, &o->b, &o->c, &o->offsets, &o->inputs[0], &o->inputs[1]);
}

static double at(const box *b, int64_t row, int64_t column)
{
    return b->host[b->t.offset + row * b->t.stride[b->t.rank - 2] +
                   column * b->t.stride[b->t.rank - 1]];
}

static double expected_element(const trial *t, const operands *o, int64_t group, int64_t row,
                               int64_t column)
{
    double sum = 0;
    for (int64_t k = 0; k < t->k; k++) {
        const double b = o->b.host[o->b.t.offset + group * o->b.t.stride[0] + k * o->b.t.stride[1] +
                                   column * o->b.t.stride[2]];
        sum += at(&o->a, row, k) * b;
    }
    sum = sum * (t->alpha != 0 ? t->alpha : 1) +
          (t->beta != 0 ? t->beta * at(&o->c, row, column) : 0);
    if (t->has_epilogue) {
        sum += o->inputs[0].host[o->inputs[0].t.offset + group * t->n + column];
        sum =
            (sum > 0 ? sum : 0) + (double)row - 2 * (double)group + at(&o->inputs[1], row, column);
    }
    return sum;
}

static void expect_result(const trial *t, const operands *o)
{
    double *want = box_want(&o->c);
    for (int64_t group = 0; group < t->groups; group++) {
        for (int64_t row = t->offsets[group]; row < t->offsets[group + 1]; row++) {
            for (int64_t column = 0; column < t->n; column++) {
                const int64_t place =
                    o->c.t.offset + row * o->c.t.stride[0] + column * o->c.t.stride[1];
                want[place] = in_type(o->c.t.type, expected_element(t, o, group, row, column));
            }
        }
    }
    box_expect(&o->c, want, 0, 0);
    free(want);
}

static void try_grouped(const trial *t)
{
    operands o = make_operands(t);
    const ops_tensor inputs[2] = {o.inputs[0].t, o.inputs[1].t};
    ops_expression *places = t->has_epilogue ? make_epilogue() : NULL;
    const ops_gemm_options options = {.size = sizeof options,
                                      .alpha = t->alpha != 0 ? t->alpha : 1,
                                      .beta = t->beta,
                                      .epilogue = places,
                                      .inputs = inputs,
                                      .input_count = t->has_epilogue ? 2 : 0};
    const ops_tensor *offsets = t->has_no_device ? NULL : &o.offsets.t;
    const int64_t *host = t->has_host || t->has_no_device ? t->offsets : NULL;
    char text[512];
    ok(ops_gemm_grouped_describe(test_context, &options, &o.a.t, &o.b.t, offsets, host, &o.c.t,
                                 sizeof text, text));
    assert_true(!t->is_native || strstr(text, "one kernel, native"));
    for (int general = 0; general < 2; general++) {
        ops_context_set_kernels(test_context, general ? OPS_KERNELS_GENERAL : OPS_KERNELS_SPECIAL);
        box_upload(&o.c);
        ok(ops_gemm_grouped(test_context, &options, &o.a.t, &o.b.t, offsets, host, &o.c.t));
        expect_result(t, &o);
    }
    ops_context_set_kernels(test_context, OPS_KERNELS_AUTO);
    ops_expression_destroy(places);
    operands_free(&o);
}

/* Groups of no, one and many rows, with rows before the first and after the last. */
#define SOME_GROUPS .groups = 7, .rows = 131, .offsets = {2, 2, 3, 60, 60, 67, 129, 129}

static void groups_have_their_own_b(void **state)
{
    const trial trials[] = {
        {SOME_GROUPS, .n = 37, .k = 29},
        {SOME_GROUPS, .n = 64, .k = 64, .layout_b = TURNED},
        {SOME_GROUPS, .n = 5, .k = 300, .type_offsets = HAL_TYPE_I64},
        {SOME_GROUPS, .n = 1, .k = 17, .stride = 3},
        {SOME_GROUPS, .n = 200, .k = 3, .type_offsets = HAL_TYPE_I64, .stride = 2},
        {.groups = 1, .rows = 70, .offsets = {0, 70}, .n = 70, .k = 70},
        {.groups = 1, .rows = 9, .offsets = {9, 9}, .n = 70, .k = 70},
        {.groups = 3, .rows = 1, .offsets = {0, 0, 1, 1}, .n = 33, .k = 65},
        {.groups = 5, .rows = 260, .offsets = {0, 1, 2, 3, 259, 260}, .n = 12, .k = 40},
        {.groups = 12,
         .rows = 12,
         .offsets = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 12, 12, 12},
         .n = 96,
         .k = 32},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        try_grouped(&trials[i]);
    }
}

static void types_and_factors(void **state)
{
    const trial trials[] = {
        {SOME_GROUPS, .n = 20, .k = 24, .type = HAL_TYPE_F16, .type_c = HAL_TYPE_F32},
        {SOME_GROUPS, .n = 20, .k = 24, .type = HAL_TYPE_BF16, .type_c = HAL_TYPE_F32, .alpha = -2},
        {SOME_GROUPS, .n = 20, .k = 24, .type = HAL_TYPE_F64, .beta = 3},
        {SOME_GROUPS, .n = 20, .k = 24, .type = HAL_TYPE_I8, .type_c = HAL_TYPE_I32},
        {SOME_GROUPS, .n = 33, .k = 24, .beta = -1, .alpha = 2},
        {SOME_GROUPS, .n = 33, .k = 0, .beta = 2},
        {SOME_GROUPS, .n = 33, .k = 31, .has_epilogue = true},
        {SOME_GROUPS, .n = 32, .k = 64, .has_epilogue = true, .beta = 1, .layout_b = TURNED},
        {SOME_GROUPS, .n = 32, .k = 0, .has_epilogue = true},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        try_grouped(&trials[i]);
    }
}

static void layouts(void **state)
{
    for (int i = 1; i < LAYOUTS; i++) {
        const trial all[] = {{SOME_GROUPS, .n = 36, .k = 40, .layout_a = i},
                             {SOME_GROUPS, .n = 36, .k = 40, .layout_b = i},
                             {SOME_GROUPS, .n = 36, .k = 40, .layout_c = i, .beta = 1}};
        for (int j = 0; j < 3; j++) {
            try_grouped(&all[j]);
        }
    }
}

/* With offsets on the host there is a product for each group that has rows. */
static void the_host_knows_groups(void **state)
{
    const trial trials[] = {
        {SOME_GROUPS, .n = 37, .k = 29, .has_no_device = true},
        {SOME_GROUPS, .n = 37, .k = 29, .has_host = true, .beta = 2},
        {SOME_GROUPS, .n = 33, .k = 31, .has_epilogue = true, .has_host = true},
    };
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        try_grouped(&trials[i]);
    }
}

/* max(value + bias, 0), which reads no place. */
static ops_expression *make_bias(void)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("bias", &b));
    hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32), more = hal_ir_input(b, 5, HAL_TYPE_F32);
    hal_ir_output(b, 0, hal_ir_add(b, hal_ir_add(b, value, bias), more));
    ok(ops_expression_create(b, &e));
    return e;
}

/* Both ways give one result, where the places's inputs are those of a group or of a row. */
static void inputs_of_groups_on_both_ways(void **state)
{
    const trial t = {SOME_GROUPS, .n = 40, .k = 16};
    operands o = make_operands(&t);
    const ops_tensor inputs[2] = {o.inputs[0].t, o.inputs[1].t};
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.epilogue = make_bias();
    options.inputs = inputs;
    options.input_count = 2;
    double *want = NULL;
    for (int i = 0; i < 2; i++) {
        box_upload(&o.c);
        ok(ops_gemm_grouped(test_context, &options, &o.a.t, &o.b.t, i ? NULL : &o.offsets.t,
                            i ? t.offsets : NULL, &o.c.t));
        want = i ? want : box_want(&o.c);
        for (int64_t g = 0; g < t.groups && i == 0; g++) {
            for (int64_t e = t.offsets[g] * t.n; e < t.offsets[g + 1] * t.n; e++) {
                want[o.c.t.offset + e] =
                    expected_element(&t, &o, g, e / t.n, e % t.n) +
                    o.inputs[0].host[o.inputs[0].t.offset + g * t.n + e % t.n] +
                    at(&o.inputs[1], e / t.n, e % t.n);
            }
        }
        box_expect(&o.c, want, 0, 0);
    }
    free(want);
    ops_expression_destroy((ops_expression *)options.epilogue);
    operands_free(&o);
}

/* Offsets that do not ascend, or are outside of the matrix: nothing else is written. */
static void wrong_offsets_stay_inside(void **state)
{
    static const double wrong[][4] = {{-5, 40, 90, 200},
                                      {0, 1e9, 2e9, 7},
                                      {90, 40, 20, 0},
                                      {-2e9, -1, -1, 2147483647.0},
                                      {50, 50, 10, 64}};
    trial t = {.groups = 3, .rows = 64, .offsets = {0, 10, 20, 64}, .n = 40, .k = 24};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        t.type_offsets = i % 2 ? HAL_TYPE_I64 : HAL_TYPE_I32;
        operands o = make_operands(&t);
        for (int g = 0; g < 4; g++) {
            o.offsets.host[o.offsets.t.offset + g] = wrong[i][g];
        }
        box_upload(&o.offsets);
        ok(ops_gemm_grouped(test_context, NULL, &o.a.t, &o.b.t, &o.offsets.t, NULL, &o.c.t));
        double *want = box_want(&o.c);
        float *got = malloc((size_t)o.c.count * sizeof *got);
        ok(hal_queue_read(test_queue, o.c.t.buffer, 0, (uint64_t)o.c.count * sizeof *got, got));
        for (int64_t e = 0; e < o.c.count; e++) {
            const bool is_inside = e >= o.c.t.offset && e < o.c.t.offset + t.rows * t.n;
            assert_true(is_inside || (double)got[e] == want[e]);
        }
        free(got);
        free(want);
        operands_free(&o);
    }
}

/* A C of the offsets' type may share their buffer. */
static void offsets_share_a_buffer_with_c(void **state)
{
    trial t = {SOME_GROUPS, .n = 20, .k = 24, .type = HAL_TYPE_I8, .type_c = HAL_TYPE_I32};
    operands o = make_operands(&t);
    const int64_t after = o.c.t.offset + t.rows * t.n + 3;
    const int64_t count = o.c.count;
    assert_true(after + t.groups + 1 <= count);
    for (int64_t i = 0; i <= t.groups; i++) {
        o.c.host[after + i] = (double)t.offsets[i];
    }
    box_upload(&o.c);
    ops_tensor offsets = o.offsets.t;
    offsets.buffer = o.c.t.buffer;
    offsets.offset = after;
    ok(ops_gemm_grouped(test_context, NULL, &o.a.t, &o.b.t, &offsets, NULL, &o.c.t));
    expect_result(&t, &o);
    operands_free(&o);
}

/* Groups change between launches of a graph, which has one kernel. */
static void a_graph_reads_new_offsets(void **state)
{
    trial t = {SOME_GROUPS, .n = 20, .k = 24};
    static const int64_t other[] = {0, 50, 50, 51, 90, 91, 130, 131};
    operands o = make_operands(&t);
    hal_graph *graph;
    ok(ops_gemm_grouped(test_context, NULL, &o.a.t, &o.b.t, &o.offsets.t, NULL, &o.c.t));
    ok(hal_graph_begin(test_queue));
    ok(ops_gemm_grouped(test_context, NULL, &o.a.t, &o.b.t, &o.offsets.t, NULL, &o.c.t));
    ok(hal_graph_end(test_queue, NULL, 0, &graph));
    for (int64_t i = 0; i <= t.groups; i++) {
        t.offsets[i] = other[i];
        o.offsets.host[o.offsets.t.offset + i] = (double)other[i];
    }
    box_truncate(&o.a);
    for (int64_t i = 0; i < o.a.count; i++) {
        o.a.host[i] = isnan(o.a.host[i]) ? 1 : o.a.host[i];
    }
    box_upload(&o.a);
    box_upload(&o.offsets);
    ok(hal_graph_launch(test_queue, graph, NULL, 0));
    expect_result(&t, &o);
    hal_graph_destroy(graph);
    operands_free(&o);
}

/* C by one kernel of the plugin and by a product of the plugin for each group: the same bytes. */
static void expect_bits_of_products(hal_type type, int64_t n, bool is_turned, bool has_epilogue)
{
    static const int64_t at[] = {0, 40, 40, 41, 160, 161, 200};
    enum { GROUPS = 6, ROWS = 200, K = 272 };
    const int64_t a[2] = {ROWS, K}, b[3] = {GROUPS, is_turned ? n : K, is_turned ? K : n};
    const int64_t y[2] = {ROWS, n}, bias[3] = {GROUPS, 1, n}, count[1] = {GROUPS + 1};
    const uint64_t bytes = (uint64_t)(ROWS * n) * hal_type_size(type);
    ops_tensor all[6];
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    char text[512];
    uint8_t *got[2] = {malloc(bytes), malloc(bytes)};
    options.impl = OPS_GEMM_NATIVE;
    options.epilogue = has_epilogue ? make_bias() : NULL;
    options.inputs = &all[4];
    options.input_count = has_epilogue ? 2 : 0;
    ok(ops_tensor_create(test_context, type, 2, a, &all[0]));
    ok(ops_tensor_create(test_context, type, 3, b, &all[1]));
    ok(ops_tensor_create(test_context, type, 2, y, &all[2]));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I64, 1, count, at, &all[3]));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 3, bias, &all[4]));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, y, &all[5]));
    for (uint64_t i = 0; i < 6; i++) {
        if (i != 3) {
            ok(ops_random_uniform(test_context, (ops_random_key){i, 0}, -1, 1, &all[i]));
        }
    }
    ops_tensor turned = all[1];
    if (is_turned) {
        ok(ops_tensor_transpose(&all[1], 1, 2, &turned));
    }
    for (int i = 0; i < 2; i++) {
        const ops_tensor *offsets = i == 0 ? &all[3] : NULL;
        ok(ops_gemm_grouped_describe(test_context, &options, &all[0], &turned, offsets,
                                     i == 0 ? NULL : at, &all[2], sizeof text, text));
        assert_non_null(strstr(text, i == 0 ? "one kernel, native" : "a product for each"));
        ok(ops_fill(test_context, 0, &all[2]));
        ok(ops_gemm_grouped(test_context, &options, &all[0], &turned, offsets, i == 0 ? NULL : at,
                            &all[2]));
        ok(ops_tensor_read(test_context, &all[2], bytes, got[i]));
    }
    assert_memory_equal(got[0], got[1], bytes);
    for (int i = 0; i < 6; i++) {
        ops_tensor_release(&all[i]);
    }
    ops_expression_destroy((ops_expression *)options.epilogue);
    free(got[0]);
    free(got[1]);
}

static void the_plugin_has_the_bits_of_products(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F16};
    for (int i = 0; i < 12; i++) {
        expect_bits_of_products(types[i % 3], i < 6 ? 272 : 48, i % 2, i % 3 == 0);
    }
}

/* The plugin's kernel reads any layout of A and B, some from a copy, and strided offsets; an
 * epilogue sees rows and groups. */
static void the_plugin_takes_layouts(void **state)
{
    for (int i = 0; i < LAYOUTS * LAYOUTS; i++) {
        trial t = {SOME_GROUPS,
                   .n = 36,
                   .k = 40,
                   .layout_a = i % LAYOUTS,
                   .layout_b = i / LAYOUTS,
                   .stride = 1 + i % 2,
                   .has_epilogue = i % 3 == 0,
                   .type_offsets = i % 4 ? HAL_TYPE_I32 : HAL_TYPE_I64,
                   .beta = i % 5 == 0};
        t.layout_c = i % 2 ? PADDED : PLAIN;
        t.is_native = true;
        try_grouped(&t);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    const trial t = {SOME_GROUPS, .n = 20, .k = 24};
    operands o = make_operands(&t);
    const ops_tensor *a = &o.a.t, *b = &o.b.t, *c = &o.c.t, *at_device = &o.offsets.t;
    int64_t host[8];
    char text[512];
    ops_tensor other = *at_device;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    memcpy(host, t.offsets, sizeof host);
    invalid(ops_gemm_grouped(test_context, NULL, a, b, NULL, NULL, c), "got null for both");
    invalid(ops_gemm_grouped(test_context, NULL, NULL, b, at_device, NULL, c), "a");
    invalid(ops_gemm_grouped(test_context, NULL, a, a, at_device, NULL, c), "expected shapes");
    invalid(ops_gemm_grouped(test_context, NULL, a, b, at_device, NULL, a), "expected shapes");
    other.shape[0]--;
    invalid(ops_gemm_grouped(test_context, NULL, a, b, &other, NULL, c), "expected 8 of i32");
    other = *at_device;
    other.type = HAL_TYPE_U32;
    invalid(ops_gemm_grouped(test_context, NULL, a, b, &other, NULL, c), "expected 8 of i32");
    host[3] = 1;
    invalid(ops_gemm_grouped(test_context, NULL, a, b, NULL, host, c), "host_offsets[3]");
    host[3] = 60;
    host[7] = 132;
    invalid(ops_gemm_grouped(test_context, NULL, a, b, at_device, host, c), "host_offsets[7]");
    host[7] = 131;
    host[0] = -1;
    invalid(ops_gemm_grouped(test_context, NULL, a, b, NULL, host, c), "host_offsets[0]");
    options.levels = 1;
    options.precision = HAL_GEMM_NORMWISE;
    invalid(ops_gemm_grouped(test_context, &options, a, b, at_device, NULL, c), "options.levels");
    options = (ops_gemm_options)OPS_GEMM_OPTIONS_DEFAULT;
    options.impl = OPS_GEMM_NATIVE;
    refused(ops_gemm_grouped(test_context, &options, a, b, at_device, NULL, c),
            HAL_ERROR_UNSUPPORTED, "without host_offsets");
    options = (ops_gemm_options)OPS_GEMM_OPTIONS_DEFAULT;
    const ops_tensor inputs[2] = {o.inputs[0].t, o.inputs[1].t};
    ops_expression *places = make_epilogue();
    options.epilogue = places;
    options.inputs = inputs;
    options.input_count = 2;
    refused(ops_gemm_grouped(test_context, &options, a, b, NULL, t.offsets, c),
            HAL_ERROR_UNSUPPORTED, "neither row nor batch");
    invalid(ops_gemm_grouped_describe(test_context, NULL, a, b, at_device, NULL, c, 0, text),
            "text");
    ok(ops_gemm_grouped_describe(test_context, NULL, a, b, at_device, NULL, c, sizeof text, text));
    assert_non_null(strstr(text, "7 groups of 131 rows x 20 x 24: one kernel, portable:"));
    ok(ops_gemm_grouped_describe(test_context, NULL, a, b, at_device, t.offsets, c, sizeof text,
                                 text));
    assert_non_null(strstr(text, "a product for each group"));
    ops_expression_destroy(places);
    operands_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_have_their_own_b),
        cmocka_unit_test(types_and_factors),
        cmocka_unit_test(layouts),
        cmocka_unit_test(the_host_knows_groups),
        cmocka_unit_test(inputs_of_groups_on_both_ways),
        cmocka_unit_test(wrong_offsets_stay_inside),
        cmocka_unit_test(offsets_share_a_buffer_with_c),
        cmocka_unit_test(a_graph_reads_new_offsets),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(the_plugin_has_the_bits_of_products),
        cmocka_unit_test(the_plugin_takes_layouts),
    };
    return RUN_ON_ALL(tests) +
           cmocka_run_group_tests_name("arguments", others, open_context, close_context);
}

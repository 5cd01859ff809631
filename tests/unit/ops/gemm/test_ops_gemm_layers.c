/* Products that read sums of A and write those of C: dense layers by levels of Strassen's
 * algorithm, one after the other. Small whole numbers are exact with any algorithm. */
#include "gemm/normwise/normwise.h"
#include "ops_gemm_fixture.h"

/* Two layers: Y = relu(X V + bias + residual), Z = Y W. */
typedef struct layers {
    hal_type type;
    int64_t rows, first, middle, last;
    box x, v, w, bias, residual, y, z;
} layers;

static box small_matrix(hal_type type, int64_t rows, int64_t columns, int layout)
{
    box made = make_matrix(type, 1, rows, columns, layout);
    for (int64_t i = 0; i < made.count; i++) {
        made.host[i] = (double)(next_random() % 3) - 1;
    }
    box_upload(&made);
    return made;
}

static layers layers_make(hal_type type, const int64_t lengths[4], int layout)
{
    layers l = {.type = type,
                .rows = lengths[0],
                .first = lengths[1],
                .middle = lengths[2],
                .last = lengths[3]};
    l.x = small_matrix(type, l.rows, l.first, layout);
    l.v = small_matrix(type, l.first, l.middle, PLAIN);
    l.w = small_matrix(type, l.middle, l.last, PLAIN);
    l.bias = small_matrix(type, 1, l.middle, PLAIN);
    l.residual = small_matrix(type, l.rows, l.middle, layout);
    l.y = small_matrix(type, l.rows, l.middle, layout);
    l.z = small_matrix(type, l.rows, l.last, PADDED);
    return l;
}

static void layers_free(layers *l)
{
    box *const all[] = {&l->x, &l->v, &l->w, &l->bias, &l->residual, &l->y, &l->z};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        box_free(all[i]);
    }
}

/* relu(value + bias + residual) */
static ops_expression *epilogue_make(hal_type type)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("bias_residual_relu", &b));
    hal_ir_value value = hal_ir_input(b, 0, type);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    for (uint32_t i = 4; i < 6; i++) {
        value = hal_ir_add(b, value, hal_ir_input(b, i, type));
    }
    hal_ir_output(b, 0, ops_unary_value(b, OPS_RELU, value));
    ok(ops_expression_create(b, &e));
    return e;
}

static double *first_layer(const layers *l)
{
    double *want = malloc((size_t)(l->rows * l->middle) * sizeof *want);
    for (int64_t i = 0; i < l->rows * l->middle; i++) {
        const int64_t row = i / l->middle, column = i % l->middle;
        double sum = element(&l->bias, 0, 0, column) + element(&l->residual, 0, row, column);
        for (int64_t k = 0; k < l->first; k++) {
            sum += element(&l->x, 0, row, k) * element(&l->v, 0, k, column);
        }
        want[i] = sum > 0 ? sum : 0;
    }
    return want;
}

/* Compares a box whose elements are `values`; others of its buffer keep theirs. */
static void box_expect_matrix(box *b, const double *values)
{
    double *want = box_want(b);
    for (int64_t i = 0; i < ops_tensor_get_element_count(&b->t); i++) {
        want[place_of(&b->t, 2, b->t.shape, i)] = values[i];
    }
    box_expect(b, want, 0, 0);
    free(want);
}

/* The first layer by levels writes Y's sums, and Y where `keeps_y`; the second reads the sums. */
static void try_layers(layers *l, uint32_t levels, int keeps_y, int is_prepared)
{
    ops_expression *after = epilogue_make(l->type);
    const ops_tensor inputs[2] = {l->bias.t, l->residual.t};
    ops_gemm_prepared *prepared = NULL;
    ops_tensor sums;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ok(ops_gemm_sums_create(test_context, l->type, levels, l->rows, l->middle, &sums));
    options.precision = HAL_GEMM_NORMWISE;
    options.levels = levels;
    options.epilogue = after;
    options.inputs = inputs;
    options.input_count = 2;
    options.c_sums = &sums;
    ok(ops_gemm(test_context, &options, &l->x.t, &l->v.t, keeps_y ? &l->y.t : NULL));
    ops_gemm_options second = OPS_GEMM_OPTIONS_DEFAULT;
    second.precision = HAL_GEMM_NORMWISE;
    second.levels = levels;
    second.a_sums = &sums;
    if (is_prepared) {
        ops_gemm_prepare_options how = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
        how.levels = levels;
        ok(ops_gemm_prepare(test_context, &how, &l->w.t, &prepared));
        assert_int_equal(ops_gemm_prepared_get_levels(prepared), levels);
        second.prepared = prepared;
    }
    ok(ops_gemm(test_context, &second, NULL, prepared ? NULL : &l->w.t, &l->z.t));
    double *y = first_layer(l), *z = calloc((size_t)(l->rows * l->last), sizeof *z);
    for (int64_t i = 0; i < l->rows * l->last; i++) {
        for (int64_t k = 0; k < l->middle; k++) {
            z[i] += y[i / l->last * l->middle + k] * element(&l->w, 0, k, i % l->last);
        }
    }
    box_expect_matrix(&l->z, z);
    if (keeps_y) {
        box_expect_matrix(&l->y, y);
    }
    free(y);
    free(z);
    ops_gemm_prepared_destroy(prepared);
    ops_tensor_release(&sums);
    ops_expression_destroy(after);
}

static void a_layer_makes_the_sums_of_the_next(void **state)
{
    static const int64_t lengths[][4] = {
        {4, 4, 4, 4}, {8, 12, 16, 20}, {64, 48, 32, 80}, {16, 23, 24, 8}, {12, 64, 260, 36}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (uint32_t levels = 1; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
            layers l = layers_make(i % 2 ? HAL_TYPE_F64 : HAL_TYPE_F32, lengths[i], PLAIN);
            try_layers(&l, levels, 0, 0);
            try_layers(&l, levels, 1, 1);
            layers_free(&l);
        }
    }
}

static void layers_of_every_layout(void **state)
{
    static const int64_t lengths[4] = {20, 24, 28, 16};
    for (int layout = 0; layout < LAYOUTS; layout++) {
        for (uint32_t levels = 1; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
            layers l = layers_make(HAL_TYPE_F32, lengths, layout);
            try_layers(&l, levels, 1, layout % 2);
            layers_free(&l);
        }
    }
}

/* The result of ops_gemm with these options, which is to mention `words`. */
static void expect_refusal(const layers *l, const ops_gemm_options *options, const ops_tensor *a,
                           const ops_tensor *c, const char *words)
{
    const hal_status status = ops_gemm(test_context, options, a, &l->w.t, c);
    assert_true(status == HAL_ERROR_INVALID_ARGUMENT || status == HAL_ERROR_UNSUPPORTED);
    if (!strstr(hal_status_message(), words)) {
        fail_msg("'%s' lacks '%s'", hal_status_message(), words);
    }
}

static void sums_that_do_not_fit_are_refused(void **state)
{
    static const int64_t lengths[4] = {16, 16, 16, 16}, odd[4] = {16, 16, 16, 18};
    layers l = layers_make(HAL_TYPE_F32, lengths, PLAIN);
    layers uneven = layers_make(HAL_TYPE_F32, odd, PLAIN);
    ops_tensor sums, other;
    ok(ops_gemm_sums_create(test_context, HAL_TYPE_F32, 1, 16, 16, &sums));
    ok(ops_gemm_sums_create(test_context, HAL_TYPE_F32, 2, 16, 16, &other));
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.a_sums = &sums;
    options.levels = 1;
    expect_refusal(&l, &options, NULL, &l.z.t, "expected HAL_GEMM_NORMWISE with levels");
    options.precision = HAL_GEMM_NORMWISE;
    expect_refusal(&l, &options, &l.x.t, &l.z.t, "a or its sums");
    expect_refusal(&l, &options, NULL, NULL, "c or its sums");
    options.a_sums = &other;
    expect_refusal(&l, &options, NULL, &l.z.t, "a, b, c: expected shapes");
    options.a_sums = &sums;
    options.levels = 2;
    expect_refusal(&l, &options, NULL, &l.z.t, "a, b, c: expected shapes");
    options.levels = 1;
    options.a_sums = &sums;
    options.c_sums = &sums;
    expect_refusal(&l, &options, NULL, &l.z.t, "options.c_sums: expected memory");
    options.c_sums = NULL;
    options.c_sums = &other;
    expect_refusal(&l, &options, NULL, &l.z.t, "options.c_sums: expected f32[7, 8, 8]");
    options.c_sums = NULL;
    options.levels = 2;
    options.a_sums = &other;
    expect_refusal(&uneven, &options, NULL, &uneven.z.t, "b: expected a multiple");
    options.beta = 1;
    options.c_sums = &sums;
    expect_refusal(&l, &options, NULL, NULL, "a beta of 0");
    assert_int_equal(ops_gemm_sums_create(test_context, HAL_TYPE_F32, 2, 16, 18, &sums),
                     HAL_ERROR_INVALID_ARGUMENT);
    ops_tensor_release(&sums);
    ops_tensor_release(&other);
    layers_free(&l);
    layers_free(&uneven);
}

static void the_choice_is_told(void **state)
{
    uint32_t levels = 3;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    ok(ops_gemm_choose_levels(test_context, &options, HAL_TYPE_F32, 64, 64, 64, &levels));
    assert_int_equal(levels, 0);
    options.precision = HAL_GEMM_NORMWISE;
    options.levels = 2;
    ok(ops_gemm_choose_levels(test_context, &options, HAL_TYPE_F32, 64, 64, 64, &levels));
    assert_int_equal(levels, 2);
    ok(ops_gemm_choose_levels(test_context, &options, HAL_TYPE_BF16, 64, 64, 64, &levels));
    assert_int_equal(levels, 0);
    options.levels = 3;
    assert_int_equal(
        ops_gemm_choose_levels(test_context, &options, HAL_TYPE_F32, 64, 64, 64, &levels),
        HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(ops_gemm_choose_levels(test_context, NULL, HAL_TYPE_F32, 64, 64, 64, &levels),
                     HAL_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_layer_makes_the_sums_of_the_next),
                                       cmocka_unit_test(layers_of_every_layout),
                                       cmocka_unit_test(sums_that_do_not_fit_are_refused),
                                       cmocka_unit_test(the_choice_is_told)};
    return RUN_ON_ALL(tests);
}

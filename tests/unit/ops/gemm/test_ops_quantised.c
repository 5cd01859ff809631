/* Products of quantised weights: the kernel that reads them packed on every kind of device, what it
 * takes, and what is refused. The reference is the weights that ops_dequantise writes, which
 * hal-conformance compares with the definitions of the formats. */
#include "ops_fixture.h"

/* Weights of n x k or k x n, made of random bytes. */
typedef struct weights {
    ops_tensor values, scales, zeros;
    ops_quantised given;
    int64_t n, k;
    float *plain; /* [k, n] */
} weights;

static uint32_t bits_of(ops_quantised_format format)
{
    return format == OPS_QUANTISED_I4 || format == OPS_QUANTISED_U4 || format == OPS_QUANTISED_E2M1
               ? 4
               : 8;
}

static ops_tensor turned(const ops_tensor *t, bool is_turned)
{
    ops_tensor view = *t;
    if (is_turned) {
        ok(ops_tensor_transpose(t, 0, 1, &view));
    }
    return view;
}

static ops_tensor make_bytes(hal_type type, int64_t rows, int64_t columns)
{
    uint8_t *bytes = malloc((size_t)(rows * columns));
    const int64_t shape[2] = {rows, columns};
    ops_tensor made;
    for (int64_t i = 0; i < rows * columns; i++) {
        bytes[i] = (uint8_t)(next_random() % 120); /* numbers in all formats */
    }
    ok(ops_tensor_from_host(test_context, type, 2, shape, bytes, &made));
    free(bytes);
    return made;
}

static ops_tensor make_floats(int64_t rows, int64_t columns, double low, double high)
{
    float *numbers = malloc((size_t)(rows * columns) * sizeof *numbers);
    const int64_t shape[2] = {rows, columns};
    ops_tensor made;
    for (int64_t i = 0; i < rows * columns; i++) {
        numbers[i] = (float)between(low, high);
    }
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 2, shape, numbers, &made));
    free(numbers);
    return made;
}

static weights make_weights(ops_quantised_format format, int64_t n, int64_t k, int64_t block,
                            bool by_rows)
{
    weights w = {.n = n, .k = k, .given = OPS_QUANTISED_DEFAULT};
    const int64_t rows = k * bits_of(format) / 8, shape[2] = {k, n};
    const hal_type type = format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8;
    w.values = make_bytes(type, by_rows ? rows : n, by_rows ? n : rows);
    w.scales = make_floats(block ? k / block : 1, n, 0.5, 2);
    w.given.format = format;
    w.given.values = turned(&w.values, !by_rows);
    w.given.scales = w.scales;
    w.plain = malloc((size_t)(n * k) * sizeof *w.plain);
    ops_tensor plain;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &plain));
    ok(ops_dequantise(test_context, &w.given, &plain));
    ok(ops_tensor_read(test_context, &plain, (uint64_t)(n * k) * sizeof *w.plain, w.plain));
    ops_tensor_release(&plain);
    return w;
}

static void weights_free(weights *w)
{
    ops_tensor_release(&w->values);
    ops_tensor_release(&w->scales);
    free(w->plain);
}

/* Compares C with the product of A and the plain weights, and the bias of each column. */
static void compare(const weights *w, const ops_tensor *a, const ops_tensor *c,
                    const ops_tensor *bias, const char *text)
{
    const int64_t m = a->shape[0];
    const size_t of_a = (size_t)(m * w->k), of_c = (size_t)(m * w->n);
    float *a_host = malloc((of_a + of_c + (size_t)w->n) * sizeof(float));
    float *got = a_host + of_a, *added = got + of_c;
    memset(added, 0, (size_t)w->n * sizeof(float));
    ok(ops_tensor_read(test_context, a, of_a * sizeof(float), a_host));
    ok(ops_tensor_read(test_context, c, of_c * sizeof(float), got));
    if (bias) {
        ok(ops_tensor_read(test_context, bias, (uint64_t)w->n * sizeof(float), added));
    }
    for (int64_t i = 0; i < m * w->n; i++) {
        double sum = (double)added[i % w->n], size = fabs(sum);
        for (int64_t k = 0; k < w->k; k++) {
            const double term =
                (double)a_host[i / w->n * w->k + k] * (double)w->plain[k * w->n + i % w->n];
            sum += term;
            size += fabs(term);
        }
        if (fabs((double)got[i] - sum) > (double)(w->k + 8) * 0x1p-24 * size) {
            fail_msg("%s: element %d is %g instead of %g", text, (int)i, (double)got[i], sum);
        }
    }
    free(a_host);
}

/* Multiplies and compares; `words`: what describes the product. Returns the commands. */
static uint64_t try_with(weights *w, int64_t m, const ops_gemm_options *options, const char *words)
{
    char text[512];
    const int64_t shape[2] = {m, w->n};
    ops_tensor a = make_floats(m, w->k, -1, 1), c;
    hal_graph *graph;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &c));
    ok(ops_gemm_quantised_describe(test_context, options, &a, &w->given, &c, sizeof text, text));
    if (!strstr(text, words)) {
        fail_msg("'%s' lacks '%s'", text, words);
    }
    ok(hal_graph_begin(test_queue));
    ok(ops_gemm_quantised(test_context, options, &a, &w->given, &c));
    ok(hal_graph_end(test_queue, NULL, 0, &graph));
    const uint64_t commands = hal_graph_get_command_count(graph);
    ok(hal_graph_launch(test_queue, graph, NULL, 0));
    hal_graph_destroy(graph);
    compare(w, &a, &c, options->input_count ? options->inputs : NULL, text);
    ops_tensor_release(&a);
    ops_tensor_release(&c);
    return commands;
}

/* By ops' own kernels. A product of packed weights is one command. */
static void try_product(weights *w, int64_t m, const char *words)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.impl = OPS_GEMM_PORTABLE;
    const uint64_t commands = try_with(w, m, &options, words);
    if (strstr(words, "along")) {
        assert_int_equal(commands, 1);
    }
}

static void formats_and_layouts(void **state)
{
    static const int64_t rows[] = {1, 2, 3, 8};
    for (int i = 0; i < 4 * 7; i++) {
        const ops_quantised_format format = (ops_quantised_format)(1 + i % 7);
        const bool by_rows = i / 7 % 2;
        weights w = make_weights(format, 76, 320, i / 7 < 2 ? 64 : 0, by_rows);
        try_product(&w, rows[i % 4], by_rows ? "packed, along rows by words" : "along k by words");
        weights_free(&w);
    }
}

static void odd_lengths_are_read_by_bytes(void **state)
{
    for (int i = 0; i < 2 * 7; i++) {
        const bool by_rows = i % 2;
        weights w = make_weights((ops_quantised_format)(1 + i / 2), 13, 34, 0, by_rows);
        try_product(&w, 2, by_rows ? "along rows by bytes" : "along k by bytes");
        weights_free(&w);
    }
    weights one = make_weights(OPS_QUANTISED_I4, 1, 256, 32, false);
    try_product(&one, 1, "along k by words");
    weights_free(&one);
}

static void others_are_copied(void **state)
{
    weights w = make_weights(OPS_QUANTISED_U4, 20, 96, 24, false);
    try_product(&w, 1, "copied as f32");
    weights_free(&w);
    w = make_weights(OPS_QUANTISED_I8, 20, 96, 32, true);
    try_product(&w, 100, "copied as f32");
    weights_free(&w);
}

static ops_expression *make_bias(uint32_t last)
{
    hal_ir_builder *b;
    ops_expression *expression;
    ok(hal_ir_builder_create_fragment("bias", &b));
    hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_value place = hal_ir_input(b, i, HAL_TYPE_U32);
        if (i == last) { /* nothing is added */
            place = hal_ir_cast(b, HAL_TYPE_F32, hal_ir_min(b, place, hal_ir_u32(b, 0)));
            x = hal_ir_add(b, x, place);
        }
    }
    hal_ir_output(b, 0, hal_ir_add(b, x, hal_ir_input(b, 4, HAL_TYPE_F32)));
    ok(ops_expression_create(b, &expression));
    return expression;
}

/* Columns are multiplied in pieces, with their scales, zeros and bias, unless there are many rows
 * or the epilogue reads the column. */
static void rows_take_pieces(void **state)
{
    enum { FORMATS = 7, PIECE = 64 };
    static const int64_t rows[] = {1, 9, 16, 33, 64, 96, 128};
    ops_gemm_tuning *tuning = &test_tune(test_context)->gemm;
    tuning->quantised_rows = 0;
    tuning->quantised_piece_rows = 128;
    for (int i = 0; i < 2 * FORMATS; i++) {
        const bool by_rows = i % 2;
        weights w = make_weights((ops_quantised_format)(1 + i % FORMATS), by_rows ? 300 : 150, 96,
                                 i % 3 ? 24 : 0, by_rows);
        ops_tensor bias = make_floats(1, w.n, -1, 1);
        ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
        ops_expression *adds = make_bias(1), *reads_column = make_bias(2);
        options.inputs = &bias;
        options.input_count = 1;
        options.epilogue = adds;
        tuning->quantised_piece_bytes = 96 * 4 * PIECE;
        const uint64_t in_pieces = try_with(&w, rows[i % FORMATS], &options, ", in pieces");
        options.epilogue = reads_column;
        const uint64_t at_once = try_with(&w, rows[i % FORMATS], &options, "copied as f32");
        assert_true(in_pieces > at_once);
        options.epilogue = adds;
        assert_true(try_with(&w, 129, &options, "copied as f32") < in_pieces);
        tuning->quantised_piece_bytes = 0;
        try_with(&w, rows[i % FORMATS], &options, "copied as f32");
        ops_expression_destroy(adds);
        ops_expression_destroy(reads_column);
        ops_tensor_release(&bias);
        weights_free(&w);
    }
}

static void wrong_arguments_are_refused(void **state)
{
    weights w = make_weights(OPS_QUANTISED_U4, 20, 96, 32, false);
    ops_tensor a = make_floats(1, 96, -1, 1), c = make_floats(1, 20, 0, 1);
    ops_quantised q = w.given;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    char text[8];
    invalid(ops_gemm_quantised(test_context, NULL, &a, NULL, &c), "b: expected weights, got null");
    q.size = 0;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.size");
    q = w.given;
    q.format = (ops_quantised_format)0;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.format");
    q.format = OPS_QUANTISED_I8;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.values: expected i8");
    q.format = OPS_QUANTISED_U8; /* k is 48 then */
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "expected shapes");
    q = w.given;
    q.scales.shape[1] = 7;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "scales of [blocks of k, n]");
    q = w.given;
    q.scales.type = HAL_TYPE_I32;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.scales: expected f32");
    q = w.given;
    q.zero = 0.5;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.zero: expected a whole number");
    q.zero = NAN;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.zero");
    q.format = OPS_QUANTISED_E2M1;
    q.zero = 1;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.zero: expected 0 for floats");
    q = w.given;
    q.zeros = &a;
    invalid(ops_gemm_quantised(test_context, NULL, &a, &q, &c), "b.zeros: expected the shape");
    options.levels = 1;
    options.precision = HAL_GEMM_NORMWISE;
    invalid(ops_gemm_quantised(test_context, &options, &a, &w.given, &c), "options.levels");
    invalid(ops_gemm_quantised(test_context, NULL, &a, &w.given, &a), "expected shapes");
    invalid(ops_dequantise(test_context, &w.given, &c), "expected 96 rows and 20 columns");
    invalid(ops_gemm_quantised_describe(test_context, NULL, &a, &w.given, &c, 0, text), "text");
    ok(ops_gemm_quantised_describe(test_context, NULL, &a, &w.given, &c, sizeof text, text));
    assert_int_equal(strlen(text), 7); /* cut */
    ops_tensor_release(&a);
    ops_tensor_release(&c);
    weights_free(&w);
}

/* The other kind of device without denormals: floats are decoded without them. */
static int open_flushing_context(void **state)
{
    static hal_device_info flushing;
    const int failed = open_other_context(state);
    if (!failed) {
        flushing = *test_context->info;
        flushing.exactness &= ~(uint32_t)HAL_EXACT_DENORMALS;
        test_set_device(test_context, &flushing);
    }
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_layouts),
        cmocka_unit_test(odd_lengths_are_read_by_bytes),
        cmocka_unit_test(others_are_copied),
        cmocka_unit_test(rows_take_pieces),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return RUN_ON_ALL(tests) +
           cmocka_run_group_tests_name("flushing", tests, open_flushing_context, close_context) +
           cmocka_run_group_tests_name("arguments", others, open_context, close_context);
}

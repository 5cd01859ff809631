/* Products of quantised weights by matrix units, run by the reference interpreter of the mock
 * plugin, whose device claims to have them. The reference is the weights that ops_dequantise
 * writes, which hal-conformance compares with the definitions of the formats. */
#include "mock_fixture.h"
#include "ops_fixture.h"

typedef struct trial {
    ops_quantised_format format;
    hal_type type; /* of A */
    int64_t m, n, k, block, batch;
    int64_t start, beyond; /* elements before A, and in memory after each of its rows */
    bool turned_a;
    double zero, alpha, beta;
} trial;

static mock_state *mock;

static int open_device(void **state, uint32_t units, uint32_t shared_bytes)
{
    mock_begin(state);
    mock = mock_find("mock");
    hal_device_info *info = &mock->infos[0]; /* hal reads it once in a process */
    info->subgroup_width = 32;
    info->shared_bytes = 227 << 10;
    info->max_group_items = info->max_group_size[0] = 1024;
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->features |= HAL_FEATURE_ASYNC_COPY;
    info->matrix_types = HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16);
    mock->problem[0] = 0;
    if (hal_device_open("mock:0", &test_device) || hal_queue_create(test_device, &test_queue) ||
        ops_context_create(test_queue, &test_context)) {
        return 1;
    }
    static hal_device_info planned;
    planned = *test_context->info;
    planned.compute_units = units;
    if (planned.shared_bytes > shared_bytes) { /* HAL_SANITIZE takes a part */
        planned.shared_bytes = shared_bytes;
    }
    test_set_device(test_context, &planned);
    return 0;
}

static int open_large(void **state)
{
    return open_device(state, 2, 227 << 10);
}

/* With as much shared memory as Vulkan and OpenCL have. */
static int open_small(void **state)
{
    return open_device(state, 8, 48 << 10);
}

static uint32_t bits_of(ops_quantised_format format)
{
    return format == OPS_QUANTISED_I4 || format == OPS_QUANTISED_U4 || format == OPS_QUANTISED_E2M1
               ? 4
               : 8;
}

/* Weights of n x k for each of the batch, and what they are. */
typedef struct weights {
    ops_tensor values, scales;
    ops_quantised given;
    float *plain; /* [batch, k, n] */
} weights;

static void make_weights(const trial *t, weights *w)
{
    const int64_t row = t->k * bits_of(t->format) / 8, blocks = t->block ? t->k / t->block : 1;
    const int64_t stored[3] = {t->batch, t->n, row}, of_blocks[3] = {t->batch, t->n, blocks};
    const int64_t shape[3] = {t->batch, t->k, t->n}, count = t->batch * t->n * row;
    uint8_t *bytes = malloc((size_t)count);
    float *scales = malloc((size_t)(t->batch * t->n * blocks) * sizeof *scales);
    for (int64_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(next_random() % 120 | (next_random() % 2) << 7);
    }
    for (int64_t i = 0; i < t->batch * t->n * blocks; i++) {
        scales[i] = (float)between(0.5, 2);
    }
    ok(ops_tensor_from_host(test_context, t->format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8,
                            3, stored, bytes, &w->values));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 3, of_blocks, scales, &w->scales));
    free(bytes);
    free(scales);
    w->given = (ops_quantised)OPS_QUANTISED_DEFAULT;
    w->given.format = t->format;
    w->given.zero = t->zero;
    ok(ops_tensor_transpose(&w->values, 1, 2, &w->given.values));
    ok(ops_tensor_transpose(&w->scales, 1, 2, &w->given.scales));
    ops_tensor plain;
    const uint64_t size = (uint64_t)(t->batch * t->k * t->n) * sizeof *w->plain;
    w->plain = malloc(size);
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 3, shape, &plain));
    ok(ops_dequantise(test_context, &w->given, &plain));
    ok(ops_tensor_read(test_context, &plain, size, w->plain));
    ops_tensor_release(&plain);
}

static box make_a(const trial *t)
{
    const int64_t m = t->m + (t->turned_a ? t->beyond : 0),
                  k = t->k + (t->turned_a ? 0 : t->beyond);
    const int64_t shape[3] = {t->batch, m, k};
    const int64_t strides[3] = {m * k, t->turned_a ? 1 : k, t->turned_a ? m : 1};
    box a = box_make(t->type, 3, shape, strides, -1, 1);
    a.t.offset += 3 + t->start; /* 3: to a multiple of 8 */
    a.t.shape[1] = t->m;
    a.t.shape[2] = t->k;
    return a;
}

static void check_elements(const trial *t, const weights *w, const box *a, const box *c,
                           const char *text)
{
    float *got = malloc((size_t)c->count * sizeof *got);
    const double of_weight = strstr(text, "copied") ? 0x1p-9 : 0; /* rounded to the type of A */
    ok(hal_queue_read(test_queue, c->t.buffer, 0, (uint64_t)c->count * sizeof *got, got));
    for (int64_t i = 0; i < t->batch * t->m * t->n; i++) {
        const int64_t batch = i / (t->m * t->n), row = i / t->n % t->m, column = i % t->n;
        const int64_t place = c->t.offset + i;
        double sum = t->beta != 0 ? t->beta * c->host[place] : 0, size = fabs(sum);
        for (int64_t k = 0; k < t->k; k++) {
            const double term = t->alpha *
                                a->host[a->t.offset + batch * a->t.stride[0] +
                                        row * a->t.stride[1] + k * a->t.stride[2]] *
                                (double)w->plain[(batch * t->k + k) * t->n + column];
            sum += term;
            size += fabs(term);
        }
        if (!(fabs((double)got[place] - sum) <=
              ((double)(t->k + 8) * 0x1p-24 + of_weight) * size)) {
            fail_msg("%s: element %d is %g instead of %g", text, (int)i, (double)got[place], sum);
        }
    }
    for (int64_t i = 0; i < c->t.offset; i++) {
        assert_true((double)got[i] == c->host[i]);
    }
    free(got);
}

/* Multiplies and compares; `words`: what describes the product. */
static void try_product(trial t, const char *words)
{
    char text[512];
    weights w;
    t.batch = t.batch ? t.batch : 1;
    t.alpha = t.alpha != 0 ? t.alpha : 1;
    make_weights(&t, &w);
    const int64_t shape[3] = {t.batch, t.m, t.n}, strides[3] = {t.m * t.n, t.n, 1};
    box a = make_a(&t), c = box_make(HAL_TYPE_F32, 3, shape, strides, -1, 1);
    const ops_gemm_options options = {
        .size = sizeof options, .alpha = t.alpha, .beta = t.beta, .precision = HAL_GEMM_ACCURATE};
    ok(ops_gemm_quantised_describe(test_context, &options, &a.t, &w.given, &c.t, sizeof text,
                                   text));
    if (!strstr(text, words)) {
        fail_msg("'%s' lacks '%s'", text, words);
    }
    ok(ops_gemm_quantised(test_context, &options, &a.t, &w.given, &c.t));
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    if (mock->problem[0]) {
        fail_msg("%s: %s", text, mock->problem);
    }
    check_elements(&t, &w, &a, &c, text);
    box_free(&a);
    box_free(&c);
    ops_tensor_release(&w.values);
    ops_tensor_release(&w.scales);
    free(w.plain);
}

static void formats_and_blocks(void **state)
{
    static const int64_t rows[] = {1, 2, 3, 8, 9, 17, 20, 32}, blocks[] = {0, 32, 64, 128, 256};
    test_context->quantised = (ops_quantised_way){.units = 1};
    for (int i = 0; i < 3 * 8; i++) {
        const trial t = {.format = (ops_quantised_format)(1 + i % 7),
                         .type = i % 2 ? HAL_TYPE_F16 : HAL_TYPE_BF16,
                         .m = rows[i % 8],
                         .n = i % 3 ? 64 : 77,
                         .k = 512,
                         .block = blocks[i % 5],
                         .zero = i < 4 ? 8 : 0};
        try_product(t, "for matrix units");
    }
    test_context->quantised = (ops_quantised_way){.units = 0};
}

/* Up to 64 rows where tiles are given and shared memory has room for them. */
static void many_rows(void **state)
{
    trial t = {.format = OPS_QUANTISED_I4, .type = HAL_TYPE_F16, .m = 33, .n = 40, .k = 512};
    const bool has_little = test_context->info->shared_bytes < 96 << 10;
    test_context->quantised = (ops_quantised_way){.units = 1, .tiles = 1, .warps_n = 2, .warps = 4};
    try_product(t, has_little ? "copied" : "for matrix units");
    t.m = 64;
    t.block = 64;
    try_product(t, has_little ? "copied" : "for matrix units");
    test_context->quantised = (ops_quantised_way){.units = 0};
}

/* The faster kernel of one row, by format: lanes decode integers at once, floats of 8 bits not. */
static void choice(void **state)
{
    trial t = {.format = OPS_QUANTISED_I8, .type = HAL_TYPE_BF16, .m = 1, .n = 24, .k = 256};
    try_product(t, "packed, along k");
    t.format = OPS_QUANTISED_U4;
    try_product(t, "packed, along k");
    t.format = OPS_QUANTISED_E4M3;
    try_product(t, "for matrix units");
    t.format = OPS_QUANTISED_I8;
    t.m = 4;
    try_product(t, "for matrix units");
    t.m = 33;
    try_product(t, "copied");
}

/* Rows of A that begin inside of words, are longer than k, or are columns; lengths that are no
 * multiples of tiles and turns; one column. */
static void operands(void **state)
{
    const trial plain = {
        .format = OPS_QUANTISED_U4, .type = HAL_TYPE_BF16, .m = 5, .n = 72, .k = 264};
    trial t = plain;
    t.start = 1;
    try_product(t, "for matrix units");
    t = plain;
    t.beyond = 3;
    try_product(t, "for matrix units");
    t.beyond = 8;
    try_product(t, "for matrix units");
    t.turned_a = true;
    try_product(t, "for matrix units");
    t = plain;
    t.format = OPS_QUANTISED_I8;
    t.k = 1000;
    t.m = 11;
    t.n = 1;
    try_product(t, "for matrix units");
    t.n = 129;
    t.k = 8;
    try_product(t, "for matrix units");
}

static void batches_and_factors(void **state)
{
    trial t = {.format = OPS_QUANTISED_E4M3,
               .type = HAL_TYPE_F16,
               .m = 3,
               .n = 40,
               .k = 320,
               .block = 64,
               .batch = 3,
               .alpha = -0.5,
               .beta = 2};
    try_product(t, "for matrix units");
    t.format = OPS_QUANTISED_I4;
    t.block = 0;
    t.beta = 0;
    try_product(t, "for matrix units");
}

/* The kernel without matrix units, or a copy, where those do not serve. */
static void others(void **state)
{
    trial t = {.format = OPS_QUANTISED_U4, .type = HAL_TYPE_BF16, .m = 4, .n = 24, .k = 96};
    t.block = 16; /* lanes have more of k */
    try_product(t, "packed, along k");
    t.block = 0;
    t.k = 36; /* no whole words */
    try_product(t, "packed, along k by bytes");
    t.k = 96;
    t.m = 65;
    try_product(t, "copied");
    t.m = 4;
    t.type = HAL_TYPE_F32;
    try_product(t, "packed, along k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_blocks),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(choice),
        cmocka_unit_test(operands),
        cmocka_unit_test(batches_and_factors),
        cmocka_unit_test(others),
    };
    setenv("HAL_SANITIZE", "race,stop", 1); /* warps meet at few barriers */
    return cmocka_run_group_tests_name("large", tests, open_large, close_context) +
           cmocka_run_group_tests_name("small", tests, open_small, close_context);
}

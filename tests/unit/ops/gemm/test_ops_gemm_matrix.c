/* The portable GEMM kernel on matrix units, run by the reference interpreter of the mock plugin,
 * whose device claims to have them: types, precisions, layouts, edges, batches,
 * groups of rows. */
#include "mock_fixture.h"
#include "ops_fixture.h"

#include "gemm/candidates.h"

typedef struct trial {
    hal_type type;
    uint32_t precision;
    int64_t batch, m, n, k;
    int turned_a, turned_b; /* stored the other way round */
    double alpha, beta;
} trial;

static mock_state *mock;
static int64_t beyond_k; /* steps of k in memory after the trial's k */
static int64_t start;    /* of A and B, in elements after a place where vectors can begin */

static int open_device(void **state, uint32_t units, uint32_t features, uint32_t shared_bytes)
{
    mock_begin(state);
    mock = mock_find("mock");
    hal_device_info *info = &mock->infos[0]; /* hal reads it once in a process */
    info->subgroup_width = 32;
    info->shared_bytes = 227 << 10;
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->features |= HAL_FEATURE_ASYNC_COPY;
    info->matrix_types = HAL_TYPES_MATRIX;
    mock->problem[0] = 0;
    if (hal_device_open("mock:0", &test_device) || hal_queue_create(test_device, &test_queue) ||
        ops_context_create(test_queue, &test_context)) {
        return 1;
    }
    static hal_device_info planned;
    planned = *test_context->info;
    planned.compute_units = units;
    planned.shared_bytes = shared_bytes;
    planned.features = (planned.features & ~HAL_FEATURE_ASYNC_COPY) | features;
    test_set_device(test_context, &planned);
    return 0;
}

static int open_units(void **state, uint32_t units)
{
    return open_device(state, units, HAL_FEATURE_ASYNC_COPY, 227 << 10);
}

/* With so much shared memory that stages are less deep. */
static int open_shallow(void **state)
{
    return open_device(state, 1, HAL_FEATURE_ASYNC_COPY, 96 << 10);
}

/* Without asynchronous copies and with as much shared memory as Vulkan and OpenCL have. */
static int open_registers(void **state)
{
    return open_device(state, 1, 0, 48 << 10);
}
static int open_registers_many(void **state)
{
    return open_device(state, 8, 0, 48 << 10);
}

/* In parts of k, which the units compute. */
static int open_parts(void **state)
{
    const int failed = open_units(state, 2);
    if (!failed) {
        test_tune(test_context)->gemm.split_depth = 32;
    }
    return failed;
}

/* The largest tiles, middle ones and the smallest, for the same matrices. */
static int open_few_units(void **state)
{
    return open_units(state, 1);
}
static int open_some_units(void **state)
{
    return open_units(state, 2);
}
static int open_many_units(void **state)
{
    return open_units(state, 8); /* with more, products as small as these take other kernels */
}

static box make(hal_type type, int64_t batch, int64_t rows, int64_t columns, int turned)
{
    const int64_t shape[3] = {batch, rows, columns};
    const int64_t strides[3] = {rows * columns, turned ? 1 : columns, turned ? rows : 1};
    box b = batch > 1 ? box_make(type, 3, shape, strides, -1, 1)
                      : box_make(type, 2, shape + 1, strides + 1, -1, 1);
    b.t.offset += 3; /* to a multiple of 8 */
    return b;
}

static double at(const box *b, int64_t batch, int64_t row, int64_t column)
{
    const uint32_t rank = b->t.rank;
    return b->host[b->t.offset + (rank == 3 ? batch * b->t.stride[0] : 0) +
                   row * b->t.stride[rank - 2] + column * b->t.stride[rank - 1]];
}

/* The configs with matrix units take turns. */
static const char *unit_config(const ops_gemm_options *options, const ops_tensor *a,
                               const ops_tensor *b, const ops_tensor *c)
{
    static uint32_t turn;
    static char found[OPS_GEMM_MAX_CANDIDATES][96];
    uint32_t count = 0;
    for (uint32_t i = 1; ops_gemm_get_config(test_context, options, a, b, c, i, sizeof found[count],
                                             found[count]) == HAL_OK;
         i++) {
        ops_gemm_options pinned = *options;
        char how[512];
        pinned.config = found[count];
        ok(ops_gemm_describe(test_context, &pinned, a, b, c, sizeof how, how));
        count += strstr(how, "matrix units") != NULL;
    }
    assert_int_not_equal(count, 0);
    return found[turn++ % count];
}

static hal_type type_of_sums(hal_type type)
{
    return type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
}

/* C from the device, to be freed. */
static double *take(const box *c)
{
    const uint32_t size = hal_type_size(c->t.type);
    double *numbers = malloc((size_t)c->count * sizeof *numbers);
    float *single = malloc((size_t)c->count * sizeof *single);
    ok(hal_queue_read(test_queue, c->t.buffer, 0, (uint64_t)c->count * size,
                      size == 8 ? (void *)numbers : (void *)single));
    for (int64_t i = 0; i < c->count && size == 4; i++) {
        numbers[i] = (double)single[i];
    }
    free(single);
    return numbers;
}

/* The largest error, relative to the sum of the products' sizes, in units of the roundoff of sums;
 * everything outside of C has to be as it was. */
static double worst_error(const trial *t)
{
    box a = make(t->type, t->batch, t->m, t->k + beyond_k, t->turned_a),
        b = make(t->type, t->batch, t->k + beyond_k, t->n, t->turned_b),
        c = make(type_of_sums(t->type), t->batch, t->m, t->n, 0);
    a.t.shape[a.t.rank - 1] = b.t.shape[b.t.rank - 2] = t->k;
    a.t.offset += start;
    b.t.offset += start;
    ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                .alpha = t->alpha,
                                .beta = t->beta,
                                .precision = t->precision,
                                .impl = OPS_GEMM_PORTABLE};
    options.config = unit_config(&options, &a.t, &b.t, &c.t);
    ok(ops_gemm(test_context, &options, &a.t, &b.t, &c.t));
    double *want = box_want(&c), worst = 0, *sizes = calloc((size_t)c.count, sizeof *sizes);
    for (int64_t i = 0; i < t->batch * t->m * t->n; i++) {
        const int64_t batch = i / (t->m * t->n), row = i / t->n % t->m, column = i % t->n;
        const int64_t place = c.t.offset + batch * t->m * t->n + row * t->n + column;
        double sum = t->beta * c.host[place], size = fabs(sum);
        for (int64_t k = 0; k < t->k; k++) {
            const double term = t->alpha * at(&a, batch, row, k) * at(&b, batch, k, column);
            sum += term;
            size += fabs(term);
        }
        want[place] = sum;
        sizes[place] = size;
    }
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    if (mock->problem[0]) {
        fail_msg("%s", mock->problem);
    }
    double *got = take(&c);
    const double units = c.t.type == HAL_TYPE_F64 ? 0x1p53 : 0x1p24;
    for (int64_t i = 0; i < c.count; i++) {
        if (sizes[i] == 0) {
            assert_true(got[i] == c.host[i]);
        } else {
            const double error = fabs(got[i] - want[i]) / sizes[i] * units;
            assert_true(error == error);
            worst = error > worst ? error : worst;
        }
    }
    free(got);
    free(sizes);
    free(want);
    boxes_free(&a, &b, &c);
    return worst;
}

/* Expects a worst error from `least` to `most`. */
static void keeps(trial t, double least, double most)
{
    const double worst = worst_error(&t);
    if (worst < least || worst > most) {
        fail_msg(
            "%s, precision %u, batch %d, %d x %d x %d, turned %d %d: the worst error is %g, not "
            "%g to %g",
            hal_type_name(t.type), t.precision, (int)t.batch, (int)t.m, (int)t.n, (int)t.k,
            t.turned_a, t.turned_b, worst, least, most);
    }
}

/* One term of 11 bits is far less exact than F32, which shows that the units were used; three are
 * as exact. */
static void test_f32(void **state)
{
    for (int turned = 0; turned < 4; turned++) {
        trial t = {HAL_TYPE_F32, HAL_GEMM_FAST, 1, 128, 64, 32, turned & 1, turned >> 1, 1.0, 0.0};
        keeps(t, 100, 0x1p13);
        t.precision = HAL_GEMM_ACCURATE;
        keeps(t, 0, 8);
    }
}

/* Every class is as exact as F64, in all layouts, with lines of 16 bytes and of 8. */
static void test_f64(void **state)
{
    static const uint32_t classes[] = {HAL_GEMM_STRICT, HAL_GEMM_ACCURATE, HAL_GEMM_FAST};
    for (int turned = 0; turned < 4; turned++) {
        const int a = turned & 1, b = turned >> 1;
        keeps((trial){HAL_TYPE_F64, classes[turned % 3], 1, 128, 64, 32, a, b, 1.0, 0.0}, 0, 16);
        keeps((trial){HAL_TYPE_F64, HAL_GEMM_STRICT, 1, 65, 67, 35, a, b, 1.5, 0.5}, 0, 16);
        keeps((trial){HAL_TYPE_F64, HAL_GEMM_STRICT, 2, 132, 66, 41, a, b, 1.0, 0.0}, 0, 16);
        start = 1;
        keeps((trial){HAL_TYPE_F64, HAL_GEMM_STRICT, 1, 64, 66, 36, a, b, 1.0, 2.0}, 0, 16);
        start = 0;
    }
}

static void test_halves(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16};
    for (int i = 0; i < 2; i++) {
        for (int turned = 0; turned < 4; turned++) {
            trial t = {types[i], HAL_GEMM_FAST, 1, 128, 64, 128, turned & 1, turned >> 1, 1.0, 0.0};
            keeps(t, 0, 16);
            t.precision = HAL_GEMM_ACCURATE;
            keeps(t, 0, 8);
        }
    }
}

/* Neither rows, columns nor k are multiples of the tiles. */
static void test_edges(void **state)
{
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_ACCURATE, 1, 132, 136, 44, 0, 0, 1.5, 0.5}, 0, 8);
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_ACCURATE, 1, 132, 68, 36, 1, 1, 1.0, 0.0}, 0, 8);
    keeps((trial){HAL_TYPE_BF16, HAL_GEMM_FAST, 1, 137, 136, 72, 0, 0, 0.5, 2.0}, 0, 16);
    keeps((trial){HAL_TYPE_F16, HAL_GEMM_ACCURATE, 1, 72, 65, 40, 0, 1, 1.0, 0.0}, 0, 16);
}

/* Lines that are multiples of 8, 4 and 2 bytes, for each operand and both, in all layouts. */
static void test_lines(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    static const int64_t sizes[][3] = {{65, 67, 35}, {64, 66, 42}, {68, 129, 72}, {64, 96, 37}};
    for (uint32_t i = 0; i < 3 * 4; i++) {
        const int64_t *size = sizes[i / 3];
        for (int turned = 0; turned < 4; turned++) {
            const int is_f32 = types[i % 3] == HAL_TYPE_F32;
            trial t = {types[i % 3], HAL_GEMM_FAST, 1,           size[0], size[1],
                       size[2],      turned & 1,    turned >> 1, 1.0,     0.5};
            keeps(t, is_f32 ? 100 : 0, is_f32 ? 0x1p13 : 16);
            if (turned == (int)i % 4) {
                t.precision = HAL_GEMM_ACCURATE;
                keeps(t, 0, 8);
            }
        }
    }
}

/* A and B that begin where no vectors can, halves also inside of words. */
static void test_starts(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_BF16};
    for (int i = 0; i < 4 * 4; i++) {
        const hal_type type = types[i / 4];
        const int is_f32 = type == HAL_TYPE_F32, is_accurate = i / 4 == 3;
        start = type == HAL_TYPE_F16 ? 2 : 1;
        keeps((trial){type, is_accurate ? HAL_GEMM_ACCURATE : HAL_GEMM_FAST, 1, i % 3 ? 64 : 72, 64,
                      64, i & 1, i >> 1 & 1, 1.0, 0.0},
              is_f32 ? 100 : 0, is_f32 ? 0x1p13 : 16);
        start = 0;
    }
}

/* The tiles are those of other starts. */
static void test_choice_of_starts(void **state)
{
    enum { LARGEST = 1024, K = 64 };
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16};
    static const int64_t sizes[] = {64, 128, 512, LARGEST};
    hal_buffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t elements = LARGEST * (i == 2 ? LARGEST : K + 1);
        ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, elements * 4, &buffers[i]));
    }
    for (int i = 0; i < 4 * 4 * 2 * 2 * 3; i++) {
        const int64_t m = sizes[i % 4], n = sizes[i / 4 % 4];
        const hal_type type = types[i / 16 % 2];
        const ops_tensor c = {buffers[2], HAL_TYPE_F32, 2, 0, {m, n}, {n, 1}};
        ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
        options.impl = OPS_GEMM_PORTABLE;
        options.precision = i / 32 % 2 ? HAL_GEMM_ACCURATE : HAL_GEMM_FAST;
        const int turned_a = i / 64 == 1, turned_b = i / 64 == 2;
        char how[3][512];
        for (int j = 0; j < 3; j++) {
            const ops_tensor a = {buffers[0], type,   2,
                                  j,          {m, K}, {turned_a ? 1 : K, turned_a ? m : 1}};
            const ops_tensor b = {buffers[1], type,   2,
                                  j,          {K, n}, {turned_b ? 1 : n, turned_b ? K : 1}};
            ok(ops_gemm_describe(test_context, &options, &a, &b, &c, sizeof how[j], how[j]));
            assert_string_equal(how[j], how[0]);
        }
    }
    for (int i = 0; i < 3; i++) {
        hal_buffer_release(buffers[i]);
    }
}

static void test_batch(void **state)
{
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_ACCURATE, 2, 64, 64, 64, 0, 0, 1.0, 1.0}, 0, 8);
    keeps((trial){HAL_TYPE_BF16, HAL_GEMM_FAST, 3, 64, 72, 64, 0, 0, 1.0, 0.0}, 0, 16);
    keeps((trial){HAL_TYPE_F16, HAL_GEMM_FAST, 2, 65, 65, 33, 1, 0, 1.0, 0.0}, 0, 16);
}

/* The worst error of groups of rows, as worst_error; rows without a group stay as they were. */
static double worst_error_of_groups(hal_type type, uint32_t precision, int64_t k, int turned_b)
{
    enum { GROUPS = 4, ROWS = 257, N = 72 };
    static const int32_t offsets[GROUPS + 1] = {3, 3, 120, 121, 255};
    const int64_t count[1] = {GROUPS + 1};
    box a = make(type, 1, ROWS, k, 0), b = make(type, GROUPS, k, N, turned_b),
        c = make(type_of_sums(type), 1, ROWS, N, 0);
    ops_tensor at_device;
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = precision;
    options.impl = OPS_GEMM_PORTABLE;
    const int64_t mean = (ROWS + GROUPS - 1) / GROUPS;
    const ops_tensor some_a = {a.t.buffer, type, 2, a.t.offset, {mean, k}, {k, 1}};
    const ops_tensor some_c = {c.t.buffer, c.t.type, 2, c.t.offset, {mean, N}, {N, 1}};
    const ops_tensor some_b = {b.t.buffer, type,   2,
                               b.t.offset, {k, N}, {b.t.stride[1], b.t.stride[2]}};
    options.config = unit_config(&options, &some_a, &some_b, &some_c);
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, count, offsets, &at_device));
    ok(ops_gemm_grouped(test_context, &options, &a.t, &b.t, &at_device, NULL, &c.t));
    double *got = take(&c);
    double worst = 0;
    for (int64_t i = 0; i < c.count; i++) {
        const int64_t number = i - c.t.offset, row = number / N;
        int group = GROUPS - 1;
        if (number < offsets[0] * N || row >= offsets[GROUPS]) {
            assert_true(got[i] == c.host[i]);
            continue;
        }
        while (row < offsets[group]) {
            group--;
        }
        double sum = 0, size = 0;
        for (int64_t j = 0; j < k; j++) {
            const double term = at(&a, 0, row, j) * at(&b, group, j, number % N);
            sum += term;
            size += fabs(term);
        }
        const double error = fabs(got[i] - sum) / size * (type == HAL_TYPE_F64 ? 0x1p53 : 0x1p24);
        worst = error > worst || error != error ? error : worst;
    }
    free(got);
    ops_tensor_release(&at_device);
    boxes_free(&a, &b, &c);
    return worst;
}

/* One term of F32 shows that the units were used. */
static void test_groups(void **state)
{
    for (int turned = 0; turned < 2; turned++) {
        const double one = worst_error_of_groups(HAL_TYPE_F32, HAL_GEMM_FAST, 32, turned);
        assert_true(one >= 100 && one <= 0x1p13);
        assert_true(worst_error_of_groups(HAL_TYPE_F32, HAL_GEMM_ACCURATE, 36, turned) <= 8);
        assert_true(worst_error_of_groups(HAL_TYPE_BF16, HAL_GEMM_FAST, 64, turned) <= 16);
        assert_true(worst_error_of_groups(HAL_TYPE_F16, HAL_GEMM_FAST, 33, turned) <= 16);
        assert_true(worst_error_of_groups(HAL_TYPE_F64, HAL_GEMM_STRICT, 33, turned) <= 16);
    }
}

/* Three parts, of which the last is whole, and four, of which it is short. */
static void test_long(void **state)
{
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_FAST, 1, 64, 64, 96, 0, 0, 1.0, 0.0}, 100, 0x1p13);
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_FAST, 1, 64, 64, 100, 1, 1, 1.0, 0.0}, 100, 0x1p13);
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_ACCURATE, 1, 64, 64, 100, 1, 0, 0.5, 2.0}, 0, 8);
    keeps((trial){HAL_TYPE_BF16, HAL_GEMM_ACCURATE, 1, 64, 72, 104, 0, 0, 1.0, 0.0}, 0, 8);
    keeps((trial){HAL_TYPE_F64, HAL_GEMM_STRICT, 1, 64, 72, 105, 0, 0, 1.0, 0.0}, 0, 16);
    /* Parts that wide accesses fit, and a k that they do not. */
    beyond_k = 2;
    keeps((trial){HAL_TYPE_F32, HAL_GEMM_FAST, 1, 64, 64, 98, 0, 1, 1.0, 0.0}, 100, 0x1p13);
    keeps((trial){HAL_TYPE_BF16, HAL_GEMM_FAST, 1, 64, 65, 97, 1, 0, 1.0, 0.0}, 0, 8);
    beyond_k = 0;
}

int main(void)
{
    const struct CMUnitTest parts[] = {cmocka_unit_test(test_long), cmocka_unit_test(test_edges)};
    const struct CMUnitTest shallow[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_f64),
                                         cmocka_unit_test(test_halves),
                                         cmocka_unit_test(test_edges)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32),
                                       cmocka_unit_test(test_f64),
                                       cmocka_unit_test(test_halves),
                                       cmocka_unit_test(test_edges),
                                       cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_starts),
                                       cmocka_unit_test(test_choice_of_starts),
                                       cmocka_unit_test(test_batch),
                                       cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests_name("few units", tests, open_few_units, close_context) +
           cmocka_run_group_tests_name("parts", parts, open_parts, close_context) +
           cmocka_run_group_tests_name("shallow", shallow, open_shallow, close_context) +
           cmocka_run_group_tests_name("registers", tests, open_registers, close_context) +
           cmocka_run_group_tests_name("registers, many units", tests, open_registers_many,
                                       close_context) +
           cmocka_run_group_tests_name("some units", tests, open_some_units, close_context) +
           cmocka_run_group_tests_name("many units", tests, open_many_units, close_context);
}

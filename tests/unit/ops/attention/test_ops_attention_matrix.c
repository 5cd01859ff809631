/* The attention kernel on matrix units, run by the reference interpreter of the mock plugin, whose
 * device claims to have them: types, masks, heads of every class, rows that are no vectors. */
#include "mock_fixture.h"
#include "ops_fixture.h"

#include "core/device.h"

#include <ops/attention.h>

typedef struct trial {
    hal_type type, mask; /* mask: NONE, BOOL or F32 */
    int causal;
    int64_t heads, groups, m, n, d, e; /* heads of a group share k and v */
    int64_t gap;                       /* elements between rows */
} trial;

static mock_state *mock;

static int open_device(void **state, uint32_t units, uint32_t shared_bytes, uint32_t features)
{
    mock_begin(state);
    mock = mock_find("mock");
    hal_device_info *info = &mock->infos[0]; /* hal reads it once in a process */
    info->subgroup_width = 32;
    info->shared_bytes = 227 << 10;
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
    planned.shared_bytes = shared_bytes;
    planned.features |= features;
    test_set_device(test_context, &planned);
    return 0;
}

static int open_large(void **state)
{
    return open_device(state, 1, 227 << 10, HAL_FEATURE_FAST_MATH);
}

/* With as much shared memory as Vulkan and OpenCL have, and without fast powers. */
static int open_small(void **state)
{
    return open_device(state, 1, 48 << 10, 0);
}

/* With more units than groups: small groups. */
static int open_many(void **state)
{
    return open_device(state, 64, 227 << 10, HAL_FEATURE_FAST_MATH);
}

static box make(hal_type type, int64_t batch, int64_t rows, int64_t columns, int64_t gap,
                double least, double most)
{
    const int64_t shape[3] = {batch, rows, columns};
    const int64_t strides[3] = {rows * (columns + gap), columns + gap, 1};
    box b = box_make(type, 3, shape, strides, least, most);
    b.t.offset += 3; /* to a multiple of 8 */
    return b;
}

static double at(const box *b, int64_t batch, int64_t row, int64_t column)
{
    return b->host[b->t.offset + (b->t.shape[0] > 1 ? batch * b->t.stride[0] : 0) +
                   row * b->t.stride[1] + column];
}

/* Element (head, row, column) of the result. */
static double expected(const trial *t, const box *q, const box *k, const box *v, const box *mask,
                       int64_t head, int64_t row, int64_t column)
{
    const int64_t group = head / t->heads;
    double total = 0, sum = 0;
    for (int64_t j = 0; j < t->n; j++) {
        double score = 0;
        for (int64_t i = 0; i < t->d; i++) {
            score += at(q, head, row, i) * at(k, group, j, i);
        }
        score /= sqrt((double)t->d);
        score += t->mask == HAL_TYPE_F32 ? at(mask, 0, row, j) : 0;
        const bool has = (t->mask != HAL_TYPE_BOOL || at(mask, 0, row, j) != 0) &&
                         (!t->causal || j <= row + t->n - t->m);
        const double weight = has ? exp(score) : 0;
        total += weight;
        sum += weight * at(v, group, j, column);
    }
    return sum / total;
}

/* The shapes of grouped heads: q [groups, heads, m, d], k [groups, 1, n, d]. */
static ops_tensor grouped(const box *b, const trial *t, int64_t heads)
{
    ops_tensor x = b->t;
    x.rank = 4;
    x.shape[0] = t->groups;
    x.shape[1] = heads;
    x.stride[0] = heads * b->t.stride[0];
    x.stride[1] = b->t.stride[0];
    for (int i = 2; i < 4; i++) {
        x.shape[i] = b->t.shape[i - 1];
        x.stride[i] = b->t.stride[i - 1];
    }
    return x;
}

static void keeps(trial t)
{
    const int64_t all = t.heads * t.groups;
    box q = make(t.type, all, t.m, t.d, t.gap, -2, 2),
        k = make(t.type, t.groups, t.n, t.d, t.gap, -2, 2);
    box v = make(t.type, t.groups, t.n, t.e, t.gap, -1, 1),
        y = make(t.type, all, t.m, t.e, t.gap, 0, 0);
    box mask = {0};
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = t.causal;
    options.precision = HAL_GEMM_FAST;
    options.form = OPS_ATTENTION_KERNEL;
    ops_tensor shape;
    if (t.mask != HAL_TYPE_NONE) {
        mask = make(t.mask, 1, t.m, t.n, 0, -2, 2);
        shape = mask.t;
        shape.rank = 2;
        shape.shape[0] = t.m;
        shape.shape[1] = t.n;
        shape.stride[0] = t.n;
        shape.stride[1] = 1;
        options.mask = &shape;
    }
    const ops_tensor tensors[4] = {grouped(&q, &t, t.heads), grouped(&k, &t, 1), grouped(&v, &t, 1),
                                   grouped(&y, &t, t.heads)};
    ok(ops_attention(test_context, &options, &tensors[0], &tensors[1], &tensors[2], &tensors[3]));
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    if (mock->problem[0]) {
        fail_msg("%s", mock->problem);
    }
    double *want = box_want(&y);
    for (int64_t i = 0; i < all * t.m * t.e; i++) {
        const int64_t head = i / (t.m * t.e), row = i / t.e % t.m, column = i % t.e;
        want[y.t.offset + head * y.t.stride[0] + row * y.t.stride[1] + column] =
            expected(&t, &q, &k, &v, &mask, head, row, column);
    }
    box_expect(&y, want, 1, t.type == HAL_TYPE_F16 ? 2e-3 : 1.6e-2);
    free(want);
    boxes_free(&q, &k, &v);
    box_free(&y);
    if (t.mask != HAL_TYPE_NONE) {
        box_free(&mask);
    }
}

/* Numbers of the gradients of one head: w, and s = w (dy v^T - sum(dy y)). */
static void head_changes(const trial *t, const box *x, const box *mask, int64_t head, double *w,
                         double *s)
{
    const box *q = &x[0], *k = &x[1], *v = &x[2], *y = &x[3], *dy = &x[4];
    const int64_t group = head / t->heads;
    for (int64_t i = 0; i < t->m; i++) {
        double total = 0, delta = 0;
        for (int64_t j = 0; j < t->n; j++) {
            double score = 0;
            for (int64_t c = 0; c < t->d; c++) {
                score += at(q, head, i, c) * at(k, group, j, c) / sqrt((double)t->d);
            }
            score += t->mask == HAL_TYPE_F32 ? at(mask, 0, i, j) : 0;
            const bool has = !t->causal || j <= i + t->n - t->m;
            total += w[i * t->n + j] = has ? exp(score) : 0;
        }
        for (int64_t c = 0; c < t->e; c++) {
            delta += at(dy, head, i, c) * at(y, head, i, c);
        }
        for (int64_t j = 0; j < t->n; j++) {
            double change = -delta;
            for (int64_t c = 0; c < t->e; c++) {
                change += at(dy, head, i, c) * at(v, group, j, c);
            }
            w[i * t->n + j] /= total;
            s[i * t->n + j] = w[i * t->n + j] * change;
        }
    }
}

/* Adds a head's part of the gradients to want[3]. */
static void head_gradients(const trial *t, const box *x, const box *g, int64_t head,
                           const double *w, const double *s, double *const want[3])
{
    const int64_t group = head / t->heads;
    for (int64_t i = 0; i < t->m * t->n; i++) {
        const int64_t row = i / t->n, key = i % t->n;
        for (int64_t c = 0; c < t->d; c++) {
            const double change = s[i] / sqrt((double)t->d);
            want[0][g[0].t.offset + head * g[0].t.stride[0] + row * g[0].t.stride[1] + c] +=
                change * at(&x[1], group, key, c);
            want[1][g[1].t.offset + group * g[1].t.stride[0] + key * g[1].t.stride[1] + c] +=
                change * at(&x[0], head, row, c);
        }
        for (int64_t c = 0; c < t->e; c++) {
            want[2][g[2].t.offset + group * g[2].t.stride[0] + key * g[2].t.stride[1] + c] +=
                w[i] * at(&x[4], head, row, c);
        }
    }
}

static void gradients_keep(trial t)
{
    const int64_t all = t.heads * t.groups;
    box x[5] = {
        make(t.type, all, t.m, t.d, t.gap, -1, 1), make(t.type, t.groups, t.n, t.d, t.gap, -1, 1),
        make(t.type, t.groups, t.n, t.e, t.gap, -1, 1), make(t.type, all, t.m, t.e, t.gap, -1, 1),
        make(t.type, all, t.m, t.e, t.gap, -1, 1)};
    box g[3] = {make(t.type, all, t.m, t.d, 0, 0, 0), make(t.type, t.groups, t.n, t.d, 0, 0, 0),
                make(t.type, t.groups, t.n, t.e, 0, 0, 0)};
    box mask = make(HAL_TYPE_F32, 1, t.m, t.n, 0, -2, 2);
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = t.causal;
    options.precision = HAL_GEMM_FAST;
    ops_tensor shape = mask.t;
    shape.rank = 2;
    memmove(shape.shape, shape.shape + 1, 2 * sizeof *shape.shape);
    memmove(shape.stride, shape.stride + 1, 2 * sizeof *shape.stride);
    options.mask = t.mask == HAL_TYPE_F32 ? &shape : NULL;
    const int64_t heads[5] = {t.heads, 1, 1, t.heads, t.heads};
    ops_tensor tensors[5], results[3];
    for (int i = 0; i < 5; i++) {
        tensors[i] = grouped(&x[i], &t, heads[i]);
    }
    for (int i = 0; i < 3; i++) {
        results[i] = grouped(&g[i], &t, heads[i]);
    }
    const ops_tensor *const inputs[3] = {&tensors[0], &tensors[1], &tensors[2]};
    const ops_tensor *const gradients[3] = {&results[0], &results[1], &results[2]};
    ok(ops_attention_gradients(test_context, &options, inputs, &tensors[3], &tensors[4],
                               gradients));
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    if (mock->problem[0]) {
        fail_msg("%s", mock->problem);
    }
    double *want[3] = {box_want(&g[0]), box_want(&g[1]), box_want(&g[2])};
    double *w = calloc((size_t)(t.m * t.n), sizeof *w), *s = calloc((size_t)(t.m * t.n), sizeof *s);
    for (int64_t head = 0; head < all; head++) {
        head_changes(&t, x, &mask, head, w, s);
        head_gradients(&t, x, g, head, w, s, want);
    }
    for (int i = 0; i < 3; i++) {
        box_expect(&g[i], want[i], 2, t.type == HAL_TYPE_F16 ? 4e-3 : 3e-2);
        free(want[i]);
        box_free(&g[i]);
    }
    free(w);
    free(s);
    for (int i = 0; i < 5; i++) {
        box_free(&x[i]);
    }
    box_free(&mask);
}

static void gradients(void **state)
{
    gradients_keep((trial){
        .type = HAL_TYPE_BF16, .heads = 2, .groups = 2, .m = 20, .n = 40, .d = 32, .e = 64});
    gradients_keep((trial){.type = HAL_TYPE_F16,
                           .heads = 1,
                           .groups = 1,
                           .m = 40,
                           .n = 70,
                           .d = 64,
                           .e = 32,
                           .causal = 1});
    gradients_keep((trial){.type = HAL_TYPE_BF16,
                           .mask = HAL_TYPE_F32,
                           .heads = 1,
                           .groups = 1,
                           .m = 20,
                           .n = 35,
                           .d = 128,
                           .e = 128,
                           .causal = 1});
    gradients_keep((trial){
        .type = HAL_TYPE_F16, .heads = 1, .groups = 1, .m = 20, .n = 35, .d = 160, .e = 33});
}

static void masks_and_types(void **state)
{
    for (uint32_t i = 0; i < 2 * 2 * 3; i++) {
        static const hal_type masks[3] = {HAL_TYPE_NONE, HAL_TYPE_BOOL, HAL_TYPE_F32};
        keeps((trial){.type = i & 1 ? HAL_TYPE_F16 : HAL_TYPE_BF16,
                      .mask = masks[i / 4],
                      .causal = i & 2,
                      .heads = 2,
                      .groups = 1,
                      .m = 35,
                      .n = 71,
                      .d = 32,
                      .e = 32});
    }
}

static void heads(void **state)
{
    keeps((trial){
        .type = HAL_TYPE_BF16, .heads = 1, .groups = 2, .m = 20, .n = 40, .d = 64, .e = 64});
    keeps((trial){
        .type = HAL_TYPE_F16, .heads = 1, .groups = 1, .m = 20, .n = 40, .d = 128, .e = 128});
    keeps((trial){.type = HAL_TYPE_BF16,
                  .heads = 1,
                  .groups = 1,
                  .m = 20,
                  .n = 33,
                  .d = 96,
                  .e = 40,
                  .causal = 1});
    keeps((trial){
        .type = HAL_TYPE_BF16, .heads = 1, .groups = 1, .m = 9, .n = 40, .d = 256, .e = 256});
}

/* Odd heads, and rows that begin at odd places. */
static void elements(void **state)
{
    keeps((trial){
        .type = HAL_TYPE_BF16, .heads = 2, .groups = 2, .m = 20, .n = 40, .d = 33, .e = 17});
    keeps((trial){.type = HAL_TYPE_F16,
                  .heads = 1,
                  .groups = 1,
                  .m = 20,
                  .n = 40,
                  .d = 32,
                  .e = 32,
                  .gap = 1});
}

static hal_attention_description asked[8];
static uint32_t asked_count;

static hal_status declining(hal_plugin_device *device, const hal_attention_description *d,
                            hal_plugin_kernel **kernel)
{
    assert_true(asked_count < 8);
    asked[asked_count++] = *d;
    *kernel = NULL;
    return HAL_ERROR_UNSUPPORTED;
}

static uint32_t asks(trial t)
{
    const uint32_t before = asked_count;
    keeps(t);
    return asked_count - before;
}

/* What the plugin is asked for: once for each shape, of aligned rows or of their copies. */
static void native(void **state)
{
    hal_plugin_entries *table = &test_device->module->table;
    const hal_plugin_entries whole = *table;
    trial t = {.type = HAL_TYPE_F16,
               .heads = 3,
               .groups = 2,
               .m = 5,
               .n = 40,
               .d = 24,
               .e = 16,
               .causal = 1};
    table->attention = declining;
    assert_int_equal(asks(t), 1);
    assert_int_equal(asks(t), 0);
    const hal_attention_description *d = &asked[0];
    assert_int_equal(d->type, HAL_TYPE_F16);
    assert_true(d->causal == 1 && d->precision == HAL_GEMM_FAST);
    assert_true(d->batch == 3 && d->outer == 2 && d->m == 5 && d->n == 40 && d->d == 24);
    assert_true(d->q.row == 24 && d->q.batch == 5 * 24 && d->q.outer == 15 * 24);
    assert_true(d->k.row == 24 && d->k.batch == 0 && d->k.outer == 40 * 24);
    assert_true(d->v.row == 16 && d->v.batch == 0 && d->v.outer == 40 * 16);
    assert_true(d->y.row == 16 && d->y.batch == 5 * 16 && d->y.outer == 15 * 16);
    t.gap = 1; /* copies have the description of the first call */
    assert_int_equal(asks(t), 0);
    t.gap = 8;
    assert_true(asks(t) == 1 && asked[1].q.row == 32 && asked[1].y.row == 24);
    t.gap = 0;
    t.m = 1; /* heads that share keys are rows */
    assert_int_equal(asks(t), 1);
    d = &asked[2];
    assert_true(d->batch == 1 && d->outer == 2 && d->m == 3 && d->causal == 0);
    assert_true(d->q.row == 24 && d->q.outer == 3 * 24 && d->y.row == 16 && d->k.outer == 960);
    t.m = 5;
    t.mask = HAL_TYPE_BOOL;
    assert_int_equal(asks(t), 0);
    t.mask = HAL_TYPE_NONE;
    t.d = 20;
    assert_int_equal(asks(t), 0);
    *table = whole;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(masks_and_types), cmocka_unit_test(heads),
                                       cmocka_unit_test(elements), cmocka_unit_test(native),
                                       cmocka_unit_test(gradients)};
    const struct CMUnitTest few[] = {cmocka_unit_test(heads), cmocka_unit_test(gradients)};
    return cmocka_run_group_tests_name("large", tests, open_large, close_context) +
           cmocka_run_group_tests_name("small", few, open_small, close_context) +
           cmocka_run_group_tests_name("many", few, open_many, close_context);
}

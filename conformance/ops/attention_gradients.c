/* attention_gradients.c: the gradients of attention against those of the expression, from given
 * results y. */
#include <math.h>
#include <ops/attention.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef enum mask_kind { MASK_NONE, MASK_ADDED, MASK_BOOL, MASK_CAUSAL } mask_kind;

typedef struct gradients_case {
    hal_type type;
    mask_kind mask;
    int64_t groups, heads; /* of a group, which share k and v */
    int64_t m, n, d, e;
    uint32_t precision;
    uint32_t form;
    uint64_t max_workspace; /* 1: blocks of as few rows as there are */
} gradients_case;

static const case_size gradients_sizes[] = {
    CASE_SIZE(gradients_case, groups, "groups", 0, 1),
    CASE_SIZE(gradients_case, heads, "heads", 0, 1),
    CASE_SIZE(gradients_case, m, "m", 0, 1),
    CASE_SIZE(gradients_case, n, "n", 0, 1),
    CASE_SIZE(gradients_case, d, "d", 0, 1),
    CASE_SIZE(gradients_case, e, "e", 0, 1),
};

static const char *const mask_names[] = {"none", "added", "bool", "causal"};

/* A sum, and the bound of its error. */
typedef struct estimate {
    long double value, error;
} estimate;

typedef struct gradients_run {
    const gradients_case *tested;
    operand q, k, v, y, dy, mask, gradients[3];
    estimate *weights, *changes; /* of a head, [m, n]: w and s */
    estimate *sums[3];
    double u, narrow; /* unit roundoffs of sums and of the type */
} gradients_run;

static long double get(const operand *x, int64_t matrix, int64_t row, int64_t column, int64_t rows,
                       int64_t width)
{
    return (long double)operand_get(x, (size_t)((matrix * rows + row) * width + column));
}

static bool is_seen(const gradients_run *r, int64_t row, int64_t column)
{
    const gradients_case *t = r->tested;
    if (t->mask == MASK_BOOL &&
        number_load(HAL_TYPE_BOOL, r->mask.elements, (size_t)(row * t->n + column)) == 0) {
        return false;
    }
    return t->mask != MASK_CAUSAL || column <= row + t->n - t->m;
}

/* The score of a column and its bound. */
static estimate score_of(const gradients_run *r, int64_t head, int64_t row, int64_t column)
{
    const gradients_case *t = r->tested;
    const long double scale = 1 / sqrtl((long double)t->d);
    estimate score = {0, 0};
    for (int64_t i = 0; i < t->d; i++) {
        const long double x = get(&r->q, head, row, i, t->m, t->d) *
                              get(&r->k, head / t->heads, column, i, t->n, t->d);
        score.value += x * scale;
        score.error += fabsl(x) * scale;
    }
    const long double mask = t->mask == MASK_ADDED
                                 ? (long double)operand_get(&r->mask, (size_t)(row * t->n + column))
                                 : 0;
    score.error = (long double)r->u * ((long double)(t->d + 4) * score.error + 2 * fabsl(mask));
    score.value = is_seen(r, row, column) ? score.value + mask : -INFINITY;
    return score;
}

/* Weights of a row. An error of the scores changes them by twice as much. */
static void weights_estimate(gradients_run *r, int64_t head, int64_t row)
{
    const gradients_case *t = r->tested;
    estimate *w = r->weights + row * t->n;
    long double greatest = -INFINITY, total = 0, error = 0;
    for (int64_t j = 0; j < t->n; j++) {
        w[j] = score_of(r, head, row, j);
        greatest = fmaxl(greatest, w[j].value);
        error = isinf(w[j].value) ? error : fmaxl(error, w[j].error);
    }
    for (int64_t j = 0; j < t->n; j++) {
        total += expl(w[j].value - greatest);
    }
    for (int64_t j = 0; j < t->n; j++) {
        const long double far = isinf(w[j].value) ? 0 : greatest - w[j].value;
        w[j].value = expl(w[j].value - greatest) / total;
        w[j].error = w[j].value *
                     (2.02L * error + (long double)r->u * (2 * (long double)t->n + 20 + 3 * far));
    }
}

/* s = w (dy v^T - delta) of a row. */
static void changes_estimate(gradients_run *r, int64_t head, int64_t row)
{
    const gradients_case *t = r->tested;
    const long double u = (long double)r->u;
    long double delta = 0, delta_size = 0;
    for (int64_t c = 0; c < t->e; c++) {
        const long double x =
            get(&r->dy, head, row, c, t->m, t->e) * get(&r->y, head, row, c, t->m, t->e);
        delta += x;
        delta_size += fabsl(x);
    }
    for (int64_t j = 0; j < t->n; j++) {
        long double g = 0, size = 0;
        for (int64_t c = 0; c < t->e; c++) {
            const long double x = get(&r->dy, head, row, c, t->m, t->e) *
                                  get(&r->v, head / t->heads, j, c, t->n, t->e);
            g += x;
            size += fabsl(x);
        }
        const estimate w = r->weights[row * t->n + j];
        estimate *s = &r->changes[row * t->n + j];
        s->value = w.value * (g - delta);
        s->error = w.error * (fabsl(g) + fabsl(delta)) +
                   1.01L * w.value * u * (long double)(t->e + 4) * (size + delta_size) +
                   3 * u * fabsl(s->value);
    }
}

/* Adds factor x (a matrix element) to a sum. The factor was rounded to the type. */
static void estimate_add(const gradients_run *r, estimate *sum, estimate factor, long double x,
                         int64_t terms)
{
    const long double least = (long double)ldexp(1.0, hal_type_float_format(r->tested->type).least);
    sum->value += factor.value * x;
    sum->error += (factor.error +
                   fabsl(factor.value) * ((long double)r->u * (long double)(terms + 4) +
                                          1.01L * (long double)r->narrow) +
                   least) *
                  fabsl(x);
}

static void head_estimate(gradients_run *r, int64_t head)
{
    const gradients_case *t = r->tested;
    const int64_t group = head / t->heads, terms = t->m * t->heads;
    for (int64_t i = 0; i < t->m; i++) {
        weights_estimate(r, head, i);
        changes_estimate(r, head, i);
    }
    for (int64_t n = 0; n < t->m * t->n; n++) {
        const int64_t i = n / t->n, j = n % t->n;
        for (int64_t c = 0; c < t->d; c++) {
            estimate_add(r, &r->sums[0][(head * t->m + i) * t->d + c], r->changes[n],
                         get(&r->k, group, j, c, t->n, t->d), t->n);
            estimate_add(r, &r->sums[1][(group * t->n + j) * t->d + c], r->changes[n],
                         get(&r->q, head, i, c, t->m, t->d), terms);
        }
        for (int64_t c = 0; c < t->e; c++) {
            estimate_add(r, &r->sums[2][(group * t->n + j) * t->e + c], r->weights[n],
                         get(&r->dy, head, i, c, t->m, t->e), terms);
        }
    }
}

static void judge(case_run *run, gradients_run *r)
{
    static const char *const names[3] = {"dq", "dk", "dv"};
    const gradients_case *t = r->tested;
    r->weights = case_allocate(run, (size_t)(t->m * t->n), sizeof *r->weights);
    r->changes = case_allocate(run, (size_t)(t->m * t->n), sizeof *r->changes);
    for (int i = 0; i < 3; i++) {
        r->sums[i] = case_allocate(run, r->gradients[i].count, sizeof *r->sums[i]);
        for (size_t n = 0; n < r->gradients[i].count; n++) {
            r->sums[i][n] = (estimate){0, 0};
        }
    }
    for (int64_t head = 0; head < t->groups * t->heads; head++) {
        head_estimate(r, head);
    }
    for (int i = 0; i < 3; i++) {
        const operand *x = &r->gradients[i];
        const long double scale = i < 2 ? 1 / sqrtl((long double)t->d) : 1;
        long double *expected = case_allocate(run, x->count, sizeof *expected);
        double *bounds = case_allocate(run, x->count, sizeof *bounds);
        const double least = ldexp(1.0, hal_type_float_format(t->type).least);
        for (size_t n = 0; n < x->count; n++) {
            expected[n] = r->sums[i][n].value * scale;
            bounds[n] = (double)(r->sums[i][n].error * scale) +
                        (1.01 * r->narrow + 4 * r->u) * fabs((double)expected[n]) +
                        fmax(least, 0x1p-126);
        }
        operand_check_bounds(run, x, expected, bounds, names[i]);
    }
}

/* Every row has its first column. */
static void fill_mask(case_run *run, gradients_run *r, random_state *random)
{
    const gradients_case *t = r->tested;
    const hal_type type =
        t->mask == MASK_BOOL ? (hal_type)HAL_TYPE_BOOL : hal_type_of_value(t->type);
    r->mask = operand_create(run, type, 2, (int64_t[]){t->m, t->n}, LAYOUT_PLAIN);
    operand_fill(&r->mask, random, -2.0, 2.0);
    for (size_t i = 0; t->mask == MASK_BOOL && i < r->mask.count; i++) {
        number_store(type, r->mask.elements, i,
                     i % (size_t)t->n == 0 || random_below(random, 3) > 0);
    }
    operand_upload(run, &r->mask);
}

static void inputs_make(case_run *run, gradients_run *r, random_state *random)
{
    const gradients_case *t = r->tested;
    const int64_t shapes[5][4] = {{t->groups, t->heads, t->m, t->d},
                                  {t->groups, 1, t->n, t->d},
                                  {t->groups, 1, t->n, t->e},
                                  {t->groups, t->heads, t->m, t->e},
                                  {t->groups, t->heads, t->m, t->e}};
    operand *const inputs[5] = {&r->q, &r->k, &r->v, &r->y, &r->dy};
    for (int i = 0; i < 5; i++) {
        *inputs[i] =
            operand_create(run, t->type, 4, shapes[i], i == 4 ? LAYOUT_STRIDED : LAYOUT_PLAIN);
        operand_fill(inputs[i], random, -1.5, 1.5);
        operand_upload(run, inputs[i]);
    }
    for (int i = 0; i < 3; i++) {
        r->gradients[i] = operand_create(run, t->type, 4, shapes[i], LAYOUT_PLAIN);
        operand_poison(run, &r->gradients[i]);
    }
}

static void run_gradients(case_run *run, const void *parameters)
{
    gradients_run r = {.tested = parameters};
    const gradients_case *t = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    r.u = number_roundoff(hal_type_of_value(t->type));
    r.narrow = number_roundoff(t->type);
    inputs_make(run, &r, &random);
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.precision = t->precision;
    options.form = t->form;
    options.max_workspace = t->max_workspace;
    options.causal = t->mask == MASK_CAUSAL;
    if (t->mask == MASK_ADDED || t->mask == MASK_BOOL) {
        fill_mask(run, &r, &random);
        options.mask = &r.mask.tensor;
    }
    const ops_tensor *const inputs[3] = {&r.q.tensor, &r.k.tensor, &r.v.tensor};
    const ops_tensor *const gradients[3] = {&r.gradients[0].tensor, &r.gradients[1].tensor,
                                            &r.gradients[2].tensor};
    const hal_status status =
        ops_attention_gradients(run->ops, &options, inputs, &r.y.tensor, &r.dy.tensor, gradients);
    if (status == HAL_ERROR_UNSUPPORTED) {
        case_unsupported(run, "no kernel computes it on this device: %s", hal_status_message());
    }
    case_ok(run, status, "ops_attention_gradients");
    for (int i = 0; i < 3; i++) {
        operand_download(run, &r.gradients[i], "gradient");
    }
    judge(run, &r);
}

static void print_gradients(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const gradients_case *t = parameters;
    snprintf(name, bytes,
             "ops/attention_gradients(type=%s,mask=%s,groups=%lld,heads=%lld,m=%lld,n=%lld,d=%lld,"
             "e=%lld,precision=%u,form=%u,workspace=%llu,seed=%llu)",
             hal_type_name(t->type), mask_names[t->mask], (long long)t->groups, (long long)t->heads,
             (long long)t->m, (long long)t->n, (long long)t->d, (long long)t->e, t->precision,
             t->form, (unsigned long long)t->max_workspace, (unsigned long long)seed);
}

static const case_family families = {.function = run_gradients,
                                     .bytes = sizeof(gradients_case),
                                     .sizes = gradients_sizes,
                                     .size_count = 6,
                                     .print = print_gradients};

void cases_ops_attention_gradients(case_list *list)
{
    enum { ANY = OPS_ATTENTION_ANY, KERNEL = OPS_ATTENTION_KERNEL, BLOCKS = OPS_ATTENTION_BLOCKS };
    static const gradients_case cases[] = {
        {HAL_TYPE_F32, MASK_NONE, 2, 3, 21, 37, 20, 12, HAL_GEMM_STRICT, ANY, 0},
        {HAL_TYPE_F64, MASK_ADDED, 1, 2, 33, 18, 20, 12, HAL_GEMM_STRICT, ANY, 0},
        {HAL_TYPE_BF16, MASK_BOOL, 2, 2, 21, 37, 20, 12, HAL_GEMM_FAST, ANY, 0},
        {HAL_TYPE_F16, MASK_CAUSAL, 1, 2, 40, 75, 64, 64, HAL_GEMM_FAST, ANY, 0},
        {HAL_TYPE_BF16, MASK_CAUSAL, 1, 1, 70, 70, 160, 64, HAL_GEMM_FAST, ANY, 0},
        {HAL_TYPE_F32, MASK_ADDED, 1, 2, 40, 37, 20, 12, HAL_GEMM_STRICT, KERNEL, 0},
        {HAL_TYPE_F32, MASK_CAUSAL, 2, 4, 75, 130, 20, 12, HAL_GEMM_STRICT, BLOCKS, 1},
        {HAL_TYPE_F16, MASK_ADDED, 2, 4, 75, 40, 20, 12, HAL_GEMM_STRICT, BLOCKS, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        case_add_member(list, &families, &cases[i]);
        case_covers(list, cases[i].type, CASE_BINDING, "ops attention");
    }
}

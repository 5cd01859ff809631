/* attention.c: attention over lengths that are cut into blocks; every mask; grouped heads. */
#include <math.h>
#include <ops/attention.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef enum mask_kind { MASK_NONE, MASK_ADDED, MASK_BOOL, MASK_CAUSAL, MASK_BOTH } mask_kind;

typedef struct attention_case {
    hal_type type;
    mask_kind mask;
    int64_t groups, heads; /* of a group, which share k and v */
    int64_t m, n, d, e;
    operand_layout layout; /* of q and k */
    uint32_t form, precision;
    uint64_t max_workspace;
} attention_case;

static const case_size attention_sizes[] = {
    CASE_SIZE(attention_case, groups, "groups", 0, 1),
    CASE_SIZE(attention_case, heads, "heads", 0, 1),
    CASE_SIZE(attention_case, m, "m", 0, 1),
    CASE_SIZE(attention_case, n, "n", 0, 1),
    CASE_SIZE(attention_case, d, "d", 0, 1),
    CASE_SIZE(attention_case, e, "e", 0, 1),
};

static const char *const form_names[] = {"any", "kernel", "blocks"};
static const char *const mask_names[] = {"none", "added", "bool", "causal", "both"};

/* The operands of a case, and one row of it on the host. */
typedef struct attention_run {
    const attention_case *tested;
    operand q, k, v, mask, y;
    long double *scores;
    double *errors; /* of the scores */
} attention_run;

static bool is_seen(const attention_run *a, size_t row, size_t column)
{
    const attention_case *tested = a->tested;
    const bool is_causal = tested->mask == MASK_CAUSAL || tested->mask == MASK_BOTH;
    if (tested->mask == MASK_BOOL &&
        number_load(HAL_TYPE_BOOL, a->mask.elements, row * (size_t)tested->n + column) == 0) {
        return false;
    }
    return !is_causal || (int64_t)column <= (int64_t)row + tested->n - tested->m;
}

/* Scores of a row with their error bounds; returns the greatest. */
static long double reference_scores(const attention_run *a, size_t head, size_t row)
{
    const attention_case *tested = a->tested;
    const size_t d = (size_t)tested->d, n = (size_t)tested->n;
    const size_t q = (head * (size_t)tested->m + row) * d;
    const size_t k = head / (size_t)tested->heads * n * d;
    const double u = number_roundoff(hal_type_of_value(tested->type)), scale = 1 / sqrt((double)d);
    long double greatest = -INFINITY;
    for (size_t j = 0; j < n; j++) {
        long double sum = 0, size = 0;
        for (size_t i = 0; i < d; i++) {
            const long double x = (long double)operand_get(&a->q, q + i) *
                                  (long double)operand_get(&a->k, k + j * d + i);
            sum += x;
            size += fabsl(x);
        }
        const bool is_added = tested->mask == MASK_ADDED || tested->mask == MASK_BOTH;
        const double mask = is_added ? operand_get(&a->mask, row * n + j) : 0;
        a->scores[j] =
            is_seen(a, row, j) ? sum * (long double)scale + (long double)mask : -INFINITY;
        a->errors[j] = u * (((double)d + 4) * (double)size * scale + 2 * fabs(mask));
        greatest = fmaxl(greatest, a->scores[j]);
    }
    return greatest;
}

/* Element `column` of a row. An error of the scores changes weights by twice as much. */
static void reference_element(const attention_run *a, size_t head, size_t column,
                              long double greatest, long double *expected, double *bound)
{
    const attention_case *tested = a->tested;
    const size_t n = (size_t)tested->n, e = (size_t)tested->e;
    const size_t v = head / (size_t)tested->heads * n * e;
    const double u = number_roundoff(hal_type_of_value(tested->type));
    const double narrow = number_roundoff(tested->type);
    const double least = ldexp(1.0, hal_type_float_format(tested->type).least);
    long double total = 0, sum = 0, change = 0;
    double error = 0, slack = 0;
    for (size_t j = 0; j < n; j++) {
        total += expl(a->scores[j] - greatest);
        error = fmax(error, isinf((double)a->scores[j]) ? 0 : a->errors[j]);
    }
    for (size_t j = 0; j < n; j++) {
        const long double weight = expl(a->scores[j] - greatest) / total;
        const long double value = (long double)operand_get(&a->v, v + j * e + column);
        const double far = weight > 0 ? (double)(greatest - a->scores[j]) : 0;
        sum += weight * value;
        change += weight * fabsl(value) *
                  (long double)(2.02 * error + u * (2 * (double)n + 14 + 2 * far) + 1.01 * narrow);
        slack += fmax(least, 0x1p-126) * (fabs((double)value) + 1);
    }
    *expected = sum;
    *bound = (double)change + 1.01 * narrow * fabs((double)sum) + slack;
}

static void judge(case_run *run, attention_run *a)
{
    const attention_case *tested = a->tested;
    const size_t rows = (size_t)tested->m, e = (size_t)tested->e;
    long double *expected = case_allocate(run, a->y.count, sizeof *expected);
    double *bounds = case_allocate(run, a->y.count, sizeof *bounds);
    a->scores = case_allocate(run, (size_t)tested->n, sizeof *a->scores);
    a->errors = case_allocate(run, (size_t)tested->n, sizeof *a->errors);
    for (size_t head = 0; head < (size_t)(tested->groups * tested->heads); head++) {
        for (size_t row = 0; row < rows; row++) {
            const long double greatest = reference_scores(a, head, row);
            for (size_t column = 0; column < e; column++) {
                const size_t at = (head * rows + row) * e + column;
                reference_element(a, head, column, greatest, &expected[at], &bounds[at]);
            }
        }
    }
    operand_check_bounds(run, &a->y, expected, bounds, "result");
}

/* Every row has its first column. */
static void fill_mask(case_run *run, attention_run *a, random_state *random)
{
    const attention_case *tested = a->tested;
    const hal_type type =
        tested->mask == MASK_BOOL ? (hal_type)HAL_TYPE_BOOL : hal_type_of_value(tested->type);
    a->mask = operand_create(run, type, 2, (int64_t[]){tested->m, tested->n}, LAYOUT_PLAIN);
    operand_fill(&a->mask, random, -2.0, 2.0);
    for (size_t i = 0; tested->mask == MASK_BOOL && i < a->mask.count; i++) {
        number_store(type, a->mask.elements, i,
                     i % (size_t)tested->n == 0 || random_below(random, 3) > 0);
    }
    operand_upload(run, &a->mask);
}

static void run_attention(case_run *run, const void *parameters)
{
    attention_run a = {.tested = parameters};
    const attention_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    const int64_t q[4] = {tested->groups, tested->heads, tested->m, tested->d};
    const int64_t k[4] = {tested->groups, 1, tested->n, tested->d};
    const int64_t v[4] = {tested->groups, 1, tested->n, tested->e};
    const int64_t y[4] = {tested->groups, tested->heads, tested->m, tested->e};
    a.q = operand_create(run, tested->type, 4, q, tested->layout);
    a.k = operand_create(run, tested->type, 4, k, tested->layout);
    a.v = operand_create(run, tested->type, 4, v, LAYOUT_PLAIN);
    a.y = operand_create(run, tested->type, 4, y, LAYOUT_PLAIN);
    operand *const inputs[3] = {&a.q, &a.k, &a.v};
    for (int i = 0; i < 3; i++) {
        operand_fill(inputs[i], &random, -2.0, 2.0);
        operand_upload(run, inputs[i]);
    }
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.max_workspace = tested->max_workspace;
    options.form = tested->form;
    options.precision = tested->precision;
    options.causal = tested->mask == MASK_CAUSAL || tested->mask == MASK_BOTH;
    if (tested->mask != MASK_NONE && tested->mask != MASK_CAUSAL) {
        fill_mask(run, &a, &random);
        options.mask = &a.mask.tensor;
    }
    operand_poison(run, &a.y);
    const hal_status status =
        ops_attention(run->ops, &options, &a.q.tensor, &a.k.tensor, &a.v.tensor, &a.y.tensor);
    if (tested->form == OPS_ATTENTION_KERNEL && status == HAL_ERROR_UNSUPPORTED) {
        case_unsupported(run, "no kernel computes it on this device: %s", hal_status_message());
    }
    case_ok(run, status, "ops_attention");
    operand_download(run, &a.y, "result");
    judge(run, &a);
}

static void print_attention(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const attention_case *tested = parameters;
    snprintf(name, bytes,
             "ops/attention(type=%s,mask=%s,groups=%lld,heads=%lld,m=%lld,n=%lld,d=%lld,e=%lld,"
             "layout=%s,form=%s,precision=%u,workspace=%llu,seed=%llu)",
             hal_type_name(tested->type), mask_names[tested->mask], (long long)tested->groups,
             (long long)tested->heads, (long long)tested->m, (long long)tested->n,
             (long long)tested->d, (long long)tested->e, layout_name(tested->layout),
             form_names[tested->form], tested->precision, (unsigned long long)tested->max_workspace,
             (unsigned long long)seed);
}

static const case_family attentions = {.function = run_attention,
                                       .bytes = sizeof(attention_case),
                                       .sizes = attention_sizes,
                                       .size_count = 6,
                                       .print = print_attention};

static void add_attention(case_list *list, const attention_case *tested)
{
    case_add_member(list, &attentions, tested);
    case_covers(list, tested->type, CASE_BINDING, "ops attention");
}

/* Each mask with both forms, one type each: software devices compile every kernel for seconds. The
 * lengths are no multiples of any tile. */
static void add_masks(case_list *list)
{
    static const hal_type types[2] = {HAL_TYPE_F32, HAL_TYPE_F16};
    for (mask_kind mask = MASK_NONE; mask <= MASK_BOTH; mask++) {
        const attention_case kernel = {.type = types[mask % 2],
                                       .mask = mask,
                                       .groups = 2,
                                       .heads = 2,
                                       .m = 37,
                                       .n = 75,
                                       .d = 20,
                                       .e = 5,
                                       .form = OPS_ATTENTION_KERNEL,
                                       .precision = HAL_GEMM_FAST};
        const attention_case blocks = {.type = types[1 - mask % 2],
                                       .mask = mask,
                                       .groups = 1,
                                       .heads = 2,
                                       .m = 37,
                                       .n = 75,
                                       .d = 20,
                                       .e = 5,
                                       .layout = LAYOUT_STRIDED,
                                       .form = OPS_ATTENTION_BLOCKS,
                                       .max_workspace = 1};
        add_attention(list, &kernel);
        add_attention(list, &blocks);
    }
}

/* Several tiles of rows and keys, the last ones not whole; heads of different sizes. */
static void add_tiles(case_list *list)
{
    const attention_case heads = {.type = HAL_TYPE_F16,
                                  .groups = 2,
                                  .heads = 2,
                                  .m = 150,
                                  .n = 290,
                                  .d = 24,
                                  .e = 48,
                                  .form = OPS_ATTENTION_KERNEL,
                                  .precision = HAL_GEMM_FAST};
    const attention_case causal = {.type = HAL_TYPE_BF16,
                                   .mask = MASK_CAUSAL,
                                   .groups = 1,
                                   .heads = 3,
                                   .m = 260,
                                   .n = 270,
                                   .d = 80,
                                   .e = 72,
                                   .layout = LAYOUT_OFFSET,
                                   .form = OPS_ATTENTION_KERNEL,
                                   .precision = HAL_GEMM_ACCURATE};
    add_attention(list, &heads);
    add_attention(list, &causal);
}

void cases_ops_attention(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const attention_case one = {.type = type,
                                    .mask = MASK_CAUSAL,
                                    .groups = 1,
                                    .heads = 2,
                                    .m = 9,
                                    .n = 17,
                                    .d = 8,
                                    .e = 16,
                                    .form = type == HAL_TYPE_F64 ? OPS_ATTENTION_KERNEL
                                                                 : OPS_ATTENTION_ANY};
        if (hal_type_is_float(type)) {
            add_attention(list, &one);
        }
    }
    add_masks(list);
    /* One row of a long cache; no columns; whole tiles of vectors; the largest head. */
    const attention_case line = {.type = HAL_TYPE_F32,
                                 .mask = MASK_CAUSAL,
                                 .groups = 1,
                                 .heads = 4,
                                 .m = 1,
                                 .n = 1031,
                                 .d = 16,
                                 .e = 16};
    const attention_case none = {
        .type = HAL_TYPE_F32, .groups = 1, .heads = 1, .m = 3, .n = 0, .d = 4, .e = 4};
    const attention_case whole = {.type = HAL_TYPE_BF16,
                                  .mask = MASK_CAUSAL,
                                  .groups = 1,
                                  .heads = 2,
                                  .m = 128,
                                  .n = 192,
                                  .d = 64,
                                  .e = 64,
                                  .form = OPS_ATTENTION_KERNEL,
                                  .precision = HAL_GEMM_FAST};
    const attention_case wide = {.type = HAL_TYPE_BF16,
                                 .groups = 1,
                                 .heads = 1,
                                 .m = 40,
                                 .n = 70,
                                 .d = 256,
                                 .e = 256,
                                 .form = OPS_ATTENTION_KERNEL,
                                 .precision = HAL_GEMM_FAST};
    add_attention(list, &line);
    add_attention(list, &none);
    add_attention(list, &whole);
    add_attention(list, &wide);
    add_tiles(list);
}

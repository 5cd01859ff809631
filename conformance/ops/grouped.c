/* grouped.c: products of groups of rows, with the bound of ops/gemm.h. There is NaN in rows of A
 * without a group, around the matrices and in C where beta is 0; rows of C without a group keep
 * what they had. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "ops/fixture.h"

enum { MOST_GROUPS = 40 };

/* How rows are divided: equally, with groups of none and one row between large ones, all in one
 * group, with rows before the first and after the last group. */
typedef enum division { EQUAL, MIXED, ONE_FULL, INSIDE, DIVISIONS } division;

static const char *const division_names[DIVISIONS] = {"equal", "mixed", "one_full", "inside"};

typedef struct grouped_case {
    hal_type type, type_c, type_offsets;
    int groups, rows, n, k;
    division division;
    operand_layout layout_a, layout_b, layout_c;
    double alpha, beta;
    uint32_t precision;
    bool has_bias, is_host;
    ops_gemm_impl impl; /* of offsets on the device */
} grouped_case;

typedef struct operands {
    operand a, b, c, bias, offsets;
    int64_t at[MOST_GROUPS + 1];
    uint8_t *old;
} operands;

static void divide_rows(const grouped_case *c, int64_t at[MOST_GROUPS + 1])
{
    const int64_t margin = c->division == INSIDE ? c->rows / 5 : 0, all = c->rows - 2 * margin;
    for (int i = 0; i <= c->groups; i++) {
        const int64_t equal = all * i / c->groups;
        const int64_t mixed = i % 4 == 0 ? equal : i % 4 == 1 ? at[i - 1] : at[i - 1] + 1;
        at[i] = c->division == MIXED      ? (mixed < all ? mixed : all)
                : c->division == ONE_FULL ? (i > c->groups / 2 ? all : 0)
                                          : margin + equal;
    }
    at[c->groups] = margin + all;
}

/* The group of a row; -1: none. */
static int group_of(const grouped_case *c, const int64_t *at, int64_t row)
{
    for (int i = 0; i < c->groups; i++) {
        if (row >= at[i] && row < at[i + 1]) {
            return i;
        }
    }
    return -1;
}

static void make_operands(case_run *run, const grouped_case *c, operands *o)
{
    const int64_t a[2] = {c->rows, c->k}, b[3] = {c->groups, c->k, c->n};
    const int64_t y[2] = {c->rows, c->n}, bias[3] = {c->groups, 1, c->n}, at[1] = {c->groups + 1};
    random_state random = {run->seed};
    divide_rows(c, o->at);
    o->a = operand_create(run, c->type, 2, a, c->layout_a);
    o->b = operand_create(run, c->type, 3, b, c->layout_b);
    o->c = operand_create(run, c->type_c, 2, y, c->layout_c);
    o->bias = operand_create(run, HAL_TYPE_F32, 3, bias, LAYOUT_PLAIN);
    o->offsets =
        operand_create(run, c->type_offsets, 1, at, c->is_host ? LAYOUT_PLAIN : LAYOUT_STRIDED);
    operand_fill(&o->a, &random, -1, 1);
    operand_fill(&o->b, &random, -1, 1);
    operand_fill(&o->c, &random, -1, 1);
    operand_fill(&o->bias, &random, -1, 1);
    for (int i = 0; i <= c->groups; i++) {
        number_put(c->type_offsets, o->offsets.elements, (size_t)i, (double)o->at[i]);
    }
    for (int64_t row = 0; row < c->rows; row++) {
        for (int k = 0; k < c->k && group_of(c, o->at, row) < 0; k++) {
            number_put(c->type, o->a.elements, (size_t)(row * c->k + k), (double)NAN);
        }
    }
    o->old = case_allocate(run, o->c.count + 1, 8);
    memcpy(o->old, o->c.elements, o->c.count * hal_type_size(c->type_c));
}

static void upload(case_run *run, operands *o)
{
    operand *const all[5] = {&o->a, &o->b, &o->c, &o->bias, &o->offsets};
    for (int i = 0; i < 5; i++) {
        operand_upload(run, all[i]);
    }
}

/* An element of C, and the sum of the magnitudes that its bound has. */
static long double reference_of(const grouped_case *c, const operands *o, size_t number,
                                long double *size)
{
    const size_t n = (size_t)c->n, k_all = (size_t)c->k, row = number / n, column = number % n;
    const int group = group_of(c, o->at, (int64_t)row);
    const long double before = (long double)number_get(c->type_c, o->old, number);
    *size = 0;
    if (group < 0) {
        return before;
    }
    long double sum = 0;
    for (size_t k = 0; k < k_all; k++) {
        const long double term =
            (long double)operand_get(&o->a, row * k_all + k) *
            (long double)operand_get(&o->b, ((size_t)group * k_all + k) * n + column);
        sum += term;
        *size += fabsl(term);
    }
    sum *= (long double)c->alpha;
    *size *= fabsl((long double)c->alpha);
    if (c->beta != 0) {
        sum += (long double)c->beta * before;
        *size += fabsl((long double)c->beta * before);
    }
    if (c->has_bias) {
        sum += (long double)operand_get(&o->bias, (size_t)group * n + column);
        *size += fabsl(sum);
    }
    return sum;
}

static void check_result(case_run *run, const grouped_case *c, operands *o)
{
    operand_download(run, &o->c, "C");
    long double *expected = case_allocate(run, o->c.count + 1, sizeof *expected);
    double *bounds = case_allocate(run, o->c.count + 1, sizeof *bounds);
    const bool is_f64 = c->type == HAL_TYPE_F64;
    const double u = number_roundoff(is_f64 ? HAL_TYPE_F64 : HAL_TYPE_F32);
    const double out = number_roundoff(c->type_c), steps = c->k + 4;
    /* FAST: one F32 operand rounded to 11 bits, the other cut off; sums of F8 without low bits. */
    const double fast = c->precision != HAL_GEMM_FAST ? 0
                        : c->type == HAL_TYPE_F8_E4M3 ? 0x1p-5
                                                      : 0x1p-9;
    for (size_t i = 0; i < o->c.count; i++) {
        long double size;
        expected[i] = reference_of(c, o, i, &size);
        const double error = (steps * u / (1 - steps * u) + fast) * (double)size +
                             out * fabs((double)expected[i]) + 0x1p-126;
        bounds[i] = group_of(c, o->at, (int64_t)i / c->n) < 0 ? 0
                    : isfinite(error)                         ? 1.001 * error
                                                              : 0;
    }
    operand_check_bounds(run, &o->c, expected, bounds, "C");
}

static void multiply(case_run *run, const grouped_case *c, operands *o)
{
    const ops_gemm_options options = {.size = sizeof options,
                                      .alpha = c->alpha,
                                      .beta = c->beta,
                                      .precision = c->precision,
                                      .impl = c->impl,
                                      .epilogue = c->has_bias ? expression_add_input(run) : NULL,
                                      .inputs = &o->bias.tensor,
                                      .input_count = c->has_bias ? 1 : 0};
    case_ok(run,
            ops_gemm_grouped(run->ops, &options, &o->a.tensor, &o->b.tensor,
                             c->is_host ? NULL : &o->offsets.tensor, c->is_host ? o->at : NULL,
                             &o->c.tensor),
            "ops_gemm_grouped");
}

static void claim_kind(case_run *run, const grouped_case *c)
{
    if (c->impl == OPS_GEMM_NATIVE) {
        case_claim_or_rewrite(run, false, "a native product of groups of this kind");
    }
    case_claim_storage(run, c->type);
    case_claim_storage(run, c->type_c);
    case_claim_storage(run, c->type_offsets);
    case_claim_arithmetic(run, c->type);
    case_claim_arithmetic(run, c->type_c);
}

static void run_grouped(case_run *run, const void *parameters)
{
    const grouped_case *c = parameters;
    operands o = {0};
    claim_kind(run, c);
    make_operands(run, c, &o);
    upload(run, &o);
    multiply(run, c, &o);
    check_result(run, c, &o);
}

/* Infinities, NaN and zeros in A, and in the B of the second group: others see only those of A. */
static void run_specials(case_run *run, const void *parameters)
{
    static const double corners[] = {
        0.0, -0.0, 1.0, -3.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 0x1p-60};
    enum { CORNERS = sizeof corners / sizeof corners[0] };
    const grouped_case *c = parameters;
    operands o = {0};
    claim_kind(run, c);
    make_operands(run, c, &o);
    for (size_t i = 0; i < o.a.count; i++) {
        number_put(c->type, o.a.elements, i, corners[i / (size_t)(1 + i % 2 * 7) % CORNERS]);
    }
    const size_t count = (size_t)c->k * (size_t)c->n;
    for (size_t i = count; i < 2 * count; i++) {
        number_put(c->type, o.b.elements, i, corners[i % CORNERS]);
    }
    upload(run, &o);
    multiply(run, c, &o);
    check_result(run, c, &o);
}

static void print_member(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    static const char *const classes[] = {"strict", "accurate", "fast"};
    static const char *const impls[] = {
        [OPS_GEMM_ANY] = "any", [OPS_GEMM_PORTABLE] = "portable", [OPS_GEMM_NATIVE] = "native"};
    const grouped_case *c = parameters;
    snprintf(name, bytes,
             "grouped(type=%s,c=%s,offsets=%s,groups=%d,rows=%d,n=%d,k=%d,division=%s,layouts=%s/"
             "%s/%s,class=%s,alpha=%g,beta=%g,bias=%d,impl=%s,seed=%llu)",
             hal_type_name(c->type), hal_type_name(c->type_c),
             c->is_host ? "host" : hal_type_name(c->type_offsets), c->groups, c->rows, c->n, c->k,
             division_names[c->division], layout_name(c->layout_a), layout_name(c->layout_b),
             layout_name(c->layout_c), classes[c->precision], c->alpha, c->beta, c->has_bias,
             impls[c->impl], (unsigned long long)seed);
}

static const case_family products = {
    .function = run_grouped, .bytes = sizeof(grouped_case), .print = print_member};

/* Offsets on the device: through both implementations, of which the plugin's has no kernel for sums
 * of no terms, and writes C by rows. */
static void add_case(case_list *list, const grouped_case *c)
{
    grouped_case added = *c;
    added.impl = c->is_host ? OPS_GEMM_ANY : OPS_GEMM_PORTABLE;
    case_add_member(list, &products, &added);
    if (!c->is_host && c->k > 0 && c->alpha != 0) {
        added.impl = OPS_GEMM_NATIVE;
        added.layout_c = LAYOUT_PLAIN;
        case_add_member(list, &products, &added);
    }
}

static void add_types(case_list *list, const grouped_case *plain)
{
    static const hal_type types[][2] = {
        {HAL_TYPE_F32, HAL_TYPE_F32},   {HAL_TYPE_F16, HAL_TYPE_F16},
        {HAL_TYPE_BF16, HAL_TYPE_BF16}, {HAL_TYPE_BF16, HAL_TYPE_F32},
        {HAL_TYPE_F64, HAL_TYPE_F64},   {HAL_TYPE_F8_E4M3, HAL_TYPE_F32}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        grouped_case c = *plain;
        c.type = types[i][0];
        c.type_c = types[i][1];
        add_case(list, &c);
        c.layout_b = LAYOUT_PERMUTED;
        c.division = INSIDE;
        c.type_offsets = HAL_TYPE_I64;
        c.precision = hal_type_size(c.type) <= 4 ? HAL_GEMM_FAST : HAL_GEMM_ACCURATE;
        c.rows = 300;
        c.n = c.k = 64;
        add_case(list, &c);
    }
}

static void add_variants(case_list *list, const grouped_case *plain)
{
    grouped_case c = *plain;
    for (int d = 0; d < DIVISIONS; d++) {
        c.division = (division)d;
        c.is_host = false;
        if (c.division != plain->division) {
            add_case(list, &c);
        }
        c.is_host = true;
        add_case(list, &c);
    }
    for (int layout = LAYOUT_OFFSET; layout <= LAYOUT_REVERSED; layout++) {
        c = *plain;
        c.layout_a = c.layout_b = c.layout_c = (operand_layout)layout;
        add_case(list, &c);
    }
    c = *plain;
    c.alpha = -0.5;
    c.beta = 2;
    add_case(list, &c);
    c.has_bias = true;
    add_case(list, &c);
    c.is_host = true;
    add_case(list, &c);
    c = *plain;
    c.k = 0;
    c.beta = 2;
    add_case(list, &c);
    c = *plain;
    c.alpha = 0;
    c.beta = 0.5;
    c.has_bias = true;
    add_case(list, &c);
    c = *plain; /* several tasks of a processor's thread for a group */
    c.rows = 2100;
    c.n = 600;
    c.k = 9;
    c.division = ONE_FULL;
    c.has_bias = true;
    add_case(list, &c);
    c = *plain; /* more groups than rows, one column, long sums */
    c.groups = MOST_GROUPS;
    c.rows = 23;
    add_case(list, &c);
    c.n = 1;
    add_case(list, &c);
    c.k = 1025;
    add_case(list, &c);
    c = *plain;
    c.groups = 1;
    c.n = 257;
    add_case(list, &c);
}

void cases_ops_grouped(case_list *list)
{
    const grouped_case plain = {.type = HAL_TYPE_F32,
                                .type_c = HAL_TYPE_F32,
                                .type_offsets = HAL_TYPE_I32,
                                .groups = 9,
                                .rows = 150,
                                .n = 36,
                                .k = 40,
                                .division = MIXED,
                                .alpha = 1};
    add_types(list, &plain);
    add_variants(list, &plain);
    grouped_case c = plain;
    c.groups = 3;
    c.division = EQUAL;
    c.rows = 96;
    c.n = 40;
    c.k = 2;
    c.impl = OPS_GEMM_PORTABLE;
    case_add(list, run_specials, &c, sizeof c, "grouped(specials,impl=portable)");
    c.impl = OPS_GEMM_NATIVE;
    case_add(list, run_specials, &c, sizeof c, "grouped(specials,impl=native)");
}

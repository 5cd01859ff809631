/* gemm_exact.c: products of the class EXACT on numbers that are hard for it. Each element has to
 * have the bits that the definition in docs/exact.md gives, computed here in integers of 128 bits,
 * and to be within the bound of strict arithmetic in long double (promise 17). */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case/cases.h"
#include "ops/fixture.h"

__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;

enum { FEW_STEPS = 16, SIGNIFICAND = 53, INFINITE = 2047 };

typedef enum exact_data {
    DATA_NORMAL,  /* sums of uniform numbers */
    DATA_EQUAL,   /* two numbers that are equal in all bits, so that products cancel */
    DATA_APART,   /* the columns of A grow as the rows of B fall, over 80 binades */
    DATA_ANY,     /* any finite numbers */
    DATA_SMALL,   /* whose products are subnormal, or 0 */
    DATA_ZEROS,   /* three of four are 0, as are whole rows and columns */
    DATA_SPECIAL, /* some are infinite or NaN */
    DATA_LARGE,   /* whose products are next to the largest number */
    DATA_BANDS,   /* lines begin and end with 0; one has an infinity there */
    DATA_COUNT
} exact_data;

static const char *const data_names[DATA_COUNT] = {"normal", "equal",   "apart", "any",  "small",
                                                   "zeros",  "special", "large", "bands"};

typedef struct exact_case {
    int m, n, k;
    exact_data data;
} exact_case;

/* ---- The definition ---- */

typedef struct number {
    uint64_t significand; /* 53 bits */
    int exponent;         /* biased, at least 1 */
    bool is_negative;
} number;

static number number_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int stored = (int)(bits >> 52 & INFINITE);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    return (number){.significand = fraction | (uint64_t)(stored > 0) << 52,
                    .exponent = stored > 0 ? stored : 1,
                    .is_negative = bits >> 63 != 0};
}

/* x 2^exponent rounded once, to nearest even. */
static double round_wide(wide_signed x, int exponent)
{
    wide_unsigned magnitude = x < 0 ? -(wide_unsigned)x : (wide_unsigned)x;
    if (magnitude == 0) {
        return 0.0;
    }
    int bits = 128;
    while (!(magnitude >> (bits - 1))) {
        bits--;
    }
    int dropped = bits - SIGNIFICAND;
    dropped = exponent + dropped < -1074 ? -1074 - exponent : dropped;
    wide_unsigned kept = magnitude;
    if (dropped > 0) {
        const wide_unsigned below =
            dropped < 128 ? magnitude & (((wide_unsigned)1 << dropped) - 1) : magnitude;
        const wide_unsigned half = dropped <= 128 ? (wide_unsigned)1 << (dropped - 1) : 0;
        kept = dropped < 128 ? magnitude >> dropped : 0;
        kept += half && (below > half || (below == half && (kept & 1)));
        exponent += dropped;
    }
    const double value = ldexp((double)(uint64_t)kept, exponent);
    return x < 0 ? -value : value;
}

/* The sum of products in a window below the largest exponent. */
static double sum_in_window(const double *x, const double *y, size_t steps)
{
    int largest = 0;
    wide_signed sum = 0;
    bool has_nan = false, has_plus = false, has_minus = false;
    for (size_t i = 0; i < steps; i++) {
        const double product = isfinite(x[i]) && isfinite(y[i]) ? 0.0 : x[i] * y[i];
        const int both = number_of(x[i]).exponent + number_of(y[i]).exponent;
        has_nan = has_nan || isnan(product);
        has_plus = has_plus || product > 0.0;
        has_minus = has_minus || product < 0.0;
        largest = x[i] != 0.0 && y[i] != 0.0 && both > largest ? both : largest;
    }
    if (has_nan || (has_plus && has_minus)) {
        return (double)NAN;
    }
    if (has_plus || has_minus) {
        return has_plus ? (double)INFINITY : -(double)INFINITY;
    }
    for (size_t i = 0; i < steps; i++) {
        const number p = number_of(x[i]), q = number_of(y[i]);
        const int lower = largest - p.exponent - q.exponent;
        wide_unsigned term = (wide_unsigned)p.significand * q.significand << 6;
        term = lower >= 0 && lower < 128 ? term >> lower : 0;
        sum += p.is_negative != q.is_negative ? -(wide_signed)term : (wide_signed)term;
    }
    return round_wide(sum, largest - 2156);
}

/* Of a row or column: the largest biased exponent, 0 of zeros, 2047 with an infinity or NaN. */
static int line_exponent(const double *x, size_t steps)
{
    int largest = 0;
    for (size_t i = 0; i < steps; i++) {
        const int exponent = isfinite(x[i]) ? number_of(x[i]).exponent : INFINITE;
        largest = x[i] != 0.0 && exponent > largest ? exponent : largest;
    }
    return largest;
}

static int64_t whole_number(double x, int line, int bits)
{
    const number p = number_of(x);
    const int shift = line - p.exponent; /* negative in a line of zeros */
    const bool is_in_line = shift >= 0 && shift < 64;
    const uint64_t whole = is_in_line ? p.significand << (bits - SIGNIFICAND) >> shift : 0;
    return p.is_negative ? -(int64_t)whole : (int64_t)whole;
}

/* The element from a row and a column of at most 16384 steps. */
static double element_of(const double *x, const double *y, size_t steps)
{
    const int x_line = line_exponent(x, steps), y_line = line_exponent(y, steps);
    int bits = 123;
    for (size_t i = 1; i < steps; i *= 2) {
        bits--;
    }
    bits /= 2;
    if (steps <= FEW_STEPS || x_line == INFINITE || y_line == INFINITE) {
        return sum_in_window(x, y, steps);
    }
    wide_signed sum = 0;
    int64_t magnitudes = 0;
    for (size_t i = 0; i < steps; i++) {
        const int64_t p = whole_number(x[i], x_line, bits), q = whole_number(y[i], y_line, bits);
        sum += (wide_signed)p * q;
        magnitudes += (llabs(p) >> (bits - 7)) * (llabs(q) >> (bits - 7));
    }
    const bool holds = magnitudes >= INT64_C(1) << (69 - bits) || x_line == 0 || y_line == 0;
    return holds ? round_wide(sum, x_line + y_line - 2044 - 2 * bits) : sum_in_window(x, y, steps);
}

/* ---- Cases ---- */

static double draw(random_state *random, exact_data data)
{
    static const double specials[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0.0};
    const double usual = random_between(random, -1.0, 1.0);
    switch (data) {
    case DATA_EQUAL:
        return random_below(random, 2) ? 0x1.fffffffffffffp0 : -0x1.fffffffffffffp0;
    case DATA_ANY: {
        const uint64_t bits = random_bits(random, HAL_TYPE_F64);
        double value;
        memcpy(&value, &bits, sizeof value);
        return isfinite(value) ? value : usual;
    }
    case DATA_SMALL:
        return ldexp(usual, -500 - (int)random_below(random, 600));
    case DATA_ZEROS:
        return random_below(random, 4) ? 0.0 : usual;
    case DATA_SPECIAL:
        return random_below(random, 200) ? usual : specials[random_below(random, 4)];
    case DATA_LARGE:
        return ldexp(usual, 511);
    default:
        return usual + random_between(random, -1.0, 1.0);
    }
}

/* Rows of A, or columns of B, as rows. */
static double *lines_create(case_run *run, const exact_case *p, bool is_left, random_state *random)
{
    const size_t lines = (size_t)(is_left ? p->m : p->n), k = (size_t)p->k;
    double *made = case_allocate(run, lines * k, sizeof(double));
    for (size_t i = 0; i < lines * k; i++) {
        made[i] = draw(random, p->data);
        const int power = (int)(i % k * 80 / k);
        if (p->data == DATA_APART) {
            made[i] = ldexp(made[i], is_left ? power : -power);
        }
        const size_t line = i / k, band = i % k * lines / k;
        const bool is_outside = (band > line ? band - line : line - band) > lines / 4;
        if (p->data == DATA_ZEROS ? line == lines / 2 : p->data == DATA_BANDS && is_outside) {
            made[i] = i == k * (lines - 1) ? (double)INFINITY : 0.0;
        }
    }
    return made;
}

/* The bound of ops_gemm, where it holds: nothing is infinite or overflows. */
static void check_bound(case_run *run, const double *x, const double *y, size_t k, double got)
{
    long double sum = 0, size = 0;
    for (size_t i = 0; i < k; i++) {
        sum += (long double)x[i] * y[i];
        size += fabsl((long double)x[i] * y[i]);
    }
    const long double u = 0x1p-53L, bound = (long double)(k + 2) * u * size + 0x1p-1074L;
    case_check(run, !(size < (long double)DBL_MAX) || fabsl(got - sum) <= bound,
               "an element is %.17g instead of %.17Lg, beyond the bound of %.3Lg", got, sum, bound);
}

static void run_exact(case_run *run, const void *parameters)
{
    const exact_case *p = parameters;
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    const int64_t a_shape[2] = {p->m, p->k}, b_shape[2] = {p->k, p->n}, c_shape[2] = {p->m, p->n};
    random_state random = {run->seed};
    double *rows = lines_create(run, p, true, &random);
    double *columns = lines_create(run, p, false, &random);
    double *expected = case_allocate(run, m * n, sizeof(double));
    operand a = operand_create(run, HAL_TYPE_F64, 2, a_shape, LAYOUT_OFFSET);
    operand b = operand_create(run, HAL_TYPE_F64, 2, b_shape, LAYOUT_STRIDED);
    operand c = operand_create(run, HAL_TYPE_F64, 2, c_shape, LAYOUT_PERMUTED);
    memcpy(a.elements, rows, m * k * sizeof(double));
    for (size_t i = 0; i < k * n; i++) {
        number_put(HAL_TYPE_F64, b.elements, i, columns[i % n * k + i / n]);
    }
    operand_upload(run, &a);
    operand_upload(run, &b);
    operand_poison(run, &c);
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_EXACT;
    case_ok(run, ops_gemm(run->ops, &options, &a.tensor, &b.tensor, &c.tensor), "ops_gemm");
    operand_download(run, &c, "C");
    for (size_t i = 0; i < m * n; i++) {
        const double *x = rows + i / n * k, *y = columns + i % n * k;
        expected[i] = element_of(x, y, k);
        check_bound(run, x, y, k, operand_get(&c, i));
    }
    operand_check_bits(run, &c, expected, true, "C");
}

void cases_ops_gemm_exact(case_list *list)
{
    static const int sizes[][3] = {{9, 7, 5}, {33, 20, 100}, {5, 6, 2000}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int data = 0; data < DATA_COUNT; data++) {
            const exact_case tested = {
                .m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2], .data = (exact_data)data};
            case_add(list, run_exact, &tested, sizeof tested,
                     "exact(data=%s,m=%d,n=%d,k=%d,seed=%llu)", data_names[data], tested.m,
                     tested.n, tested.k, (unsigned long long)list->seed);
        }
    }
}

/* complex.c: functions and arithmetic of complex arrays, their special values, products, and the
 * same bits with fusion and without, against the C library in long double. */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/complex.h>

#include "case/cases.h"
#include "ops/array_fixture.h"
#include "ops/fixture.h"

typedef long double complex number;

/* Units of roundoff, relative to |f(z)|, that docs/operators.md states. */
#define BOUND 8.0

enum { RANDOM_POINTS = 1200, SPECIALS = 16 };
enum { POINTS = SPECIALS * SPECIALS + RANDOM_POINTS };

typedef struct complex_case {
    hal_type type;
    int function;
} complex_case;

static number make(long double re, long double im)
{
    const long double parts[2] = {re, im};
    number z;
    memcpy(&z, parts, sizeof z);
    return z;
}

static number scaled(number z, long double factor)
{
    return make(creall(z) * factor, cimagl(z) * factor);
}

/* ---- References ---- */

/* cexp(z) - 1 without a loss near 0. */
static number exponential_minus_1(number z)
{
    const long double x = creall(z), y = cimagl(z), s = sinl(y / 2);
    if (!isfinite(x) || !isfinite(y) || y == 0) {
        const number e = cexpl(z);
        return make(y == 0 ? expm1l(x) + 0.0L : creall(e) - 1, y == 0 ? y : cimagl(e));
    }
    return make(expm1l(x) * cosl(y) - 2 * s * s, expl(x) * sinl(y));
}

static number logarithm_1(number z)
{
    const long double x = creall(z), y = cimagl(z);
    const bool is_near = fabsl(x) < 0.5L && fabsl(y) < 0.5L;
    return is_near ? make(log1pl(2 * x + x * x + y * y) / 2, atan2l(y, 1 + x))
                   : clogl(make(1 + x, y));
}

static number direction(number z)
{
    const long double size = cabsl(z);
    return size == 0 ? make(0, 0) : make(creall(z) / size, cimagl(z) / size);
}

static number inverse_reference(ops_complex_unary_function function, number z)
{
    switch (function) {
    case OPS_COMPLEX_ASIN:
        return casinl(z);
    case OPS_COMPLEX_ACOS:
        return cacosl(z);
    case OPS_COMPLEX_ATAN:
        return catanl(z);
    case OPS_COMPLEX_ASINH:
        return casinhl(z);
    case OPS_COMPLEX_ACOSH:
        return cacoshl(z);
    default:
        return catanhl(z);
    }
}

static number unary_reference(ops_complex_unary_function function, number z)
{
    switch (function) {
    case OPS_COMPLEX_ABS:
        return make(cabsl(z), 0);
    case OPS_COMPLEX_ANGLE:
        return make(cargl(z), 0);
    case OPS_COMPLEX_CONJ:
        return conjl(z);
    case OPS_COMPLEX_SIGN:
        return direction(z);
    case OPS_COMPLEX_SQRT:
        return csqrtl(z);
    case OPS_COMPLEX_EXP:
        return cexpl(z);
    case OPS_COMPLEX_EXPM1:
        return exponential_minus_1(z);
    case OPS_COMPLEX_LOG:
        return clogl(z);
    case OPS_COMPLEX_LOG2:
        return scaled(clogl(z), 1.442695040888963407359924681001892L);
    case OPS_COMPLEX_LOG10:
        return scaled(clogl(z), 0.4342944819032518276511289189166051L);
    case OPS_COMPLEX_LOG1P:
        return logarithm_1(z);
    case OPS_COMPLEX_SIN:
        return csinl(z);
    case OPS_COMPLEX_COS:
        return ccosl(z);
    case OPS_COMPLEX_TAN:
        return ctanl(z);
    case OPS_COMPLEX_SINH:
        return csinhl(z);
    case OPS_COMPLEX_COSH:
        return ccoshl(z);
    case OPS_COMPLEX_TANH:
        return ctanhl(z);
    default:
        return inverse_reference(function, z);
    }
}

/* Products and quotients by the textbook: those of C put infinities in. */
static number binary_reference(ops_complex_binary_function function, number x, number y)
{
    const long double a = creall(x), b = cimagl(x), c = creall(y), d = cimagl(y);
    const long double size = c * c + d * d;
    switch (function) {
    case OPS_COMPLEX_ADD:
        return make(a + c, b + d);
    case OPS_COMPLEX_SUB:
        return make(a - c, b - d);
    case OPS_COMPLEX_MUL:
        return make(a * c - b * d, a * d + b * c);
    case OPS_COMPLEX_DIV:
        return make((a * c + b * d) / size, (b * c - a * d) / size);
    default:
        return cpowl(x, y);
    }
}

/* ---- Points ---- */

static double part_get(hal_type type, const void *parts, size_t i)
{
    return number_get(type, parts, i);
}

static number point_get(hal_type type, const void *points, size_t i)
{
    return make((long double)part_get(type, points, 2 * i),
                (long double)part_get(type, points, 2 * i + 1));
}

/* All pairs of special parts; then points near 0, 1, i, on the unit circle and anywhere. */
static void points_fill(case_run *run, hal_type type, void *points)
{
    static const double specials[SPECIALS] = {
        0.0,  -0.0, 1.0,   -1.0, 0.5,        -2.0, (double)INFINITY, 3e-5, 1e3,
        50.0, -90., 1e-30, 1e30, -0.9999999, 1.5,  (double)NAN};
    random_state random = {run->seed};
    for (size_t i = 0; i < POINTS; i++) {
        double re = specials[i / SPECIALS % SPECIALS], im = specials[i % SPECIALS];
        if (i >= SPECIALS * SPECIALS) {
            const double size = i % 4 == 0 ? 1e-3 : i % 4 == 1 ? 10 : i % 4 == 2 ? 1 : 1e-6;
            re = random_between(&random, -size, size) + (i % 8 == 0 ? 1 : 0);
            im = random_between(&random, -size, size) + (i % 8 == 4 ? 1 : 0);
            if (i % 8 == 1) {
                re = cos(im);
                im = sin(im);
            }
        }
        number_put(type, points, 2 * i, re);
        number_put(type, points, 2 * i + 1, im);
    }
}

/* ---- Functions ---- */

/* A part that is infinite, NaN or 0. Annex G leaves signs open where a part of z is NaN, and where
 * both are infinite. */
static bool special_fits(long double expected, double found, bool has_sign)
{
    if (isnan(expected) || isnan(found)) {
        return isnan(expected) && isnan(found);
    }
    return fabsl(expected) == (long double)fabs(found) &&
           (!has_sign || !signbit(expected) == !signbit(found));
}

/* Rounded to the type, so that what it does not hold is infinite. */
static long double rounded_part(hal_type type, long double part)
{
    return type == HAL_TYPE_F32 ? (long double)(float)part : (long double)(double)part;
}

/* Whether the real part has the bound by itself, also where it is nearly 0: of logarithms. */
static bool has_exact_real_part(ops_complex_unary_function function)
{
    return function == OPS_COMPLEX_LOG || function == OPS_COMPLEX_LOG2 ||
           function == OPS_COMPLEX_LOG10 || function == OPS_COMPLEX_LOG1P;
}

static void judge_point(case_run *run, hal_type type, const char *name, number z, number expected,
                        const double *found, uint32_t parts, double slack)
{
    const double u = number_roundoff(type);
    const double least = type == HAL_TYPE_F32 ? 0x1p-126 : 0x1p-1022;
    const bool has_sign =
        !isnan(creall(z)) && !isnan(cimagl(z)) && !(isinf(creall(z)) && isinf(cimagl(z)));
    const long double both[2] = {creall(expected), cimagl(expected)};
    bool is_special = false;
    for (uint32_t i = 0; i < parts; i++) {
        const long double part = rounded_part(type, both[i]);
        const bool own = !isfinite(part) || !isfinite(found[i]) || both[i] == 0;
        is_special |= own;
        case_check(run, !own || special_fits(part, found[i], has_sign),
                   "%s of (%Lg, %Lg): part %u: expected %Lg, got %g", name, creall(z), cimagl(z), i,
                   part, found[i]);
    }
    if (is_special && parts > 1 && !(isfinite(found[0]) && isfinite(found[1]))) {
        return;
    }
    const number got = make((long double)found[0], parts > 1 ? (long double)found[1] : 0);
    const long double size = cabsl(expected), bound = (long double)(slack * u) * size;
    const long double error = cabsl(make(creall(got) - both[0], cimagl(got) - both[1]));
    case_check(run, !(error > bound + 4 * (long double)least),
               "%s of (%Lg, %Lg): expected (%Lg, %Lg), got (%g, %g), an error of %Lg units", name,
               creall(z), cimagl(z), both[0], both[1], found[0], parts > 1 ? found[1] : 0.0,
               error / size / (long double)u);
}

static void run_unary(case_run *run, const void *parameters)
{
    const complex_case *t = parameters;
    const ops_complex_unary_function function = (ops_complex_unary_function)t->function;
    const int64_t shape[2] = {POINTS, 2};
    const uint32_t parts = function > OPS_COMPLEX_ANGLE ? 2 : 1;
    const size_t bytes = hal_type_size(t->type);
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    void *points = case_allocate(run, (size_t)POINTS * 2, bytes);
    void *results = case_allocate(run, (size_t)POINTS * 2, bytes);
    points_fill(run, t->type, points);
    scope_begin(run);
    ops_array *x = ops_array_from_host(run->ops, t->type, 2, shape, points);
    ops_array *y = ops_complex_unary(function, x);
    case_ok(run, read_claimed(run, y, POINTS * parts * bytes, results), "ops_array_read");
    scope_end(run);
    for (size_t i = 0; i < POINTS; i++) {
        const number z = point_get(t->type, points, i);
        const double found[2] = {part_get(t->type, results, parts * i),
                                 part_get(t->type, results, parts * i + parts - 1)};
        const number expected = unary_reference(function, z);
        judge_point(run, t->type, ops_complex_unary_name(function), z, expected, found, parts,
                    BOUND);
        if (has_exact_real_part(function) && isfinite(creall(expected))) {
            const double u = number_roundoff(t->type), size = (double)fabsl(creall(expected));
            const double error = (double)fabsl((long double)found[0] - creall(expected));
            case_check(run, error <= BOUND * u * (size + 4 * u),
                       "%s of (%Lg, %Lg): real part: expected %Lg, got %g",
                       ops_complex_unary_name(function), creall(z), cimagl(z), creall(expected),
                       found[0]);
        }
    }
}

/* ---- Arithmetic ---- */

/* Numbers of any size for quotients, of which products and powers are left out where the type does
 * not hold them. */
static void operands_fill(case_run *run, const complex_case *t, void *x, void *y)
{
    const int most = t->type == HAL_TYPE_F32 ? 36 : 300;
    random_state random = {run->seed};
    for (size_t i = 0; i < POINTS; i++) {
        const int limit = t->function == OPS_COMPLEX_DIV ? most : 3;
        const int size = i % 4 == 0 ? 0 : (int)random_between(&random, -limit, limit);
        const int other = i % 2 == 0 ? 0 : (int)random_between(&random, -limit, limit);
        for (size_t part = 0; part < 2; part++) {
            number_put(t->type, x, 2 * i + part, random_between(&random, -1, 1) * pow(10, size));
            number_put(t->type, y, 2 * i + part,
                       random_between(&random, -1, 1) *
                           pow(10, t->function == OPS_COMPLEX_POW ? 0 : other));
        }
    }
}

static void run_binary(case_run *run, const void *parameters)
{
    const complex_case *t = parameters;
    const ops_complex_binary_function function = (ops_complex_binary_function)t->function;
    const int64_t shape[2] = {POINTS, 2};
    const size_t bytes = hal_type_size(t->type);
    const long double most = t->type == HAL_TYPE_F32 ? 0x1p126L : 0x1p1022L;
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    void *x = case_allocate(run, (size_t)POINTS * 2, bytes);
    void *y = case_allocate(run, (size_t)POINTS * 2, bytes);
    void *z = case_allocate(run, (size_t)POINTS * 2, bytes);
    operands_fill(run, t, x, y);
    scope_begin(run);
    ops_array *made =
        ops_complex_binary(function, ops_array_from_host(run->ops, t->type, 2, shape, x),
                           ops_array_from_host(run->ops, t->type, 2, shape, y));
    case_ok(run, read_claimed(run, made, POINTS * 2 * bytes, z), "ops_array_read");
    scope_end(run);
    for (size_t i = 0; i < POINTS; i++) {
        const number a = point_get(t->type, x, i), b = point_get(t->type, y, i);
        const number expected = binary_reference(function, a, b);
        const double found[2] = {part_get(t->type, z, 2 * i), part_get(t->type, z, 2 * i + 1)};
        if (cabsl(expected) < most && cabsl(expected) * most > 1) {
            /* A power has the error of its exponent y log(x). */
            const number turn = function == OPS_COMPLEX_POW ? b * clogl(a) : make(0, 0);
            judge_point(run, t->type, ops_complex_binary_name(function), a, expected, found, 2,
                        BOUND * (1 + (double)cabsl(turn)));
        }
    }
}

/* Quotients and powers that have no number between, and comparisons. */
static void run_special(case_run *run, const void *parameters)
{
    enum { COUNT = 6 };
    const float inf = (float)INFINITY;
    const int64_t shape[2] = {COUNT, 2};
    const float x[COUNT][2] = {{1, 2}, {3e38F, 3e38F}, {0, 0}, {0, 0}, {1e-38F, 0}, {1, -0.0F}};
    const float y[COUNT][2] = {{inf, 1}, {3e38F, 3e38F}, {0, 0}, {2, 1}, {1e-38F, 0}, {1, 0}};
    const float quotients[COUNT] = {0, 1, (float)NAN, 0, 1, 1};
    const float powers[COUNT] = {(float)NAN, (float)NAN, 1, 0, 1, 1};
    float found[COUNT][2];
    uint8_t equal[COUNT];
    scope_begin(run);
    ops_array *a = ops_array_from_host(run->ops, HAL_TYPE_F32, 2, shape, x);
    ops_array *b = ops_array_from_host(run->ops, HAL_TYPE_F32, 2, shape, y);
    case_ok(run, read_claimed(run, ops_complex_binary(OPS_COMPLEX_DIV, a, b), sizeof found, found),
            "quotients");
    for (size_t i = 0; i < COUNT; i++) {
        case_check(run,
                   isnan(quotients[i]) ? isnan(found[i][0]) != 0
                                       : fabsf(found[i][0] - quotients[i]) < 1e-6F,
                   "quotient %zu: expected %g, got %g", i, (double)quotients[i],
                   (double)found[i][0]);
    }
    case_ok(run, read_claimed(run, ops_complex_binary(OPS_COMPLEX_POW, a, b), sizeof found, found),
            "powers");
    for (size_t i = 2; i < COUNT; i++) {
        case_check(run, fabsf(found[i][0] - powers[i]) < 1e-6F && fabsf(found[i][1]) < 1e-6F,
                   "power %zu: expected %g, got (%g, %g)", i, (double)powers[i],
                   (double)found[i][0], (double)found[i][1]);
    }
    for (int is_ne = 0; is_ne < 2; is_ne++) {
        case_ok(run,
                read_claimed(run, ops_complex_binary(OPS_COMPLEX_EQ + (unsigned)is_ne, a, b), COUNT,
                             equal),
                "comparisons");
        for (size_t i = 0; i < COUNT; i++) {
            const bool same = x[i][0] == y[i][0] && x[i][1] == y[i][1];
            case_check(run, (equal[i] != 0) == (same != (is_ne != 0)), "comparison %zu: got %d", i,
                       equal[i]);
        }
    }
    case_ok(run, read_claimed(run, ops_complex_test(OPS_IS_FINITE, b), COUNT, equal), "tests");
    case_check(run, !equal[0] && equal[1] && equal[5], "is_finite: got %d %d %d", equal[0],
               equal[1], equal[5]);
    case_ok(run, read_claimed(run, ops_complex_test(OPS_IS_INFINITE, b), COUNT, equal), "tests");
    case_check(run, equal[0] && !equal[1], "is_infinite: got %d %d", equal[0], equal[1]);
    scope_end(run);
}

/* ---- Products ---- */

enum { BATCH = 2, ROWS = 5, DEPTH = 7, COLUMNS = 3 };

static double *random_parts(case_run *run, random_state *random, size_t count)
{
    double *parts = case_allocate(run, 2 * count, sizeof *parts);
    for (size_t i = 0; i < 2 * count; i++) {
        parts[i] = random_between(random, -1, 1);
    }
    return parts;
}

/* F64 numbers as an array of the type, which rounds them, and they are rounded alike. */
static ops_array *array_of(case_run *run, hal_type type, uint32_t rank, const int64_t *shape,
                           double *parts, size_t count)
{
    void *elements = case_allocate(run, 2 * count, hal_type_size(type));
    for (size_t i = 0; i < 2 * count; i++) {
        number_put(type, elements, i, parts[i]);
        parts[i] = number_get(type, elements, i);
    }
    return ops_array_from_host(run->ops, type, rank, shape, elements);
}

static void check_near(case_run *run, hal_type type, const void *found, size_t i, number expected,
                       double bound, const char *what)
{
    const number z = point_get(type, found, i);
    const long double error =
        cabsl(make(creall(z) - creall(expected), cimagl(z) - cimagl(expected)));
    case_check(run, error <= (long double)(bound * number_roundoff(type)),
               "%s %zu: expected (%Lg, %Lg), got (%Lg, %Lg)", what, i, creall(expected),
               cimagl(expected), creall(z), cimagl(z));
}

/* Lengths of a product: of the batch, 0 for none, and m, k, n. */
static void check_matrix(case_run *run, hal_type type, random_state *random, const int64_t of[4])
{
    const int64_t rows[4] = {of[0], of[1], of[2], 2}, columns[4] = {of[0], of[2], of[3], 2};
    const uint32_t skipped = of[0] == 0, rank = 4 - skipped;
    const size_t batches = skipped ? 1 : (size_t)of[0], m = (size_t)of[1], k = (size_t)of[2];
    const size_t n = (size_t)of[3];
    double *a = random_parts(run, random, batches * m * k);
    double *b = random_parts(run, random, batches * k * n);
    void *found = case_allocate(run, batches * m * n * 2, hal_type_size(type));
    scope_begin(run);
    ops_array *x = array_of(run, type, rank, rows + skipped, a, batches * m * k);
    ops_array *y = array_of(run, type, rank, columns + skipped, b, batches * k * n);
    case_ok(run,
            read_claimed(run, ops_complex_matmul(x, y, HAL_GEMM_STRICT),
                         (uint64_t)(batches * m * n * 2) * hal_type_size(type), found),
            "ops_complex_matmul");
    scope_end(run);
    for (size_t i = 0; i < batches * m * n; i++) {
        const size_t row = i / n, batch = row / m, column = i % n;
        number sum = make(0, 0);
        for (size_t p = 0; p < k; p++) {
            sum += binary_reference(OPS_COMPLEX_MUL, point_get(HAL_TYPE_F64, a, row * k + p),
                                    point_get(HAL_TYPE_F64, b, (batch * k + p) * n + column));
        }
        check_near(run, type, found, i, sum, 4.0 * (double)(k * k), "product");
    }
}

/* Of matrices of which either is copied, by their lengths. */
static void run_matrix(case_run *run, const void *parameters)
{
    static const int64_t lengths[][4] = {
        {BATCH, ROWS, DEPTH, COLUMNS}, {BATCH, 2, 7, 35}, {0, 1, 19, 40}, {0, 21, 6, 1}};
    const hal_type type = *(const hal_type *)parameters;
    random_state random = {run->seed};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_matrix(run, type, &random, lengths[i]);
    }
}

/* Sums and means of lines, whose numbers are neighbours, of lengths around those from which on they
 * are summed side by side. */
static void check_lines(case_run *run, hal_type type, random_state *random)
{
    enum { ROWS_OF_LINES = 3 };
    static const int64_t lengths[] = {63, 64, 77, 160};
    for (size_t turn = 0; turn < 2 * sizeof lengths / sizeof *lengths; turn++) {
        const int64_t shape[3] = {ROWS_OF_LINES, lengths[turn / 2], 2};
        const size_t n = (size_t)shape[1];
        const bool is_mean = turn % 2;
        double *x = random_parts(run, random, ROWS_OF_LINES * n);
        void *found = case_allocate(run, 2 * ROWS_OF_LINES, hal_type_size(type));
        scope_begin(run);
        ops_array *array = array_of(run, type, 3, shape, x, ROWS_OF_LINES * n);
        ops_array *reduced =
            ops_complex_reduce(is_mean ? OPS_REDUCE_MEAN : OPS_REDUCE_SUM, -1, is_mean, array);
        case_ok(run, read_claimed(run, reduced, 2 * ROWS_OF_LINES * hal_type_size(type), found),
                "reduce");
        scope_end(run);
        for (size_t i = 0; i < ROWS_OF_LINES; i++) {
            number sum = make(0, 0);
            for (size_t k = 0; k < n; k++) {
                sum += point_get(HAL_TYPE_F64, x, i * n + k);
            }
            check_near(run, type, found, i, is_mean ? sum / (double)n : sum, (double)(n * n),
                       is_mean ? "mean of a line" : "sum of a line");
        }
    }
}

/* Sums, means and products of lengths from 0 on along the middle axis of [2, n, 3]. */
static void run_reductions(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    random_state random = {run->seed};
    enum { MOST = 9 };
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (int64_t n = 0; n <= MOST; n++) {
        const int64_t shape[4] = {2, n, 3, 2};
        const size_t count = (size_t)n * 6;
        double *x = random_parts(run, &random, count + 1);
        void *found = case_allocate(run, 2 * (count + 6), hal_type_size(type));
        scope_begin(run);
        ops_array *array = array_of(run, type, 4, shape, x, count);
        for (int product = 0; product < 2; product++) {
            ops_array *reduced =
                ops_complex_reduce(product ? OPS_REDUCE_PRODUCT : OPS_REDUCE_SUM, 1, 0, array);
            case_ok(run, read_claimed(run, reduced, 12 * hal_type_size(type), found), "reduce");
            for (size_t i = 0; i < 6; i++) {
                number all = make(product, 0);
                for (size_t k = 0; k < (size_t)n; k++) {
                    const number z =
                        point_get(HAL_TYPE_F64, x, (i / 3 * (size_t)n + k) * 3 + i % 3);
                    all = product ? binary_reference(OPS_COMPLEX_MUL, all, z) : all + z;
                }
                check_near(run, type, found, i, all, 4.0 * MOST * MOST,
                           product ? "product" : "sum");
            }
            if (n == 0) {
                continue;
            }
            ops_array *scan = ops_complex_scan(product ? OPS_SCAN_PRODUCT : OPS_SCAN_SUM, 1, array);
            case_ok(run, read_claimed(run, scan, 2 * count * hal_type_size(type), found), "scan");
            for (size_t i = 0; i < 6; i++) {
                number all = make(product, 0);
                for (size_t k = 0; k < (size_t)n; k++) {
                    const size_t at = (i / 3 * (size_t)n + k) * 3 + i % 3;
                    const number z = point_get(HAL_TYPE_F64, x, at);
                    all = product ? binary_reference(OPS_COMPLEX_MUL, all, z) : all + z;
                    check_near(run, type, found, at, all, 4.0 * MOST * MOST, "beginning");
                }
            }
        }
        scope_end(run);
    }
    check_lines(run, type, &random);
}

/* ---- Fusion ---- */

/* Functions of a result that is not computed yet, which other results read too. */
static void program_functions(array_run *r)
{
    static const ops_complex_unary_function functions[] = {
        OPS_COMPLEX_ABS, OPS_COMPLEX_SQRT, OPS_COMPLEX_LOG, OPS_COMPLEX_TANH, OPS_COMPLEX_ACOS};
    scope_begin(r->run);
    ops_array *x = r->leaves[0], *y = r->leaves[1];
    ops_array *z = ops_complex_binary(OPS_COMPLEX_MUL, x, y);
    for (uint32_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        array_note(r, ops_complex_unary(functions[i], z), "function");
    }
    array_note(r, ops_complex_binary(OPS_COMPLEX_DIV, z, x), "quotient");
    array_note(r, ops_complex_binary(OPS_COMPLEX_NE, z, x), "comparison");
    ops_array *joined = ops_complex_join(ops_complex_imag(z), ops_complex_real(x));
    array_note(r, ops_complex_unary(OPS_COMPLEX_EXP, joined), "parts exchanged");
    array_note(r, z, "product");
    scope_end(r->run);
}

static void run_both_ways(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[2] = {40, 2}, one[2] = {1, 2};
    array_run r = {.run = run, .random = {run->seed}};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    array_add_leaf(&r, type, 2, shape, -2, 2, NULL);
    array_add_leaf(&r, type, 2, one, -2, 2, NULL);
    array_run_both_ways(&r, program_functions);
}

void cases_ops_complex(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64};
    const unsigned long long seed = (unsigned long long)list->seed;
    for (size_t i = 0; i < 2; i++) {
        const char *name = hal_type_name(types[i]);
        for (int f = 0; f < OPS_COMPLEX_UNARY_COUNT; f++) {
            const complex_case t = {types[i], f};
            case_add(list, run_unary, &t, sizeof t, "ops/complex(f=%s,type=%s,seed=%llu)",
                     ops_complex_unary_name((ops_complex_unary_function)f), name, seed);
        }
        for (int f = 0; f < OPS_COMPLEX_EQ; f++) {
            const complex_case t = {types[i], f};
            case_add(list, run_binary, &t, sizeof t, "ops/complex_pairs(f=%s,type=%s,seed=%llu)",
                     ops_complex_binary_name((ops_complex_binary_function)f), name, seed);
        }
        case_add(list, run_matrix, &types[i], sizeof types[i],
                 "ops/complex_matmul(type=%s,seed=%llu)", name, seed);
        case_add(list, run_reductions, &types[i], sizeof types[i],
                 "ops/complex_reduce(type=%s,seed=%llu)", name, seed);
        case_add(list, run_both_ways, &types[i], sizeof types[i],
                 "ops/complex_fusion(type=%s,seed=%llu)", name, seed);
    }
    case_add(list, run_special, NULL, 0, "ops/complex_special(seed=%llu)", seed);
}

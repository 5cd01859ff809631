/* Factorisations by the device: residuals next to the bounds of LAPACK's users' guide, pivots, what
 * is written and what is not, matrices without a factor, and calls that go to the host. */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern int64_t plain_lapack_columns;

/* Real numbers have no imaginary part. */
typedef double complex number;
typedef float complex complex_float;
typedef double complex complex_double;

#define DECLARE(letter, orgqr, ormqr, NUMBER, INTEGER, end)                                        \
    void letter##getrf_##end(const INTEGER *, const INTEGER *, NUMBER *, const INTEGER *,          \
                             INTEGER *, INTEGER *);                                                \
    void letter##potrf_##end(const char *, const INTEGER *, NUMBER *, const INTEGER *, INTEGER *); \
    void letter##geqrf_##end(const INTEGER *, const INTEGER *, NUMBER *, const INTEGER *,          \
                             NUMBER *, NUMBER *, const INTEGER *, INTEGER *);                      \
    void letter##orgqr##_##end(const INTEGER *, const INTEGER *, const INTEGER *, NUMBER *,        \
                               const INTEGER *, const NUMBER *, NUMBER *, const INTEGER *,         \
                               INTEGER *);                                                         \
    void letter##ormqr##_##end(const char *, const char *, const INTEGER *, const INTEGER *,       \
                               const INTEGER *, const NUMBER *, const INTEGER *, const NUMBER *,   \
                               NUMBER *, const INTEGER *, NUMBER *, const INTEGER *, INTEGER *);   \
    void letter##gesv_##end(const INTEGER *, const INTEGER *, NUMBER *, const INTEGER *,           \
                            INTEGER *, NUMBER *, const INTEGER *, INTEGER *);
DECLARE(s, orgqr, ormqr, float, int32_t, )
DECLARE(d, orgqr, ormqr, double, int32_t, )
DECLARE(c, ungqr, unmqr, complex_float, int32_t, )
DECLARE(z, ungqr, unmqr, complex_double, int32_t, )
DECLARE(s, orgqr, ormqr, float, int64_t, 64_)
DECLARE(d, orgqr, ormqr, double, int64_t, 64_)
DECLARE(c, ungqr, unmqr, complex_float, int64_t, 64_)
DECLARE(z, ungqr, unmqr, complex_double, int64_t, 64_)

enum { GAP = 3 };              /* rows after those of a matrix, which nothing may write */
static const double kept = 77; /* in them */

static int failures;
static uint64_t state = 88172645463325252u;

static double random_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

/* A matrix whose leading dimension is m + GAP. */
static number *matrix(int64_t m, int64_t n, int is_complex)
{
    number *a = malloc((size_t)((m + GAP) * n + 1) * sizeof *a);
    for (int64_t i = 0; a && i < (m + GAP) * n; i++) {
        a[i] = i % (m + GAP) < m ? (float)random_number() : kept;
        if (is_complex && i % (m + GAP) < m) {
            a[i] += I * (float)random_number();
        }
    }
    return a;
}

/* The most that the product of x (m x k) and y (k x n) differs from `want`, over its bound. */
static double difference(int64_t m, int64_t n, int64_t k, const number *x, const number *y,
                         const number *want, int64_t ld_want, double unit)
{
    double worst = 0;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) {
            number sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += x[i + l * m] * y[l + j * k];
            }
            const double error = cabs(sum - want[i + j * ld_want]);
            worst = error > worst || isnan(error) ? error : worst;
        }
    }
    return worst / (unit * (double)(m + n + k));
}

static void expect(int is_right, const char *what, int64_t m, int64_t n, double figure)
{
    if (!is_right) {
        failures++;
        printf("%s of %lld x %lld: %g\n", what, (long long)m, (long long)n, figure);
    }
}

static void expect_gaps(const number *a, int64_t m, int64_t n, const char *what)
{
    int are_kept = 1;
    for (int64_t i = 0; i < (m + GAP) * n; i++) {
        are_kept = are_kept && (i % (m + GAP) < m || a[i] == kept);
    }
    expect(are_kept, what, m, n, 0);
}

/* The calls of one type and one size of integers on matrices in double precision. */
typedef struct interface {
    double unit;
    int is_complex;
    int64_t (*getrf)(int64_t m, int64_t n, number *a, int64_t *pivots);
    int64_t (*potrf)(char uplo, int64_t n, number *a);
    int64_t (*geqrf)(int64_t m, int64_t n, number *a, number *tau);
    int64_t (*orgqr)(int64_t m, int64_t n, int64_t k, number *a, const number *tau);
    int64_t (*ormqr)(char trans, int64_t m, int64_t n, int64_t k, const number *v,
                     const number *tau, number *c);
    int64_t (*gesv)(int64_t n, int64_t columns, number *a, number *b);
} interface;

#define NARROW(NUMBER, to, from, count)                                 \
    NUMBER *to = calloc((count) > 0 ? (size_t)(count) : 1, sizeof *to); \
    for (int64_t i_ = 0; i_ < (count); i_++) {                          \
        to[i_] = (NUMBER)from[i_];                                      \
    }
#define WIDEN(to, from, count)                 \
    for (int64_t i_ = 0; i_ < (count); i_++) { \
        to[i_] = from[i_];                     \
    }                                          \
    free(from);

#define INTERFACE(letter, orgqr, ormqr, NUMBER, INTEGER, end, ulp, has_parts)                      \
    static int64_t letter##getrf##end(int64_t m, int64_t n, number *a, int64_t *pivots)            \
    {                                                                                              \
        const INTEGER im = (INTEGER)m, in = (INTEGER)n, ld = (INTEGER)(m + GAP);                   \
        INTEGER info = -99, *ipiv = malloc(((size_t)m + 1) * sizeof *ipiv);                        \
        NARROW(NUMBER, x, a, (m + GAP) * n)                                                        \
        letter##getrf_##end(&im, &in, x, &ld, ipiv, &info);                                        \
        WIDEN(a, x, (m + GAP) * n)                                                                 \
        for (int64_t i = 0; i < m && i < n; i++) {                                                 \
            pivots[i] = ipiv[i];                                                                   \
        }                                                                                          \
        free(ipiv);                                                                                \
        return info;                                                                               \
    }                                                                                              \
    static int64_t letter##potrf##end(char uplo, int64_t n, number *a)                             \
    {                                                                                              \
        const INTEGER in = (INTEGER)n, ld = (INTEGER)(n + GAP);                                    \
        INTEGER info = -99;                                                                        \
        NARROW(NUMBER, x, a, (n + GAP) * n)                                                        \
        letter##potrf_##end(&uplo, &in, x, &ld, &info);                                            \
        WIDEN(a, x, (n + GAP) * n)                                                                 \
        return info;                                                                               \
    }                                                                                              \
    static int64_t letter##geqrf##end(int64_t m, int64_t n, number *a, number *tau)                \
    {                                                                                              \
        const INTEGER im = (INTEGER)m, in = (INTEGER)n, ld = (INTEGER)(m + GAP), ask = -1;         \
        INTEGER info = -99;                                                                        \
        NUMBER length = 0;                                                                         \
        NARROW(NUMBER, x, a, (m + GAP) * n)                                                        \
        NARROW(NUMBER, t, tau, n)                                                                  \
        letter##geqrf_##end(&im, &in, x, &ld, t, &length, &ask, &info);                            \
        NUMBER *work = malloc(((size_t)creal(length) + 1) * sizeof *work);                         \
        const INTEGER given = (INTEGER)creal(length);                                              \
        letter##geqrf_##end(&im, &in, x, &ld, t, work, &given, &info);                             \
        free(work);                                                                                \
        WIDEN(a, x, (m + GAP) * n)                                                                 \
        WIDEN(tau, t, n)                                                                           \
        return info;                                                                               \
    }                                                                                              \
    static int64_t letter##generate##end(int64_t m, int64_t n, int64_t k, number *a,               \
                                         const number *tau)                                        \
    {                                                                                              \
        const INTEGER im = (INTEGER)m, in = (INTEGER)n, ik = (INTEGER)k;                           \
        const INTEGER ld = (INTEGER)(m + GAP), given = (INTEGER)(64 * n + 64);                     \
        INTEGER info = -99;                                                                        \
        NARROW(NUMBER, x, a, (m + GAP) * n)                                                        \
        NARROW(NUMBER, t, tau, k)                                                                  \
        NUMBER *work = malloc((size_t)given * sizeof *work);                                       \
        letter##orgqr##_##end(&im, &in, &ik, x, &ld, t, work, &given, &info);                      \
        free(work);                                                                                \
        free(t);                                                                                   \
        WIDEN(a, x, (m + GAP) * n)                                                                 \
        return info;                                                                               \
    }                                                                                              \
    static int64_t letter##multiply##end(char trans, int64_t m, int64_t n, int64_t k,              \
                                         const number *v, const number *tau, number *c)            \
    {                                                                                              \
        const INTEGER im = (INTEGER)m, in = (INTEGER)n, ik = (INTEGER)k;                           \
        const INTEGER ld = (INTEGER)(m + GAP), given = (INTEGER)(64 * n + 64);                     \
        INTEGER info = -99;                                                                        \
        NARROW(NUMBER, x, v, (m + GAP) * k)                                                        \
        NARROW(NUMBER, t, tau, k)                                                                  \
        NARROW(NUMBER, y, c, (m + GAP) * n)                                                        \
        NUMBER *work = malloc((size_t)given * sizeof *work);                                       \
        letter##ormqr##_##end("L", &trans, &im, &in, &ik, x, &ld, t, y, &ld, work, &given, &info); \
        free(work);                                                                                \
        free(t);                                                                                   \
        free(x);                                                                                   \
        WIDEN(c, y, (m + GAP) * n)                                                                 \
        return info;                                                                               \
    }                                                                                              \
    static int64_t letter##gesv##end(int64_t n, int64_t columns, number *a, number *b)             \
    {                                                                                              \
        const INTEGER in = (INTEGER)n, count = (INTEGER)columns, ld = (INTEGER)(n + GAP);          \
        INTEGER info = -99, *ipiv = malloc(((size_t)n + 1) * sizeof *ipiv);                        \
        NARROW(NUMBER, x, a, (n + GAP) * n)                                                        \
        NARROW(NUMBER, y, b, n *columns)                                                           \
        letter##gesv_##end(&in, &count, x, &ld, ipiv, y, &in, &info);                              \
        WIDEN(a, x, (n + GAP) * n)                                                                 \
        WIDEN(b, y, n *columns)                                                                    \
        free(ipiv);                                                                                \
        return info;                                                                               \
    }                                                                                              \
    static const interface letter##calls##end = {ulp,                                              \
                                                 has_parts,                                        \
                                                 letter##getrf##end,                               \
                                                 letter##potrf##end,                               \
                                                 letter##geqrf##end,                               \
                                                 letter##generate##end,                            \
                                                 letter##multiply##end,                            \
                                                 letter##gesv##end};
INTERFACE(s, orgqr, ormqr, float, int32_t, , 0x1p-24, 0)
INTERFACE(d, orgqr, ormqr, double, int32_t, , 0x1p-53, 0)
INTERFACE(c, ungqr, unmqr, complex_float, int32_t, , 0x1p-24, 1)
INTERFACE(z, ungqr, unmqr, complex_double, int32_t, , 0x1p-53, 1)
INTERFACE(s, orgqr, ormqr, float, int64_t, 64_, 0x1p-24, 0)
INTERFACE(d, orgqr, ormqr, double, int64_t, 64_, 0x1p-53, 0)
INTERFACE(c, ungqr, unmqr, complex_float, int64_t, 64_, 0x1p-24, 1)
INTERFACE(z, ungqr, unmqr, complex_double, int64_t, 64_, 0x1p-53, 1)

/* The lower trapezoid (m x k, with ones on the diagonal if is_unit) and the upper one (k x n). */
static void split(const number *a, int64_t m, int64_t n, int is_unit, number *lower, number *upper)
{
    const int64_t k = m < n ? m : n;
    for (int64_t i = 0; i < m * k; i++) {
        const int64_t row = i % m, column = i / m;
        lower[i] = row > column   ? a[row + column * (m + GAP)]
                   : row < column ? 0
                   : is_unit      ? 1
                                  : a[row + column * (m + GAP)];
    }
    for (int64_t i = 0; i < k * n; i++) {
        upper[i] = i % k <= i / k ? a[i % k + i / k * (m + GAP)] : 0;
    }
}

static number *new_numbers(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(number));
}

static void check_lu(const interface *f, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    number *a = matrix(m, n, f->is_complex), *want = new_numbers((m + GAP) * n);
    number *lower = new_numbers(m * k), *upper = new_numbers(k * n);
    int64_t *pivots = calloc((size_t)m, sizeof *pivots);
    memcpy(want, a, (size_t)((m + GAP) * n) * sizeof *a);
    const int64_t info = f->getrf(m, n, a, pivots);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < n; j++) {
            number *x = &want[i + j * (m + GAP)], *y = &want[pivots[i] - 1 + j * (m + GAP)];
            const number swapped = *x;
            *x = *y;
            *y = swapped;
        }
    }
    split(a, m, n, 1, lower, upper);
    const double figure = difference(m, n, k, lower, upper, want, m + GAP, f->unit);
    expect(info == 0 && figure < 8, "getrf", m, n, figure);
    expect_gaps(a, m, n, "getrf writes beyond");
    free(a);
    free(want);
    free(lower);
    free(upper);
    free(pivots);
}

static void check_cholesky(const interface *f, int64_t n, char uplo)
{
    number *a = matrix(n, n, f->is_complex), *before = new_numbers((n + GAP) * n),
           *want = new_numbers(n * n);
    number *x = new_numbers(n * n), *y = new_numbers(n * n);
    memcpy(before, a, (size_t)((n + GAP) * n) * sizeof *a);
    for (int64_t j = 0; j < n; j++) { /* Hermitian, with a dominant diagonal */
        for (int64_t i = 0; i < n; i++) {
            const int64_t low = i > j ? i : j, high = i > j ? j : i;
            const number element = before[low + high * (n + GAP)];
            want[i + j * n] = i == j ? (double)(2 * n) : i > j ? element : conj(element);
            a[i + j * (n + GAP)] = (i >= j) == (uplo == 'L') || i == j ? want[i + j * n] : 5;
        }
    }
    memcpy(before, a, (size_t)((n + GAP) * n) * sizeof *a);
    const int64_t info = f->potrf(uplo, n, a);
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t row = i % n, column = i / n;
        const int64_t low = row > column ? row : column, high = row > column ? column : row;
        const number factor = uplo == 'L' ? a[low + high * (n + GAP)] : a[high + low * (n + GAP)];
        const int is_stored = uplo == 'L' ? row >= column : row <= column;
        x[i] = row >= column ? (is_stored ? factor : conj(factor)) : 0;
        y[i] = row <= column ? (is_stored ? factor : conj(factor)) : 0;
        const int is_other = uplo == 'L' ? row < column : row > column;
        expect(!is_other || a[row + column * (n + GAP)] == before[row + column * (n + GAP)],
               "potrf writes the other triangle", row, column, 0);
    }
    const double figure = difference(n, n, n, x, y, want, n, f->unit * (double)(2 * n));
    expect(info == 0 && figure < 8, uplo == 'L' ? "potrf L" : "potrf U", n, n, figure);
    expect_gaps(a, n, n, "potrf writes beyond");
    free(a);
    free(before);
    free(want);
    free(x);
    free(y);
}

static void check_qr(const interface *f, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    number *a = matrix(m, n, f->is_complex), *want = new_numbers((m + GAP) * n),
           *tau = new_numbers(n);
    number *lower = new_numbers(m * k), *upper = new_numbers(k * n),
           *q = new_numbers((m + GAP) * k);
    number *packed = new_numbers(m * k), *turned = new_numbers(m * k), *one = new_numbers(k * k);
    memcpy(want, a, (size_t)((m + GAP) * n) * sizeof *a);
    const int64_t info = f->geqrf(m, n, a, tau);
    split(a, m, n, 1, lower, upper);
    memcpy(q, a, (size_t)((m + GAP) * k) * sizeof *q);
    const int64_t more = f->orgqr(m, k, k, q, tau);
    for (int64_t i = 0; i < m * k; i++) {
        packed[i] = q[i % m + i / m * (m + GAP)];
        turned[i / m + i % m * k] = conj(packed[i]);
        one[i < k ? i * (k + 1) : 0] = 1;
    }
    const double figure = difference(m, n, k, packed, upper, want, m + GAP, f->unit);
    const double unit = difference(k, k, m, turned, packed, one, k, f->unit);
    expect(info == 0 && more == 0 && figure < 8, "geqrf", m, n, figure);
    expect(unit < 8, "orgqr", m, n, unit);
    expect_gaps(a, m, n, "geqrf writes beyond");
    expect_gaps(q, m, k, "orgqr writes beyond");
    free(a);
    free(want);
    free(tau);
    free(lower);
    free(upper);
    free(q);
    free(packed);
    free(turned);
    free(one);
}

/* Q^H A is R, and Q of it is A again. */
static void check_multiplication(const interface *f, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    number *a = matrix(m, n, f->is_complex), *v = new_numbers((m + GAP) * n);
    number *c = new_numbers((m + GAP) * n), *tau = new_numbers(n);
    double worst = 0, again = 0;
    memcpy(v, a, (size_t)((m + GAP) * n) * sizeof *a);
    memcpy(c, a, (size_t)((m + GAP) * n) * sizeof *a);
    f->geqrf(m, n, v, tau);
    int64_t info = f->ormqr(f->is_complex ? 'C' : 'T', m, n, k, v, tau, c);
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t at = i % m + i / m * (m + GAP);
        worst = fmax(worst, cabs(c[at] - (i % m <= i / m ? v[at] : 0)));
    }
    info = info != 0 ? info : f->ormqr('N', m, n, k, v, tau, c);
    for (int64_t i = 0; i < m * n; i++) {
        const int64_t at = i % m + i / m * (m + GAP);
        again = fmax(again, cabs(c[at] - a[at]));
    }
    expect(info == 0 && worst < 8 * f->unit * (double)(m + n), "ormqr", m, n, worst);
    expect(again < 8 * f->unit * (double)(m + n), "ormqr and back", m, n, again);
    expect_gaps(c, m, n, "ormqr writes beyond");
    free(a);
    free(v);
    free(c);
    free(tau);
}

/* Fewer columns than reflectors' rows, and fewer reflectors than columns. */
static void check_few_reflectors(const interface *f, int64_t m, int64_t n, int64_t k)
{
    number *a = matrix(m, n, f->is_complex), *tau = new_numbers(n), *one = new_numbers(n * n);
    number *packed = new_numbers(m * n), *turned = new_numbers(m * n);
    f->geqrf(m, n, a, tau);
    const int64_t info = f->orgqr(m, n, k, a, tau);
    for (int64_t i = 0; i < m * n; i++) {
        packed[i] = a[i % m + i / m * (m + GAP)];
        turned[i / m + i % m * n] = conj(packed[i]);
        one[i < n ? i * (n + 1) : 0] = 1;
    }
    const double unit = difference(n, n, m, turned, packed, one, n, f->unit);
    expect(info == 0 && unit < 8, "orgqr of few reflectors", m, n, unit);
    free(a);
    free(tau);
    free(one);
    free(packed);
    free(turned);
}

/* A column of zeros, and a matrix that is not positive definite, from a panel after the first
 * on. */
static void check_without_factor(const interface *f, int64_t n, int64_t at)
{
    number *a = matrix(n, n, f->is_complex);
    int64_t *pivots = calloc((size_t)n, sizeof *pivots);
    for (int64_t i = 0; i < n; i++) {
        a[i + at * (n + GAP)] = 0;
    }
    int64_t info = f->getrf(n, n, a, pivots);
    expect(info == at + 1, "getrf of a singular matrix", n, at, (double)info);
    for (int64_t i = 0; i < n * n; i++) {
        a[i % n + i / n * (n + GAP)] = i % n == i / n ? (i / n == at ? -1 : 2) : 0;
    }
    info = f->potrf('L', n, a);
    expect(info == at + 1, "potrf of a matrix without a factor", n, at, (double)info);
    info = f->potrf('L', -1, a);
    expect(info == -2, "potrf of order -1", -1, -1, (double)info);
    free(a);
    free(pivots);
}

/* x = 1, 2, 3, ... of a system, two right sides. */
static void check_system(const interface *f, int64_t n)
{
    number *a = matrix(n, n, f->is_complex), *b = new_numbers(2 * n);
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        a[i * (n + GAP + 1)] += (double)n; /* well conditioned */
    }
    for (int64_t i = 0; i < 2 * n; i++) {
        for (int64_t j = 0; j < n; j++) {
            b[i] += a[i % n + j * (n + GAP)] * (double)((j + 1) * (i < n ? 1 : -1));
        }
    }
    const int64_t info = f->gesv(n, 2, a, b);
    for (int64_t i = 0; i < 2 * n; i++) {
        const double error = cabs(b[i] - (double)((i % n + 1) * (i < n ? 1 : -1)));
        worst = error > worst || isnan(error) ? error : worst;
    }
    worst /= f->unit * (double)(n * n);
    expect(info == 0 && worst < 8, "gesv", n, n, worst);
    free(a);
    free(b);
}

/* Calls of two panels, in a process of its own, since HAL_FAULT is read when the library begins:
 * the right results or nothing is written, which the host's LAPACK needs. */
static void check_with_fault(const char *program, const char *kind, int call)
{
    char fault[32];
    snprintf(fault, sizeof fault, "%s:%d", kind, call);
    const pid_t child = fork();
    if (child == 0) {
        setenv("HAL_LAYERS", "fault", 1);
        setenv("HAL_FAULT", fault, 1);
        execl(program, program, "panels", NULL);
        _exit(99);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (child < 0 || status != 0) {
        failures++;
        printf("%s: status %d\n", fault, status);
    }
}

static void check_faults(const char *program)
{
    static const char *const kinds[] = {"allocation", "submit", "wait", "lost"};
    for (int i = 0; i < 4; i++) {
        for (int call = 1; call < 64; call += call < 16 ? 1 : 5) {
            check_with_fault(program, kinds[i], call);
        }
    }
}

static void check_panels(void)
{
    check_cholesky(&zcalls, 270, 'L');
    check_lu(&zcalls, 270, 266);
    check_qr(&dcalls, 140, 136);
    check_multiplication(&dcalls, 140, 136);
}

static void check_all(int types)
{
    static const int64_t shapes[][2] = {{1, 1},     {5, 3},     {3, 5},    {256, 256},
                                        {300, 129}, {129, 300}, {290, 270}};
    const interface *all[8] = {&scalls,    &dcalls,    &ccalls,    &zcalls,
                               &scalls64_, &dcalls64_, &ccalls64_, &zcalls64_};
    for (int i = 0; i < types; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            check_lu(all[i], shapes[s][0], shapes[s][1]);
            check_qr(all[i], shapes[s][0], shapes[s][1]);
            check_multiplication(all[i], shapes[s][0], shapes[s][1]);
            check_cholesky(all[i], shapes[s][0], s % 2 ? 'U' : 'L');
        }
        check_cholesky(all[i], 270, 'U');
        check_few_reflectors(all[i], 200, 150, 130);
    }
    expect(plain_lapack_columns == 256, "panels of 256 columns", 0, plain_lapack_columns, 0);
    for (int i = 0; i < types; i++) {
        check_system(all[i], 280);
        check_without_factor(all[i], 280, 270);
    }
}

/* Without arguments: all interfaces; 4: those with 32-bit integers. */
int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "8";
    if (strcmp(what, "faults") == 0) {
        check_faults(arguments[0]);
    } else if (strcmp(what, "panels") == 0) {
        check_panels();
    } else {
        check_all(atoi(what));
    }
    printf("%d failures\n", failures);
    return failures != 0;
}

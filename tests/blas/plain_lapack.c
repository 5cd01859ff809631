/* A LAPACK of plain loops in double precision, which the library finds behind itself: getrf, potrf,
 * geqrf, orgqr, ormqr and larft of s, d, c and z, with integers of 32 and 64 bits. Real numbers are
 * complex ones without an imaginary part. */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef double complex number;
typedef float complex complex_float;
typedef double complex complex_double;

/* The most columns of a matrix that the library has passed to getrf, potrf or geqrf. */
int64_t plain_lapack_columns;

/* As izamax has it. */
static double size(number x)
{
    return fabs(creal(x)) + fabs(cimag(x));
}

static int64_t getrf(int64_t m, int64_t n, number *a, int64_t *pivots)
{
    int64_t info = 0;
    for (int64_t j = 0; j < m && j < n; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < m; i++) {
            best = size(a[i + j * m]) > size(a[best + j * m]) ? i : best;
        }
        pivots[j] = best + 1;
        for (int64_t k = 0; k < n; k++) {
            const number kept = a[j + k * m];
            a[j + k * m] = a[best + k * m];
            a[best + k * m] = kept;
        }
        info = info == 0 && a[j + j * m] == 0 ? j + 1 : info;
        for (int64_t i = j + 1; i < m && a[j + j * m] != 0; i++) {
            a[i + j * m] /= a[j + j * m];
            for (int64_t k = j + 1; k < n; k++) {
                a[i + k * m] -= a[i + j * m] * a[j + k * m];
            }
        }
    }
    return info;
}

/* The lower triangle; of an upper one rows and columns change places. */
static int64_t potrf(int64_t n, number *a, int is_upper)
{
    const int64_t down = is_upper ? n : 1, right = is_upper ? 1 : n;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            for (int64_t k = 0; k < j; k++) {
                a[i * down + j * right] -=
                    is_upper ? conj(a[j * down + k * right]) * a[i * down + k * right]
                             : a[i * down + k * right] * conj(a[j * down + k * right]);
            }
            if (i == j && !(creal(a[j * down + j * right]) > 0)) {
                return j + 1;
            }
            a[i * down + j * right] = i == j ? sqrt(creal(a[j * down + j * right]))
                                             : a[i * down + j * right] / a[j * down + j * right];
        }
    }
    return 0;
}

/* Columns from `column` on, times I - tau v v^H for v = (1, a[j + 1 .. m, j]). */
static void reflect(int64_t m, int64_t n, number *a, int64_t j, number tau, int64_t column)
{
    for (int64_t k = column; k < n; k++) {
        number sum = a[j + k * m];
        for (int64_t i = j + 1; i < m; i++) {
            sum += conj(a[i + j * m]) * a[i + k * m];
        }
        a[j + k * m] -= tau * sum;
        for (int64_t i = j + 1; i < m; i++) {
            a[i + k * m] -= tau * sum * a[i + j * m];
        }
    }
}

/* R has a real diagonal. */
static void geqrf(int64_t m, int64_t n, number *a, number *tau)
{
    for (int64_t j = 0; j < m && j < n; j++) {
        double below = 0;
        for (int64_t i = j + 1; i < m; i++) {
            below += creal(a[i + j * m] * conj(a[i + j * m]));
        }
        tau[j] = 0;
        const number first = a[j + j * m];
        if (below > 0 || cimag(first) != 0) {
            const double length = sqrt(creal(first * conj(first)) + below);
            const double beta = creal(first) > 0 ? -length : length;
            tau[j] = (beta - first) / beta;
            for (int64_t i = j + 1; i < m; i++) {
                a[i + j * m] /= first - beta;
            }
            a[j + j * m] = beta;
            reflect(m, n, a, j, conj(tau[j]), j + 1);
        }
    }
}

static void generate(int64_t m, int64_t n, int64_t k, number *a, const number *tau)
{
    for (int64_t j = n - 1; j >= 0; j--) {
        if (j < k) {
            reflect(m, n, a, j, tau[j], j + 1);
        }
        for (int64_t i = 0; i < m; i++) {
            const number v = i > j && j < k ? a[i + j * m] : i == j;
            a[i + j * m] = j < k ? (i < j ? 0 : i == j ? 1 - tau[j] : -tau[j] * v) : i == j;
        }
    }
}

/* Q of k reflectors times c, or with is_adjoint its conjugate transpose. */
static void multiply(int64_t m, int64_t n, int64_t k, const number *a, const number *tau, number *c,
                     int is_adjoint)
{
    for (int64_t i = 0; i < k; i++) {
        const int64_t j = is_adjoint ? i : k - 1 - i;
        for (int64_t column = 0; column < n; column++) {
            number *x = c + column * m, sum = x[j];
            for (int64_t row = j + 1; row < m; row++) {
                sum += conj(a[row + j * m]) * x[row];
            }
            sum *= is_adjoint ? conj(tau[j]) : tau[j];
            x[j] -= sum;
            for (int64_t row = j + 1; row < m; row++) {
                x[row] -= sum * a[row + j * m];
            }
        }
    }
}

/* T of I - V T V^H; rows of v are m, its diagonal of ones is not read. */
static void larft(int64_t m, int64_t k, const number *v, const number *tau, number *t)
{
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < i; j++) {
            number sum = conj(v[i + j * m]);
            for (int64_t row = i + 1; row < m; row++) {
                sum += conj(v[row + j * m]) * v[row + i * m];
            }
            t[j + i * k] = -tau[i] * sum;
        }
        for (int64_t j = 0; j < i; j++) {
            number sum = 0;
            for (int64_t l = j; l < i; l++) {
                sum += t[j + l * k] * t[l + i * k];
            }
            t[j + i * k] = sum;
        }
        t[i + i * k] = tau[i];
    }
}

/* L U X = P B; gesv is not here, so that a call of it that no device computes fails. */
static void getrs(int64_t n, int64_t columns, const number *a, const int64_t *pivots, number *b)
{
    for (int64_t k = 0; k < columns; k++) {
        number *x = b + k * n;
        for (int64_t i = 0; i < n; i++) {
            const number kept = x[i];
            x[i] = x[pivots[i] - 1];
            x[pivots[i] - 1] = kept;
        }
        for (int64_t j = 0; j < n; j++) {
            for (int64_t i = j + 1; i < n; i++) {
                x[i] -= a[i + j * n] * x[j];
            }
        }
        for (int64_t j = n - 1; j >= 0; j--) {
            x[j] /= a[j + j * n];
            for (int64_t i = 0; i < j; i++) {
                x[i] -= a[i + j * n] * x[j];
            }
        }
    }
}

static number *new_numbers(int64_t count)
{
    number *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers) {
        abort();
    }
    return numbers;
}

/* Elements to double and back. */
#define CONVERT(NUMBER)                                                                       \
    static number *taken_##NUMBER(int64_t m, int64_t n, const NUMBER *a, int64_t lda)         \
    {                                                                                         \
        number *numbers = new_numbers(m * n);                                                 \
        plain_lapack_columns = n > plain_lapack_columns ? n : plain_lapack_columns;           \
        for (int64_t i = 0; i < m * n; i++) {                                                 \
            numbers[i] = a[i % m + i / m * lda];                                              \
        }                                                                                     \
        return numbers;                                                                       \
    }                                                                                         \
    static void given_##NUMBER(int64_t m, int64_t n, number *numbers, NUMBER *a, int64_t lda) \
    {                                                                                         \
        for (int64_t i = 0; i < m * n; i++) {                                                 \
            a[i % m + i / m * lda] = (NUMBER)numbers[i];                                      \
        }                                                                                     \
        free(numbers);                                                                        \
    }
CONVERT(float)
CONVERT(double)
CONVERT(complex_float)
CONVERT(complex_double)

#define LAPACK(letter, NUMBER, INTEGER, end)                                                    \
    void letter##getrf_##end(const INTEGER *m, const INTEGER *n, NUMBER *a, const INTEGER *lda, \
                             INTEGER *ipiv, INTEGER *info)                                      \
    {                                                                                           \
        number *numbers = taken_##NUMBER(*m, *n, a, *lda);                                      \
        int64_t *pivots = malloc(((size_t)*m + 1) * sizeof *pivots);                            \
        *info = (INTEGER)getrf(*m, *n, numbers, pivots);                                        \
        for (INTEGER i = 0; i < *m && i < *n; i++) {                                            \
            ipiv[i] = (INTEGER)pivots[i];                                                       \
        }                                                                                       \
        free(pivots);                                                                           \
        given_##NUMBER(*m, *n, numbers, a, *lda);                                               \
    }                                                                                           \
    void letter##potrf_##end(const char *uplo, const INTEGER *n, NUMBER *a, const INTEGER *lda, \
                             INTEGER *info)                                                     \
    {                                                                                           \
        if (*n < 0) {                                                                           \
            *info = -2;                                                                         \
            return;                                                                             \
        }                                                                                       \
        number *numbers = taken_##NUMBER(*n, *n, a, *lda);                                      \
        *info = (INTEGER)potrf(*n, numbers, *uplo == 'U' || *uplo == 'u');                      \
        given_##NUMBER(*n, *n, numbers, a, *lda);                                               \
    }

#define REFLECTORS(letter, orgqr, ormqr, NUMBER, INTEGER, end)                                     \
    void letter##geqrf_##end(const INTEGER *m, const INTEGER *n, NUMBER *a, const INTEGER *lda,    \
                             NUMBER *tau, NUMBER *work, const INTEGER *lwork, INTEGER *info)       \
    {                                                                                              \
        *info = 0;                                                                                 \
        if (*lwork == -1) {                                                                        \
            *work = (NUMBER)*n;                                                                    \
            return;                                                                                \
        }                                                                                          \
        number *numbers = taken_##NUMBER(*m, *n, a, *lda), *factors = new_numbers(*n);             \
        geqrf(*m, *n, numbers, factors);                                                           \
        given_##NUMBER(*m, *n, numbers, a, *lda);                                                  \
        given_##NUMBER(*m < *n ? *m : *n, 1, factors, tau, 1);                                     \
    }                                                                                              \
    void letter##orgqr##_##end(const INTEGER *m, const INTEGER *n, const INTEGER *k, NUMBER *a,    \
                               const INTEGER *lda, const NUMBER *tau, NUMBER *work,                \
                               const INTEGER *lwork, INTEGER *info)                                \
    {                                                                                              \
        *info = 0;                                                                                 \
        if (*lwork == -1) {                                                                        \
            *work = (NUMBER)*n;                                                                    \
            return;                                                                                \
        }                                                                                          \
        number *numbers = taken_##NUMBER(*m, *n, a, *lda),                                         \
               *factors = taken_##NUMBER(*k, 1, tau, 1);                                           \
        generate(*m, *n, *k, numbers, factors);                                                    \
        free(factors);                                                                             \
        given_##NUMBER(*m, *n, numbers, a, *lda);                                                  \
    }                                                                                              \
    void letter##ormqr##_##end(                                                                    \
        const char *side, const char *trans, const INTEGER *m, const INTEGER *n, const INTEGER *k, \
        const NUMBER *a, const INTEGER *lda, const NUMBER *tau, NUMBER *c, const INTEGER *ldc,     \
        NUMBER *work, const INTEGER *lwork, INTEGER *info)                                         \
    {                                                                                              \
        *info = *side == 'L' ? 0 : -1;                                                             \
        if (*lwork == -1) {                                                                        \
            *work = (NUMBER)*n;                                                                    \
            return;                                                                                \
        }                                                                                          \
        number *numbers = taken_##NUMBER(*m, *n, c, *ldc),                                         \
               *factors = taken_##NUMBER(*k, 1, tau, 1),                                           \
               *reflectors = taken_##NUMBER(*m, *k, a, *lda);                                      \
        multiply(*m, *n, *k, reflectors, factors, numbers, *trans != 'N');                         \
        free(factors);                                                                             \
        free(reflectors);                                                                          \
        given_##NUMBER(*m, *n, numbers, c, *ldc);                                                  \
    }                                                                                              \
    void letter##larft_##end(const char *direct, const char *storev, const INTEGER *m,             \
                             const INTEGER *k, const NUMBER *v, const INTEGER *ldv,                \
                             const NUMBER *tau, NUMBER *t, const INTEGER *ldt)                     \
    {                                                                                              \
        number *numbers = taken_##NUMBER(*m, *k, v, *ldv),                                         \
               *factors = taken_##NUMBER(*k, 1, tau, 1);                                           \
        number *triangle = new_numbers((int64_t)*k * *k);                                          \
        if (*direct == 'F' && *storev == 'C') {                                                    \
            larft(*m, *k, numbers, factors, triangle);                                             \
        }                                                                                          \
        free(numbers);                                                                             \
        free(factors);                                                                             \
        given_##NUMBER(*k, *k, triangle, t, *ldt);                                                 \
    }

#define GETRS(letter, NUMBER, INTEGER, end)                                                       \
    void letter##getrs_##end(const char *trans, const INTEGER *n, const INTEGER *nrhs,            \
                             const NUMBER *a, const INTEGER *lda, const INTEGER *ipiv, NUMBER *b, \
                             const INTEGER *ldb, INTEGER *info)                                   \
    {                                                                                             \
        number *factors = taken_##NUMBER(*n, *n, a, *lda);                                        \
        number *numbers = taken_##NUMBER(*n, *nrhs, b, *ldb);                                     \
        int64_t *pivots = calloc((size_t)*n + 1, sizeof *pivots);                                 \
        for (INTEGER i = 0; i < *n; i++) {                                                        \
            pivots[i] = ipiv[i];                                                                  \
        }                                                                                         \
        getrs(*n, *nrhs, factors, pivots, numbers);                                               \
        *info = *trans == 'N' ? 0 : -1;                                                           \
        free(factors);                                                                            \
        free(pivots);                                                                             \
        given_##NUMBER(*n, *nrhs, numbers, b, *ldb);                                              \
    }
GETRS(s, float, int32_t, )
GETRS(d, double, int32_t, )
GETRS(c, complex_float, int32_t, )
GETRS(z, complex_double, int32_t, )
GETRS(s, float, int64_t, 64_)
GETRS(d, double, int64_t, 64_)
GETRS(c, complex_float, int64_t, 64_)
GETRS(z, complex_double, int64_t, 64_)

LAPACK(s, float, int32_t, )
LAPACK(d, double, int32_t, )
LAPACK(c, complex_float, int32_t, )
LAPACK(z, complex_double, int32_t, )
LAPACK(s, float, int64_t, 64_)
LAPACK(d, double, int64_t, 64_)
LAPACK(c, complex_float, int64_t, 64_)
LAPACK(z, complex_double, int64_t, 64_)

REFLECTORS(s, orgqr, ormqr, float, int32_t, )
REFLECTORS(d, orgqr, ormqr, double, int32_t, )
REFLECTORS(c, ungqr, unmqr, complex_float, int32_t, )
REFLECTORS(z, ungqr, unmqr, complex_double, int32_t, )
REFLECTORS(s, orgqr, ormqr, float, int64_t, 64_)
REFLECTORS(d, orgqr, ormqr, double, int64_t, 64_)
REFLECTORS(c, ungqr, unmqr, complex_float, int64_t, 64_)
REFLECTORS(z, ungqr, unmqr, complex_double, int64_t, 64_)

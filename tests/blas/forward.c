/* Small calls reach the host's function with the program's own arguments, by both interfaces and
 * from the groups of a batch; invalid ones are reported and reach nothing; where calls are counted
 * for a summary, none is passed on as it is.
 *
 * blas_forward HOST passed|counted
 * blas_forward HOST wide   HOST takes 64-bit integers by names without a suffix: calls with 32-bit
 *                          integers are converted, those with 64-bit ones passed on */
#include "fake_host.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112, CONJUGATE = 113 };

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *);
void dgemm_64_(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,
               const double *, const double *, const int64_t *, const double *, const int64_t *,
               const double *, double *, const int64_t *);
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int,
                 double, double *, int);
void cblas_dsyrk(int, int, int, int, int, double, const double *, int, double, double *, int);
void cblas_zsyrk(int, int, int, int, int, const void *, const void *, int, const void *, void *,
                 int);
void dgemm_batch_(const char *, const char *, const int *, const int *, const int *, const double *,
                  const double *const *, const int *, const double *const *, const int *,
                  const double *, double *const *, const int *, const int *, const int *);
void cblas_dgemm_batch(int, const int *, const int *, const int *, const int *, const int *,
                       const double *, const void *const *, const int *, const void *const *,
                       const int *, const double *, void *const *, const int *, int, const int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
__attribute__((visibility("default"))) void xerbla_(const char *name, const int64_t *position,
                                                    size_t length);

static fake_record *calls;
static int *count;
static int failures;
static int64_t reported;
static double a[4][64], b[4][64], c[4][64];

/* Of a program whose integers have 64 bits under the plain names. */
void xerbla_(const char *name, const int64_t *position, size_t length)
{
    (void)name;
    (void)length;
    reported = *position;
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("%s\n", what);
        failures++;
    }
}

/* The last call that the host got is that product; then it is forgotten. */
static void expect_call(int at, fake_record wanted, const char *what)
{
    const fake_record *got = &calls[at];
    expect(at < *count && got->transa == wanted.transa && got->transb == wanted.transb &&
               got->layout == wanted.layout && got->m == wanted.m && got->n == wanted.n &&
               got->k == wanted.k && got->lda == wanted.lda && got->ldb == wanted.ldb &&
               got->ldc == wanted.ldc && got->alpha == wanted.alpha && got->beta == wanted.beta &&
               got->a == wanted.a && got->b == wanted.b && got->c == wanted.c,
           what);
}

static const fake_record product = {.transa = 'N',
                                    .transb = 't',
                                    .m = 2,
                                    .n = 3,
                                    .k = 4,
                                    .lda = 5,
                                    .ldb = 6,
                                    .ldc = 7,
                                    .alpha = 0.5,
                                    .beta = 2,
                                    .a = a[0],
                                    .b = b[0],
                                    .c = c[0]};

/* Where the last call had its m. */
static const void *at_m;

static void fortran_call(const fake_record *p)
{
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb,
              ldc = (int)p->ldc;
    *count = 0;
    at_m = &m;
    dgemm_(&p->transa, &p->transb, &m, &n, &k, &p->alpha, p->a, &lda, p->b, &ldb, &p->beta, p->c,
           &ldc);
}

static void test_fortran(bool is_passed)
{
    fortran_call(&product); /* which looks for the host's functions */
    fake_record wanted = product;
    wanted.transb = 'T';
    expect_call(0, wanted, "the first call differs");
    fortran_call(&product);
    wanted.transb = is_passed ? 't' : 'T';
    expect_call(0, wanted, "a small call differs");
    expect((calls[0].at_m == at_m) == is_passed, "a small call's own arguments");
    fake_record large = product;
    large.m = large.lda = large.ldc = 500000;
    fortran_call(&large);
    wanted = large;
    wanted.transb = 'T';
    expect_call(0, wanted, "a large call differs");
    expect(calls[0].at_m != at_m, "a large call was passed on undecided");
    fake_record invalid = product;
    invalid.lda = 1;
    fortran_call(&invalid);
    expect(*count == 0 && reported == 8, "an invalid leading dimension");
    invalid = product;
    invalid.transb = 'X';
    fortran_call(&invalid);
    expect(*count == 0 && reported == 2, "an invalid letter");
}

static void test_c(bool is_passed)
{
    *count = 0;
    cblas_dgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 2, 3, 4, 0.5, a[0], 4, b[0], 5, 2, c[0], 6);
    const fake_record row_major = {.layout = ROW_MAJOR,
                                   .transa = NO_TRANSPOSE,
                                   .transb = TRANSPOSE,
                                   .m = 2,
                                   .n = 3,
                                   .k = 4,
                                   .lda = 4,
                                   .ldb = 5,
                                   .ldc = 6,
                                   .alpha = 0.5,
                                   .beta = 2,
                                   .a = a[0],
                                   .b = b[0],
                                   .c = c[0]};
    const fake_record column_major = {.transa = 'T',
                                      .transb = 'N',
                                      .m = 3,
                                      .n = 2,
                                      .k = 4,
                                      .lda = 5,
                                      .ldb = 4,
                                      .ldc = 6,
                                      .alpha = 0.5,
                                      .beta = 2,
                                      .a = b[0],
                                      .b = a[0],
                                      .c = c[0]};
    expect_call(0, is_passed ? row_major : column_major, "a small call of the C interface differs");
    *count = 0;
    cblas_dgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 2, 3, 4, 0.5, a[0], 3, b[0], 5, 2, c[0], 6);
    cblas_dgemm(103, NO_TRANSPOSE, TRANSPOSE, 2, 3, 4, 0.5, a[0], 4, b[0], 5, 2, c[0], 6);
    cblas_dsyrk(ROW_MAJOR, 121, 0, 2, 3, 0.5, a[0], 3, 2, c[0], 6);
    cblas_zsyrk(ROW_MAJOR, 121, CONJUGATE, 1, 1, a[0], a[0], 1, a[0], c[0], 6);
    expect(*count == 0, "an invalid call of the C interface");
}

/* A group of two products, an empty one, and one of another shape. */
static void test_groups(void)
{
    const char transa[3] = {'n', 'N', 'T'}, transb[3] = {'N', 'N', 'T'};
    const int m[3] = {2, 1, 3}, n[3] = {3, 1, 2}, k[3] = {4, 1, 5}, lda[3] = {4, 1, 5},
              ldb[3] = {5, 1, 3}, ldc[3] = {6, 1, 4}, sizes[3] = {2, 0, 1};
    const int three = 3;
    const double alpha[3] = {1, 2, 3}, beta[3] = {4, 5, 6};
    const double *const as[3] = {a[2], a[0], a[1]}, *const bs[3] = {b[0], b[0], b[3]};
    double *const cs[3] = {c[3], c[1], c[2]};
    *count = 0;
    dgemm_batch_(transa, transb, m, n, k, alpha, as, lda, bs, ldb, beta, cs, ldc, &three, sizes);
    expect(*count == 3, "products of a batch");
    for (int i = 0; i < 3; i++) {
        const int group = i == 2 ? 2 : 0;
        expect_call(i,
                    (fake_record){.transa = group == 2 ? 'T' : 'N',
                                  .transb = group == 2 ? 'T' : 'N',
                                  .m = m[group],
                                  .n = n[group],
                                  .k = k[group],
                                  .lda = lda[group],
                                  .ldb = ldb[group],
                                  .ldc = ldc[group],
                                  .alpha = alpha[group],
                                  .beta = beta[group],
                                  .a = as[i],
                                  .b = bs[i],
                                  .c = cs[i]},
                    "a product of a batch differs");
    }
}

/* The row-major product of a group is the transposed column-major one. */
static void test_row_major_groups(void)
{
    const int no = NO_TRANSPOSE, yes = TRANSPOSE, m = 2, n = 3, k = 4, lda = 4, ldb = 5, ldc = 6;
    const int two = 2;
    const double alpha = 0.5, beta = 2;
    const void *const as[2] = {a[0], a[1]}, *const bs[2] = {b[3], b[1]};
    void *const cs[2] = {c[0], c[2]};
    *count = 0;
    cblas_dgemm_batch(ROW_MAJOR, &no, &yes, &m, &n, &k, &alpha, as, &lda, bs, &ldb, &beta, cs, &ldc,
                      1, &two);
    expect(*count == 2, "row-major products of a batch");
    for (int i = 0; i < 2; i++) {
        expect_call(i,
                    (fake_record){.transa = 'T',
                                  .transb = 'N',
                                  .m = 3,
                                  .n = 2,
                                  .k = 4,
                                  .lda = 5,
                                  .ldb = 4,
                                  .ldc = 6,
                                  .alpha = 0.5,
                                  .beta = 2,
                                  .a = bs[i],
                                  .b = as[i],
                                  .c = cs[i]},
                    "a row-major product of a batch differs");
    }
}

/* A small factorisation reaches the host's function as it is, counted or not. */
static void test_factorisation(void)
{
    const int n = 4, lda = 5;
    for (int round = 0; round < 2; round++) {
        int info = 0;
        *count = 0;
        dpotrf_("u", &n, c[0], &lda, &info, 1);
        expect_call(0, (fake_record){.transa = 'u', .m = 4, .k = 1, .lda = 5, .c = c[0]},
                    "a small factorisation differs");
        expect(*count == 1 && calls[0].at_m == &n && info == 7, "a factorisation's arguments");
    }
}

static void test_wide_host(void)
{
    const fake_record *p = &product;
    fake_record wanted = product;
    wanted.transb = 'T';
    for (int round = 0; round < 2; round++) {
        fortran_call(p);
        expect_call(0, wanted, "a call that is converted differs");
    }
    *count = 0;
    dgemm_64_(&p->transa, &p->transb, &p->m, &p->n, &p->k, &p->alpha, p->a, &p->lda, p->b, &p->ldb,
              &p->beta, p->c, &p->ldc);
    expect_call(0, *p, "a call with 64-bit integers differs");
    expect(calls[0].at_m == &p->m, "the arguments of a call with 64-bit integers");
}

int main(int argc, char **argv)
{
    void *host = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!host) {
        return 2;
    }
    calls = dlsym(host, "fake_calls");
    count = dlsym(host, "fake_count");
    if (!calls || !count) {
        return 3;
    }
    if (strcmp(argv[2], "wide") == 0) {
        test_wide_host();
        return failures;
    }
    const bool is_passed = strcmp(argv[2], "passed") == 0;
    test_fortran(is_passed);
    test_c(is_passed);
    test_groups();
    test_row_major_groups();
    test_factorisation();
    return failures;
}

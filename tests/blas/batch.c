/* The C interface of batches: row-major products against cblas_dgemm, and what is reported of
 * invalid arguments. Ends with the number of failures. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112, COUNT = 5 };

void cblas_dgemm(int, int, int, int, int, int, double, const void *, int, const void *, int, double,
                 void *, int);
void cblas_dgemm_batch_strided(int, int, int, int, int, int, double, const void *, int, int,
                               const void *, int, int, double, void *, int, int, int);
void cblas_dgemm_batch(int, const int *, const int *, const int *, const int *, const int *,
                       const double *, const void *const *, const int *, const void *const *,
                       const int *, const double *, void *const *, const int *, int, const int *);
__attribute__((visibility("default"))) void cblas_xerbla(int64_t position, const char *name,
                                                         const char *format, ...);

static int failures;
static int reported;
static char reported_name[32];

void cblas_xerbla(int64_t position, const char *name, const char *format, ...)
{
    (void)format;
    reported = (int)position;
    snprintf(reported_name, sizeof reported_name, "%s", name);
}

static void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("%s\n", what);
        failures++;
    }
}

static void expect_report(int position, const char *name, const char *what)
{
    if (reported != position || strcmp(reported_name, name) != 0) {
        printf("%s: reported %d of %s, expected %d of %s\n", what, reported, reported_name,
               position, name);
        failures++;
    }
    reported = 0;
}

/* Row-major 3 x 5 = 3 x 4 times (5 x 4)^T, with gaps between rows and between matrices. */
static double a[COUNT][40], b[COUNT][50], c[COUNT][60], wanted[COUNT][60];

static void fill(void)
{
    for (int p = 0; p < COUNT; p++) {
        for (int i = 0; i < 60; i++) {
            a[p][i % 40] = i * 0.25 - p;
            b[p][i % 50] = 3 - i * 0.5 + p;
            c[p][i] = wanted[p][i] = i;
        }
        cblas_dgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, 3, 5, 4, 2, a[p], 6, b[p], 7, -1, wanted[p],
                    9);
    }
}

static void strided(int layout, int m, int lda, int stride_a, int stride_b, int stride_c, int count)
{
    cblas_dgemm_batch_strided(layout, NO_TRANSPOSE, TRANSPOSE, m, 5, 4, 2, a, lda, stride_a, b, 7,
                              stride_b, -1, c, 9, stride_c, count);
}

/* The first and the last product are a group of two, in which they are far apart. */
static void groups(int layout, int first_trans, int lda, int last_size)
{
    const int transa[2] = {first_trans, NO_TRANSPOSE}, transb[2] = {TRANSPOSE, TRANSPOSE};
    const int m[2] = {3, 3}, n[2] = {5, 5}, k[2] = {4, 4}, leading[2] = {lda, 6}, ldb[2] = {7, 7},
              ldc[2] = {9, 9}, sizes[2] = {2, last_size};
    const double alpha[2] = {2, 2}, beta[2] = {-1, -1};
    const void *const as[COUNT] = {a[0], a[4], a[1], a[2], a[3]};
    const void *const bs[COUNT] = {b[0], b[4], b[1], b[2], b[3]};
    void *const cs[COUNT] = {c[0], c[4], c[1], c[2], c[3]};
    cblas_dgemm_batch(layout, transa, transb, m, n, k, alpha, as, leading, bs, ldb, beta, cs, ldc,
                      2, sizes);
}

int main(void)
{
    fill();
    strided(ROW_MAJOR, 3, 6, 40, 50, 60, COUNT);
    expect(memcmp(c, wanted, sizeof c) == 0, "strided products differ");
    fill();
    groups(ROW_MAJOR, NO_TRANSPOSE, 6, 3);
    expect(memcmp(c, wanted, sizeof c) == 0, "groups of products differ");

    fill();
    memcpy(wanted, c, sizeof c);
    strided(103, 3, 6, 40, 50, 60, COUNT);
    expect_report(1, "cblas_dgemm_batch_strided", "a layout that there is not");
    strided(ROW_MAJOR, -1, 6, 40, 50, 60, COUNT);
    expect_report(4, "cblas_dgemm_batch_strided", "a negative m");
    strided(ROW_MAJOR, 3, 3, 40, 50, 60, COUNT);
    expect_report(9, "cblas_dgemm_batch_strided", "rows of A that overlap");
    strided(ROW_MAJOR, 3, 6, -1, 50, 60, COUNT);
    expect_report(10, "cblas_dgemm_batch_strided", "a negative stride of A");
    strided(COLUMN_MAJOR, 3, 6, 40, -1, 60, COUNT);
    expect_report(13, "cblas_dgemm_batch_strided", "a negative stride of B");
    strided(ROW_MAJOR, 3, 6, 40, 50, 22, COUNT);
    expect_report(17, "cblas_dgemm_batch_strided", "results that overlap");
    strided(ROW_MAJOR, 3, 6, 40, 50, 60, -1);
    expect_report(18, "cblas_dgemm_batch_strided", "a negative number of products");
    groups(ROW_MAJOR, 0, 6, 3);
    expect_report(2, "cblas_dgemm_batch", "a transposition that there is not");
    groups(ROW_MAJOR, NO_TRANSPOSE, 3, 3);
    expect_report(9, "cblas_dgemm_batch", "rows of A that overlap, in a group");
    groups(ROW_MAJOR, NO_TRANSPOSE, 6, -3);
    expect_report(16, "cblas_dgemm_batch", "a negative size of a group");
    strided(ROW_MAJOR, 3, 6, 40, 50, 60, 0);
    expect(reported == 0, "a batch without products is reported");
    expect(memcmp(c, wanted, sizeof c) == 0, "an invalid call has written");
    return failures;
}

/* A host's BLAS for blas_pass and blas_forward: functions of its names that say what arguments they
 * got. */
#include "fake_host.h"

#include <complex.h>
#include <stddef.h>

/* With FAKE_WIDE names without a suffix take 64-bit integers. */
#ifdef FAKE_WIDE
typedef int64_t integer;
#else
typedef int integer;
#endif

#define API __attribute__((visibility("default")))

/* Programs declare these functions themselves. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

API fake_record fake_calls[FAKE_CALLS];
API int fake_count;

static void record(fake_record made)
{
    if (fake_count < FAKE_CALLS) {
        fake_calls[fake_count++] = made;
    }
}

/* Of libblastrampoline's test only: the index of the last element. */
API integer isamax_(const integer *n, const float *x, const integer *incx)
{
    return x && *incx == 1 && *n > 0 ? *n : 0;
}

/* Its presence makes the library a BLAS. */
API void dgemm_(const char *transa, const char *transb, const integer *m, const integer *n,
                const integer *k, const double *alpha, const double *a, const integer *lda,
                const double *b, const integer *ldb, const double *beta, double *c,
                const integer *ldc)
{
    record((fake_record){.transa = *transa,
                         .transb = *transb,
                         .at_m = m,
                         .m = *m,
                         .n = *n,
                         .k = *k,
                         .alpha = *alpha,
                         .a = a,
                         .lda = *lda,
                         .b = b,
                         .ldb = *ldb,
                         .beta = *beta,
                         .c = c,
                         .ldc = *ldc});
}

API void cblas_dgemm(int layout, int transa, int transb, integer m, integer n, integer k,
                     double alpha, const double *a, integer lda, const double *b, integer ldb,
                     double beta, double *c, integer ldc)
{
    record((fake_record){.layout = layout,
                         .transa = (char)transa,
                         .transb = (char)transb,
                         .m = m,
                         .n = n,
                         .k = k,
                         .alpha = alpha,
                         .a = a,
                         .lda = lda,
                         .b = b,
                         .ldb = ldb,
                         .beta = beta,
                         .c = c,
                         .ldc = ldc});
}

API void dpotrf_(const char *uplo, const integer *n, double *a, const integer *lda, integer *info,
                 size_t length)
{
    record((fake_record){
        .transa = *uplo, .at_m = n, .m = *n, .k = (int64_t)length, .lda = *lda, .c = a});
    *info = 7;
}

/* Calls of these should not come. */
API void cblas_dsyrk(void)
{
    record((fake_record){.m = -1});
}

API void cblas_zsyrk(void)
{
    record((fake_record){.m = -2});
}

/* More arguments than registers; the last length comes from the stack. */
API void dgbmv_(const char *trans, const int *m, const int *n, const int *kl, const int *ku,
                const double *alpha, const double *a, const int *lda, const double *x,
                const int *incx, const double *beta, double *y, const int *incy, size_t length)
{
    y[0] = *trans + *m + *n + *kl + *ku + *alpha + a[0] + *lda + x[0] + *incx + *beta + *incy +
           (double)length;
}

/* Integers and floats by value, in registers of both kinds. */
API double cblas_daxpy(int n, double alpha, const double *x, int incx, double *y, int incy)
{
    y[0] = n + alpha + x[0] + incx + incy;
    return y[0];
}

API float sdot_(const int *n, const float *x, const int *incx, const float *y, const int *incy)
{
    return (float)*n + x[0] + (float)*incx + y[0] + (float)*incy;
}

/* A complex result: in registers, or by a hidden pointer, as the compiler has it. */
API double complex zdotc_(const int *n, const double complex *x, const int *incx,
                          const double complex *y, const int *incy)
{
    return *n + x[0] + *incx + y[0] + *incy;
}

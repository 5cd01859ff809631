/* Levels 1 and 2 of the library in the place of libblas.so.3 reach the host's functions with their
 * arguments and results as they are, from many threads at once; a missing one computes nothing.
 *
 * blas_pass LIBRARY HOST */
#include <complex.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8

static void *library;
static atomic_int wrong;

/* A function of the library; callers give its type. */
#define FUNCTION(type, variable, name)                \
    type variable = NULL;                             \
    do {                                              \
        void *found = dlsym(library, name);           \
        memcpy(&variable, &found, sizeof found);      \
        if (!found) {                                 \
            fprintf(stderr, "%s is missing\n", name); \
            exit(1);                                  \
        }                                             \
    } while (0)

typedef void gbmv(const char *, const int *, const int *, const int *, const int *, const double *,
                  const double *, const int *, const double *, const int *, const double *,
                  double *, const int *, size_t);
typedef double daxpy(int, double, const double *, int, double *, int);
typedef float sdot(const int *, const float *, const int *, const float *, const int *);
typedef double complex zdotc(const int *, const double complex *, const int *,
                             const double complex *, const int *);

static void *thread_main(void *unused)
{
    FUNCTION(gbmv *, dgbmv, "dgbmv_");
    FUNCTION(daxpy *, axpy, "cblas_daxpy");
    FUNCTION(sdot *, dot, "sdot_");
    FUNCTION(zdotc *, zdot, "zdotc_");
    for (int round = 0; round < 2; round++) { /* the first looks up, the second jumps */
        const int m = 2, n = 3, kl = 4, ku = 5, lda = 6, incx = 7, incy = 8;
        const double alpha = 0.5, a = 0.25, x = 0.125, beta = 1024;
        double y = 0;
        dgbmv("A", &m, &n, &kl, &ku, &alpha, &a, &lda, &x, &incx, &beta, &y, &incy, 2048);
        wrong += y != 65 + 35 + 0.875 + 1024 + 2048;
        wrong += axpy(1, 0.5, &x, 2, &y, 4) != 7.625 || y != 7.625;
        const float single[2] = {0.5F, 0.25F};
        wrong += dot(&m, single, &n, single + 1, &kl) != 9.75F;
        const double complex z[2] = {1 + 2 * I, 4 + 8 * I};
        wrong += zdot(&m, z, &n, z + 1, &kl) != 14 + 10 * I;
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (argc != 3 || setenv("HALYARD_BLAS_HOST", argv[2], 1)) {
        return 2;
    }
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, thread_main, NULL)) {
            return 3;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    const int n = 1;
    const float x = 3;
    FUNCTION(sdot *, missing, "sasum_");
    wrong += missing(&n, &x, &n, &x, &n) != 0;
    printf("%d wrong\n", (int)wrong);
    return wrong != 0;
}

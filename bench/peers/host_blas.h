/* BLAS libraries of the host, loaded on demand. */
#ifndef BENCH_PEERS_HOST_BLAS_H
#define BENCH_PEERS_HOST_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* Row-major C = A B with no gaps between the rows. */
typedef struct peer_blas {
    char name[32];
    void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                  const double *a, int lda, const double *b, int ldb, double beta, double *c,
                  int ldc);
} peer_blas;

/* Whether peer_open knows a name. */
bool peer_is_known(const char *name);

/* Loads "openblas" or "blis" and sets its number of threads. It stays loaded: its threads cannot be
 * stopped. False with a message. */
bool peer_open(const char *name, int threads, peer_blas *peer, char *message, size_t bytes);

#endif

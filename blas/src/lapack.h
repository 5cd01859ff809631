/* Factorisations of LAPACK, and the host's functions for them: the library that the program would
 * use without this one. */
#ifndef BLAS_SRC_LAPACK_H
#define BLAS_SRC_LAPACK_H

#include "invoke.h"

typedef enum blas_factoring_kind {
    BLAS_GETRF, /* A = P L U with partial pivoting */
    BLAS_POTRF, /* A = L L^H or U^H U */
    BLAS_GEQRF, /* A = Q R by Householder reflectors */
    BLAS_ORGQR, /* Q of k reflectors; ungqr of complex types */
    BLAS_ORMQR, /* that Q, or its conjugate transpose, times A; unmqr of complex types */
    BLAS_LARFT, /* the triangle T of I - V T V^H; the host's, as the next ones */
    BLAS_GETRS, /* X of A X = B, from the factors */
    BLAS_GESV,  /* getrf and getrs */
    BLAS_FACTORING_COUNT
} blas_factoring_kind;

/* A call of a factorisation, column-major. */
typedef struct blas_factoring {
    blas_factoring_kind kind;
    blas_type type;   /* s, d, c or z */
    bool is_64;       /* the interface's integers have 64 bits */
    char uplo;        /* of potrf */
    char side, trans; /* of ormqr */
    int64_t m, n, k;
    void *a;
    int64_t lda;
    void *pivots;  /* of getrf: the interface's integers, from 1 on */
    const void *v; /* of orgqr and ormqr: the reflectors */
    int64_t ldv;
    void *tau, *work;    /* of reflectors */
    int64_t work_length; /* of work, in elements; -1: the call asks for it */
} blas_factoring;

/* Whether it computes with blocks of Householder reflectors. */
static inline bool blas_lapack_has_reflectors(blas_factoring_kind kind)
{
    return kind == BLAS_GEQRF || kind == BLAS_ORGQR || kind == BLAS_ORMQR;
}

/* Without the letter of the type, such as "getrf". */
const char *blas_lapack_name(blas_factoring_kind kind, blas_type type);

/* The host's function of an interface; null: it has none. Threads: any. */
blas_function *blas_lapack_find(blas_factoring_kind kind, blas_type type, bool is_64);

/* The types of functions, as in invoke.h. */
typedef void blas_getrf_function(const void *, const void *, void *, const void *, void *, void *);
typedef void blas_potrf_function(const char *, const void *, void *, const void *, void *, size_t);
typedef void blas_geqrf_function(const void *, const void *, void *, const void *, void *, void *,
                                 const void *, void *);
typedef void blas_orgqr_function(const void *, const void *, const void *, void *, const void *,
                                 const void *, void *, const void *, void *);
typedef void blas_ormqr_function(const char *, const char *, const void *, const void *,
                                 const void *, const void *, const void *, const void *, void *,
                                 const void *, void *, const void *, void *, size_t, size_t);
typedef void blas_getrs_function(const char *, const void *, const void *, const void *,
                                 const void *, const void *, void *, const void *, void *, size_t);
typedef void blas_gesv_function(const void *, const void *, void *, const void *, void *, void *,
                                const void *, void *);
typedef void blas_larft_function(const char *, const char *, const void *, const void *,
                                 const void *, const void *, const void *, void *, const void *,
                                 size_t, size_t);

/* The host's functions on memory of the library, with the interface of a call. Each returns
 * LAPACK's info. `pivots` counts from 1 on. Threads: any. */
int64_t blas_lapack_getrf(const blas_factoring *call, int64_t m, int64_t n, void *a, int64_t lda,
                          int64_t *pivots);
int64_t blas_lapack_potrf(const blas_factoring *call, int64_t n, void *a, int64_t lda);
int64_t blas_lapack_geqrf(const blas_factoring *call, int64_t m, int64_t n, void *a, int64_t lda,
                          void *tau, void *work, int64_t work_length);
void blas_lapack_larft(const blas_factoring *call, int64_t m, int64_t k, const void *v, int64_t ldv,
                       const void *tau, void *t, int64_t ldt);

#endif

/* A call of a routine, the same for every interface: column-major, with 64-bit lengths. */
#ifndef BLAS_SRC_CALL_H
#define BLAS_SRC_CALL_H

#include "routine.h"

#include <stdbool.h>

/* For functions that entry points specialise: calls become registers there. */
#define BLAS_INLINE static inline __attribute__((always_inline))

/* Letters are capitals; fields that a routine does not have are 0. TRMM and TRSM have their B in
 * c, and its leading dimension in ldc. */
typedef struct blas_call {
    blas_routine routine;
    bool is_64; /* the interface's integers have 64 bits */
    bool is_cblas;
    bool is_row_major;  /* it was; the fields are those of the column-major call */
    const void *caller; /* an address in the code that called the entry point */
    char side, uplo, transa, transb, diag;
    int64_t m, n, k;          /* without m: it is n */
    const void *alpha, *beta; /* of the routine's type, or real for Hermitian updates */
    double scalar[2];         /* storage for an alpha that an entry point changed */
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    int64_t batch; /* products, 1 of most routines; of the others each operand begins a stride */
    int64_t stride_a, stride_b, stride_c; /* of elements after that of the product before */
} blas_call;

typedef struct blas_number {
    double re, im;
} blas_number;

blas_kind blas_call_kind(const blas_call *call);
blas_type blas_call_type(const blas_call *call);     /* of C */
blas_type blas_call_operands(const blas_call *call); /* of A and B */

/* Whether the arguments are those of gemm_batch_strided. */
static inline bool blas_call_is_strided(const blas_call *call)
{
    return call->routine >= BLAS_ROUTINE_sgemm_batch_strided &&
           call->routine <= BLAS_ROUTINE_zgemm_batch_strided;
}

/* One of the products of a batch, as a call of the routine for one. */
blas_call blas_call_product(const blas_call *call, int64_t index);

/* The values of alpha and beta; a beta that the routine lacks is 0. */
blas_number blas_call_alpha(const blas_call *call);
blas_number blas_call_beta(const blas_call *call);

/* Whether nothing is to be done: a result without elements, or one that stays as it is. */
bool blas_call_is_empty(const blas_call *call);

/* Whether no product is to be computed: C = beta C, or 0. */
bool blas_call_is_scaling(const blas_call *call);

#endif

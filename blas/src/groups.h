/* Calls of gemm_batch: groups of products with the same lengths, each with its own addresses. */
#ifndef BLAS_SRC_GROUPS_H
#define BLAS_SRC_GROUPS_H

#include "call.h"

/* Integers are of the interface's size; of each list but the addresses, an element is a group's. */
typedef struct blas_groups {
    blas_routine routine;
    bool is_64, is_cblas;
    int layout; /* of the C interface */
    const void *caller;
    const void *transa, *transb; /* letters, or enumerators of the C interface */
    const void *m, *n, *k, *lda, *ldb, *ldc, *sizes;
    const void *alpha, *beta;        /* of the routine's type */
    const void *const *a, *const *b; /* of each product */
    void *const *c;
    int64_t count;
} blas_groups;

/* Checks all groups, then computes them in their order: products whose addresses are equally far
 * apart together. Invalid arguments are reported, and nothing is computed. Threads: any. */
void blas_groups_run(const blas_groups *groups);

#endif

/* The entry points of one size of integers: INTEGER, IS_64, ENTRY(name). Included by fortran.c. */
#define BEGIN(letter, name)                                                                       \
    .routine = BLAS_ROUTINE_##letter##name, .is_64 = IS_64, .caller = BLAS_CALLER
#define BEGIN_ONE(letter, name) BEGIN(letter, name), .batch = 1

#define FORTRAN_GEMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *transa, const char *transb, const INTEGER *m, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda, const void *b,    \
        const INTEGER *ldb, const void *beta, void *c, const INTEGER *ldc)                        \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .transa = blas_letter(transa),             \
                              .transb = blas_letter(transb), .m = *m, .n = *n, .k = *k,           \
                              .alpha = alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb,           \
                              .beta = beta, .c = c, .ldc = *ldc});                                \
    }

#define FORTRAN_GEMMT(letter, name, kind, scalar)                                                 \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *transa, const char *transb, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda, const void *b,    \
        const INTEGER *ldb, const void *beta, void *c, const INTEGER *ldc)                        \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                 \
                              .transa = blas_letter(transa), .transb = blas_letter(transb),       \
                              .m = *n, .n = *n, .k = *k, .alpha = alpha, .a = a, .lda = *lda,     \
                              .b = b, .ldb = *ldb, .beta = beta, .c = c, .ldc = *ldc});           \
    }

#define FORTRAN_SYMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *side, const char *uplo, const INTEGER *m, const INTEGER *n,                   \
        const void *alpha, const void *a, const INTEGER *lda, const void *b, const INTEGER *ldb,  \
        const void *beta, void *c, const INTEGER *ldc)                                            \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .side = blas_letter(side),                 \
                              .uplo = blas_letter(uplo), .m = *m, .n = *n, .alpha = alpha,        \
                              .a = a, .lda = *lda, .b = b, .ldb = *ldb, .beta = beta, .c = c,     \
                              .ldc = *ldc});                                                      \
    }

#define FORTRAN_SYRK(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *trans, const INTEGER *n, const INTEGER *k,                  \
        const void *alpha, const void *a, const INTEGER *lda, const void *beta, void *c,          \
        const INTEGER *ldc)                                                                       \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                 \
                              .transa = blas_letter(trans), .m = *n, .n = *n, .k = *k,            \
                              .alpha = alpha, .a = a, .lda = *lda, .beta = beta, .c = c,          \
                              .ldc = *ldc});                                                      \
    }

#define FORTRAN_SYR2K(letter, name, kind, scalar)                                                 \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *trans, const INTEGER *n, const INTEGER *k,                  \
        const void *alpha, const void *a, const INTEGER *lda, const void *b, const INTEGER *ldb,  \
        const void *beta, void *c, const INTEGER *ldc)                                            \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                 \
                              .transa = blas_letter(trans), .m = *n, .n = *n, .k = *k,            \
                              .alpha = alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb,           \
                              .beta = beta, .c = c, .ldc = *ldc});                                \
    }

#define FORTRAN_TRMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *side, const char *uplo, const char *transa, const char *diag,                 \
        const INTEGER *m, const INTEGER *n, const void *alpha, const void *a, const INTEGER *lda, \
        void *b, const INTEGER *ldb)                                                              \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN_ONE(letter, name), .side = blas_letter(side),                 \
                              .uplo = blas_letter(uplo), .transa = blas_letter(transa),           \
                              .diag = blas_letter(diag), .m = *m, .n = *n, .alpha = alpha,        \
                              .a = a, .lda = *lda, .c = b, .ldc = *ldb});                         \
    }

#define FORTRAN_STRIDED(letter, name, kind, scalar)                                               \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *transa, const char *transb, const INTEGER *m, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda,                   \
        const INTEGER *stride_a, const void *b, const INTEGER *ldb, const INTEGER *stride_b,      \
        const void *beta, void *c, const INTEGER *ldc, const INTEGER *stride_c,                   \
        const INTEGER *batch)                                                                     \
    {                                                                                             \
        blas_run(&(blas_call){BEGIN(letter, name), .transa = blas_letter(transa),                 \
                              .transb = blas_letter(transb), .m = *m, .n = *n, .k = *k,           \
                              .alpha = alpha, .a = a, .lda = *lda, .stride_a = *stride_a, .b = b, \
                              .ldb = *ldb, .stride_b = *stride_b, .beta = beta, .c = c,           \
                              .ldc = *ldc, .stride_c = *stride_c, .batch = *batch});              \
    }

#define FORTRAN_GROUPS(letter, name, kind, scalar)                                                \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *transa, const char *transb, const INTEGER *m, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *const *a, const INTEGER *lda,            \
        const void *const *b, const INTEGER *ldb, const void *beta, void *const *c,               \
        const INTEGER *ldc, const INTEGER *count, const INTEGER *sizes)                           \
    {                                                                                             \
        blas_groups_run(&(blas_groups){BEGIN(letter, name), .transa = transa, .transb = transb,   \
                                       .m = m, .n = n, .k = k, .alpha = alpha, .a = a,            \
                                       .lda = lda, .b = b, .ldb = ldb, .beta = beta, .c = c,      \
                                       .ldc = ldc, .count = *count, .sizes = sizes});             \
    }

BLAS_ROUTINES(FORTRAN_GEMM, FORTRAN_GEMMT, FORTRAN_SYMM, FORTRAN_SYRK, FORTRAN_SYR2K, FORTRAN_TRMM,
              FORTRAN_STRIDED, FORTRAN_GROUPS)

#undef BEGIN
#undef BEGIN_ONE
#undef FORTRAN_STRIDED
#undef FORTRAN_GROUPS
#undef FORTRAN_GEMM
#undef FORTRAN_GEMMT
#undef FORTRAN_SYMM
#undef FORTRAN_SYRK
#undef FORTRAN_SYR2K
#undef FORTRAN_TRMM

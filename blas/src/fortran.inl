/* The entry points of one size of integers: INTEGER, IS_64, ENTRY(name). Included by fortran.c. */
#define BEGIN(letter, name)                                                                       \
    .routine = BLAS_ROUTINE_##letter##name, .is_64 = IS_64, .caller = BLAS_CALLER
#define BEGIN_ONE(letter, name) BEGIN(letter, name), .batch = 1

/* A small call goes to the host's function, as TYPE and its arguments say; others to blas_run. The
 * fields are told twice, so that the first call lives in registers. */
#define FORWARD_OR_RUN(letter, kind, type, arguments, ...)                                        \
    {                                                                                             \
        const blas_call shape = {__VA_ARGS__};                                                    \
        blas_function *host = blas_forward_find(&shape, kind, BLAS_TYPE_##letter);                \
        if (host) {                                                                               \
            ((type *)host) arguments;                                                             \
        } else {                                                                                  \
            blas_run(&(blas_call){__VA_ARGS__});                                                  \
        }                                                                                         \
    }

#define FORTRAN_GEMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *transa, const char *transb, const INTEGER *m, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda, const void *b,    \
        const INTEGER *ldb, const void *beta, void *c, const INTEGER *ldc)                        \
    FORWARD_OR_RUN(letter, kind, blas_gemm_function,                                              \
                   (transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1),          \
                   BEGIN_ONE(letter, name), .transa = blas_letter(transa),                        \
                   .transb = blas_letter(transb), .m = *m, .n = *n, .k = *k, .alpha = alpha,      \
                   .a = a, .lda = *lda, .b = b, .ldb = *ldb, .beta = beta, .c = c, .ldc = *ldc)

#define FORTRAN_GEMMT(letter, name, kind, scalar)                                                 \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *transa, const char *transb, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda, const void *b,    \
        const INTEGER *ldb, const void *beta, void *c, const INTEGER *ldc)                        \
    FORWARD_OR_RUN(letter, kind, blas_gemmt_function,                                             \
                   (uplo, transa, transb, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1, 1),    \
                   BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                            \
                   .transa = blas_letter(transa), .transb = blas_letter(transb), .m = *n,         \
                   .n = *n, .k = *k, .alpha = alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb,    \
                   .beta = beta, .c = c, .ldc = *ldc)

#define FORTRAN_SYMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *side, const char *uplo, const INTEGER *m, const INTEGER *n,                   \
        const void *alpha, const void *a, const INTEGER *lda, const void *b, const INTEGER *ldb,  \
        const void *beta, void *c, const INTEGER *ldc)                                            \
    FORWARD_OR_RUN(letter, kind, blas_symm_function,                                              \
                   (side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1),                 \
                   BEGIN_ONE(letter, name), .side = blas_letter(side), .uplo = blas_letter(uplo), \
                   .m = *m, .n = *n, .alpha = alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb,    \
                   .beta = beta, .c = c, .ldc = *ldc)

#define FORTRAN_SYRK(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *trans, const INTEGER *n, const INTEGER *k,                  \
        const void *alpha, const void *a, const INTEGER *lda, const void *beta, void *c,          \
        const INTEGER *ldc)                                                                       \
    FORWARD_OR_RUN(letter, kind, blas_syrk_function,                                              \
                   (uplo, trans, n, k, alpha, a, lda, beta, c, ldc, 1, 1),                        \
                   BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                            \
                   .transa = blas_letter(trans), .m = *n, .n = *n, .k = *k, .alpha = alpha,       \
                   .a = a, .lda = *lda, .beta = beta, .c = c, .ldc = *ldc)

#define FORTRAN_SYR2K(letter, name, kind, scalar)                                                 \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *uplo, const char *trans, const INTEGER *n, const INTEGER *k,                  \
        const void *alpha, const void *a, const INTEGER *lda, const void *b, const INTEGER *ldb,  \
        const void *beta, void *c, const INTEGER *ldc)                                            \
    FORWARD_OR_RUN(letter, kind, blas_symm_function,                                              \
                   (uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1),                \
                   BEGIN_ONE(letter, name), .uplo = blas_letter(uplo),                            \
                   .transa = blas_letter(trans), .m = *n, .n = *n, .k = *k, .alpha = alpha,       \
                   .a = a, .lda = *lda, .b = b, .ldb = *ldb, .beta = beta, .c = c, .ldc = *ldc)

#define FORTRAN_TRMM(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *side, const char *uplo, const char *transa, const char *diag,                 \
        const INTEGER *m, const INTEGER *n, const void *alpha, const void *a, const INTEGER *lda, \
        void *b, const INTEGER *ldb)                                                              \
    FORWARD_OR_RUN(letter, kind, blas_trmm_function,                                              \
                   (side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb, 1, 1, 1, 1),           \
                   BEGIN_ONE(letter, name), .side = blas_letter(side), .uplo = blas_letter(uplo), \
                   .transa = blas_letter(transa), .diag = blas_letter(diag), .m = *m, .n = *n,    \
                   .alpha = alpha, .a = a, .lda = *lda, .c = b, .ldc = *ldb)

#define FORTRAN_STRIDED(letter, name, kind, scalar)                                               \
    BLAS_API void ENTRY(letter##name)(                                                            \
        const char *transa, const char *transb, const INTEGER *m, const INTEGER *n,               \
        const INTEGER *k, const void *alpha, const void *a, const INTEGER *lda,                   \
        const INTEGER *stride_a, const void *b, const INTEGER *ldb, const INTEGER *stride_b,      \
        const void *beta, void *c, const INTEGER *ldc, const INTEGER *stride_c,                   \
        const INTEGER *batch)                                                                     \
    FORWARD_OR_RUN(letter, kind, blas_strided_function,                                           \
                   (transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,  \
                    ldc, stride_c, batch, 1, 1),                                                  \
                   BEGIN(letter, name), .transa = blas_letter(transa),                            \
                   .transb = blas_letter(transb), .m = *m, .n = *n, .k = *k, .alpha = alpha,      \
                   .a = a, .lda = *lda, .stride_a = *stride_a, .b = b, .ldb = *ldb,               \
                   .stride_b = *stride_b, .beta = beta, .c = c, .ldc = *ldc,                      \
                   .stride_c = *stride_c, .batch = *batch)

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
#undef FORWARD_OR_RUN
#undef FORTRAN_STRIDED
#undef FORTRAN_GROUPS
#undef FORTRAN_GEMM
#undef FORTRAN_GEMMT
#undef FORTRAN_SYMM
#undef FORTRAN_SYRK
#undef FORTRAN_SYR2K
#undef FORTRAN_TRMM

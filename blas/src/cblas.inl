/* The entry points of one size of integers: INTEGER, IS_64, ENTRY(name). Included by cblas.c. */
#define BEGIN(letter, name)                                                                   \
    .routine = BLAS_ROUTINE_##letter##name, .is_64 = IS_64, .is_cblas = true,                 \
    .caller = BLAS_CALLER

#define CBLAS_GEMM(letter, name, kind, scalar)                                                \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int transa, int transb, INTEGER m, INTEGER n, INTEGER k,                  \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, const void *b, INTEGER ldb,       \
        SCALAR_##letter(beta), void *c, INTEGER ldc)                                          \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .transa = transposition(transa),   \
                                      .transb = transposition(transb), .m = m, .n = n,        \
                                      .k = k, .alpha = ADDRESS_##letter(alpha), .a = a,       \
                                      .lda = lda, .b = b, .ldb = ldb,                         \
                                      .beta = ADDRESS_##letter(beta), .c = c, .ldc = ldc});   \
    }

#define CBLAS_GEMMT(letter, name, kind, scalar)                                               \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int uplo, int transa, int transb, INTEGER n, INTEGER k,                   \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, const void *b, INTEGER ldb,       \
        SCALAR_##letter(beta), void *c, INTEGER ldc)                                          \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .uplo = triangle(uplo),            \
                                      .transa = transposition(transa),                        \
                                      .transb = transposition(transb), .m = n, .n = n,        \
                                      .k = k, .alpha = ADDRESS_##letter(alpha), .a = a,       \
                                      .lda = lda, .b = b, .ldb = ldb,                         \
                                      .beta = ADDRESS_##letter(beta), .c = c, .ldc = ldc});   \
    }

#define CBLAS_SYMM(letter, name, kind, scalar)                                                \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int side, int uplo, INTEGER m, INTEGER n, SCALAR_##letter(alpha),         \
        const void *a, INTEGER lda, const void *b, INTEGER ldb, SCALAR_##letter(beta),        \
        void *c, INTEGER ldc)                                                                 \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .side = side_of(side),             \
                                      .uplo = triangle(uplo), .m = m, .n = n,                 \
                                      .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda,   \
                                      .b = b, .ldb = ldb, .beta = ADDRESS_##letter(beta),     \
                                      .c = c, .ldc = ldc});                                   \
    }

#define CBLAS_SYRK(letter, name, kind, scalar)                                                \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int uplo, int trans, INTEGER n, INTEGER k, SCALAR_##scalar(alpha),        \
        const void *a, INTEGER lda, SCALAR_##scalar(beta), void *c, INTEGER ldc)              \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .uplo = triangle(uplo),            \
                                      .transa = transposition(trans), .m = n, .n = n, .k = k, \
                                      .alpha = ADDRESS_##scalar(alpha), .a = a, .lda = lda,   \
                                      .beta = ADDRESS_##scalar(beta), .c = c, .ldc = ldc});   \
    }

#define CBLAS_SYR2K(letter, name, kind, scalar)                                               \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int uplo, int trans, INTEGER n, INTEGER k, SCALAR_##letter(alpha),        \
        const void *a, INTEGER lda, const void *b, INTEGER ldb, SCALAR_##scalar(beta),        \
        void *c, INTEGER ldc)                                                                 \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .uplo = triangle(uplo),            \
                                      .transa = transposition(trans), .m = n, .n = n, .k = k, \
                                      .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda,   \
                                      .b = b, .ldb = ldb, .beta = ADDRESS_##scalar(beta),     \
                                      .c = c, .ldc = ldc});                                   \
    }

#define CBLAS_TRMM(letter, name, kind, scalar)                                                \
    BLAS_API void ENTRY(letter##name)(                                                        \
        int layout, int side, int uplo, int transa, int diag, INTEGER m, INTEGER n,           \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, void *b, INTEGER ldb)             \
    {                                                                                         \
        cblas_run(layout, (blas_call){BEGIN(letter, name), .side = side_of(side),             \
                                      .uplo = triangle(uplo),                                 \
                                      .transa = transposition(transa),                        \
                                      .diag = diagonal(diag), .m = m, .n = n,                 \
                                      .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda,   \
                                      .c = b, .ldc = ldb});                                   \
    }

BLAS_ROUTINES(CBLAS_GEMM, CBLAS_GEMMT, CBLAS_SYMM, CBLAS_SYRK, CBLAS_SYR2K, CBLAS_TRMM)

#undef BEGIN
#undef CBLAS_GEMM
#undef CBLAS_GEMMT
#undef CBLAS_SYMM
#undef CBLAS_SYRK
#undef CBLAS_SYR2K
#undef CBLAS_TRMM

/* The entry points of one size of integers: INTEGER, IS_64, ENTRY(name). Included by cblas.c. */
#define BEGIN(letter, name)                                                                       \
    .routine = BLAS_ROUTINE_##letter##name, .is_64 = IS_64, .is_cblas = true,                     \
    .caller = BLAS_CALLER
#define BEGIN_ONE(letter, name) BEGIN(letter, name), .batch = 1

/* As in fortran.inl. The host's function has the type of the entry point. */
#define FORWARD_OR_RUN(letter, name, kind, arguments, ...)                                        \
    {                                                                                             \
        blas_function *host = blas_forward_find_layout(layout, (blas_call){__VA_ARGS__}, kind,    \
                                                       BLAS_TYPE_##letter);                       \
        if (host) {                                                                               \
            ((__typeof__(ENTRY(letter##name)) *)host) arguments;                                  \
        } else {                                                                                  \
            cblas_run(layout, (blas_call){__VA_ARGS__});                                          \
        }                                                                                         \
    }

#define CBLAS_GEMM(letter, name, kind, scalar)                                                    \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int transa, int transb, INTEGER m, INTEGER n, INTEGER k,                      \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, const void *b, INTEGER ldb,           \
        SCALAR_##letter(beta), void *c, INTEGER ldc)                                              \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc),        \
                   BEGIN_ONE(letter, name), .transa = blas_transposition(transa),                 \
                   .transb = blas_transposition(transb), .m = m, .n = n, .k = k,                  \
                   .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda, .b = b, .ldb = ldb,      \
                   .beta = ADDRESS_##letter(beta), .c = c, .ldc = ldc)

#define CBLAS_GEMMT(letter, name, kind, scalar)                                                   \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int uplo, int transa, int transb, INTEGER n, INTEGER k,                       \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, const void *b, INTEGER ldb,           \
        SCALAR_##letter(beta), void *c, INTEGER ldc)                                              \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, uplo, transa, transb, n, k, alpha, a, lda, b, ldb, beta, c, ldc),     \
                   BEGIN_ONE(letter, name), .uplo = blas_triangle(uplo),                          \
                   .transa = blas_transposition(transa), .transb = blas_transposition(transb),    \
                   .m = n, .n = n, .k = k, .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda,  \
                   .b = b, .ldb = ldb, .beta = ADDRESS_##letter(beta), .c = c, .ldc = ldc)

#define CBLAS_SYMM(letter, name, kind, scalar)                                                    \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int side, int uplo, INTEGER m, INTEGER n, SCALAR_##letter(alpha),             \
        const void *a, INTEGER lda, const void *b, INTEGER ldb, SCALAR_##letter(beta),            \
        void *c, INTEGER ldc)                                                                     \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc),               \
                   BEGIN_ONE(letter, name), .side = blas_side(side), .uplo = blas_triangle(uplo), \
                   .m = m, .n = n, .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda, .b = b,  \
                   .ldb = ldb, .beta = ADDRESS_##letter(beta), .c = c, .ldc = ldc)

#define CBLAS_SYRK(letter, name, kind, scalar)                                                    \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int uplo, int trans, INTEGER n, INTEGER k, SCALAR_##scalar(alpha),            \
        const void *a, INTEGER lda, SCALAR_##scalar(beta), void *c, INTEGER ldc)                  \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, uplo, trans, n, k, alpha, a, lda, beta, c, ldc),                      \
                   BEGIN_ONE(letter, name), .uplo = blas_triangle(uplo),                          \
                   .transa = blas_transposition(trans), .m = n, .n = n, .k = k,                   \
                   .alpha = ADDRESS_##scalar(alpha), .a = a, .lda = lda,                          \
                   .beta = ADDRESS_##scalar(beta), .c = c, .ldc = ldc)

#define CBLAS_SYR2K(letter, name, kind, scalar)                                                   \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int uplo, int trans, INTEGER n, INTEGER k, SCALAR_##letter(alpha),            \
        const void *a, INTEGER lda, const void *b, INTEGER ldb, SCALAR_##scalar(beta),            \
        void *c, INTEGER ldc)                                                                     \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc),              \
                   BEGIN_ONE(letter, name), .uplo = blas_triangle(uplo),                          \
                   .transa = blas_transposition(trans), .m = n, .n = n, .k = k,                   \
                   .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda, .b = b, .ldb = ldb,      \
                   .beta = ADDRESS_##scalar(beta), .c = c, .ldc = ldc)

#define CBLAS_TRMM(letter, name, kind, scalar)                                                    \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int side, int uplo, int transa, int diag, INTEGER m, INTEGER n,               \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, void *b, INTEGER ldb)                 \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb),               \
                   BEGIN_ONE(letter, name), .side = blas_side(side), .uplo = blas_triangle(uplo), \
                   .transa = blas_transposition(transa), .diag = blas_diagonal(diag), .m = m,     \
                   .n = n, .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda, .c = b,          \
                   .ldc = ldb)

#define CBLAS_STRIDED(letter, name, kind, scalar)                                                 \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, int transa, int transb, INTEGER m, INTEGER n, INTEGER k,                      \
        SCALAR_##letter(alpha), const void *a, INTEGER lda, INTEGER stride_a, const void *b,      \
        INTEGER ldb, INTEGER stride_b, SCALAR_##letter(beta), void *c, INTEGER ldc,               \
        INTEGER stride_c, INTEGER batch)                                                          \
    FORWARD_OR_RUN(letter, name, kind,                                                            \
                   (layout, transa, transb, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,   \
                    beta, c, ldc, stride_c, batch),                                               \
                   BEGIN(letter, name), .batch = batch, .transa = blas_transposition(transa),     \
                   .transb = blas_transposition(transb), .m = m, .n = n, .k = k,                  \
                   .alpha = ADDRESS_##letter(alpha), .a = a, .lda = lda, .stride_a = stride_a,    \
                   .b = b, .ldb = ldb, .stride_b = stride_b, .beta = ADDRESS_##letter(beta),      \
                   .c = c, .ldc = ldc, .stride_c = stride_c)

#define CBLAS_GROUPS(letter, name, kind, scalar)                                                  \
    BLAS_API void ENTRY(letter##name)(                                                            \
        int layout, const int *transa, const int *transb, const INTEGER *m, const INTEGER *n,     \
        const INTEGER *k, SCALARS_##letter(alpha), const void *const *a, const INTEGER *lda,      \
        const void *const *b, const INTEGER *ldb, SCALARS_##letter(beta), void *const *c,         \
        const INTEGER *ldc, INTEGER count, const INTEGER *sizes)                                  \
    {                                                                                             \
        blas_groups_run(&(blas_groups){BEGIN(letter, name), .layout = layout,                     \
                                       .transa = transa, .transb = transb, .m = m, .n = n,        \
                                       .k = k, .alpha = alpha, .a = a, .lda = lda, .b = b,        \
                                       .ldb = ldb, .beta = beta, .c = c, .ldc = ldc,              \
                                       .count = count, .sizes = sizes});                          \
    }

BLAS_ROUTINES(CBLAS_GEMM, CBLAS_GEMMT, CBLAS_SYMM, CBLAS_SYRK, CBLAS_SYR2K, CBLAS_TRMM,
              CBLAS_STRIDED, CBLAS_GROUPS)

#undef BEGIN
#undef BEGIN_ONE
#undef FORWARD_OR_RUN
#undef CBLAS_STRIDED
#undef CBLAS_GROUPS
#undef CBLAS_GEMM
#undef CBLAS_GEMMT
#undef CBLAS_SYMM
#undef CBLAS_SYRK
#undef CBLAS_SYR2K
#undef CBLAS_TRMM

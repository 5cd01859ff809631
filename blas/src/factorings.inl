/* The entry points of one size of integers: INTEGER, IS_64, ENTRY(name). Included by
 * factorings.c. */
#define SMALLER(x, y) ((x) < (y) ? (x) : (y))
#define FACTORING(letter, what) .kind = what, .type = BLAS_TYPE_##letter, .is_64 = IS_64

/* A small call goes to the host's function at once; `order` is the lesser length of its A. Another
 * one that the device does not compute goes there as well, which gives `info`. Questions for the
 * length of memory have no A, and are not counted. */
#define RUN_OR_HOST(letter, what, function, order, arguments, ...)                                \
    {                                                                                             \
        blas_function *small = forward_find(what, BLAS_TYPE_##letter, IS_64, order);              \
        if (small) {                                                                              \
            ((function *)small)arguments;                                                         \
            return;                                                                               \
        }                                                                                         \
        const blas_factoring call = {FACTORING(letter, what), __VA_ARGS__};                       \
        const uint64_t start = blas_summary_clock();                                              \
        uint64_t moved = 0;                                                                       \
        int64_t found = -1;                                                                       \
        const bool on_device = factoring_run(&call, &found, &moved);                              \
        blas_function *host =                                                                     \
            on_device ? NULL : host_function(what, BLAS_TYPE_##letter, IS_64);                    \
        if (host) {                                                                               \
            ((function *)host)arguments;                                                          \
        } else {                                                                                  \
            *info = (INTEGER)found;                                                               \
        }                                                                                         \
        if (blas_summary_is_wanted() && call.work_length != -1) {                                 \
            blas_summary_add_factoring(&call, on_device, moved, start);                           \
        }                                                                                         \
    }

#define LAPACK_ENTRIES(letter, orgqr, ormqr)                                                      \
    BLAS_API void ENTRY(letter##getrf)(const INTEGER *m, const INTEGER *n, void *a,               \
                                       const INTEGER *lda, INTEGER *ipiv, INTEGER *info)          \
    RUN_OR_HOST(letter, BLAS_GETRF, blas_getrf_function, SMALLER(*m, *n),                         \
                (m, n, a, lda, ipiv, info), .m = *m, .n = *n, .a = a, .lda = *lda,                \
                .pivots = ipiv)                                                                   \
                                                                                                  \
    BLAS_API void ENTRY(letter##potrf)(const char *uplo, const INTEGER *n, void *a,               \
                                       const INTEGER *lda, INTEGER *info)                         \
    RUN_OR_HOST(letter, BLAS_POTRF, blas_potrf_function, *n, (uplo, n, a, lda, info, 1),          \
                .uplo = blas_letter(uplo), .m = *n, .n = *n, .a = a, .lda = *lda)                 \
                                                                                                  \
    BLAS_API void ENTRY(letter##geqrf)(const INTEGER *m, const INTEGER *n, void *a,               \
                                       const INTEGER *lda, void *tau, void *work,                 \
                                       const INTEGER *lwork, INTEGER *info)                       \
    RUN_OR_HOST(letter, BLAS_GEQRF, blas_geqrf_function, SMALLER(*m, *n),                         \
                (m, n, a, lda, tau, work, lwork, info),                                           \
                .m = *m, .n = *n, .a = a, .lda = *lda, .tau = tau, .work = work,                  \
                .work_length = *lwork)                                                            \
                                                                                                  \
    BLAS_API void ENTRY(letter##orgqr)(const INTEGER *m, const INTEGER *n, const INTEGER *k,      \
                                       void *a, const INTEGER *lda, const void *tau, void *work,  \
                                       const INTEGER *lwork, INTEGER *info)                       \
    RUN_OR_HOST(letter, BLAS_ORGQR, blas_orgqr_function, SMALLER(*m, *n),                         \
                (m, n, k, a, lda, tau, work, lwork, info), .m = *m, .n = *n, .k = *k, .a = a,     \
                .lda = *lda, .v = a, .ldv = *lda, .tau = (void *)(uintptr_t)tau, .work = work,    \
                .work_length = *lwork)                                                            \
                                                                                                  \
    BLAS_API void ENTRY(letter##ormqr)(const char *side, const char *trans, const INTEGER *m,     \
                                       const INTEGER *n, const INTEGER *k, const void *a,         \
                                       const INTEGER *lda, const void *tau, void *c,              \
                                       const INTEGER *ldc, void *work, const INTEGER *lwork,      \
                                       INTEGER *info)                                             \
    RUN_OR_HOST(letter, BLAS_ORMQR, blas_ormqr_function, SMALLER(*m, *n),                         \
                (side, trans, m, n, k, a, lda, tau, c, ldc, work, lwork, info, 1, 1),             \
                .side = blas_letter(side), .trans = blas_letter(trans), .m = *m, .n = *n, .k = *k,\
                .a = c, .lda = *ldc, .v = a, .ldv = *lda, .tau = (void *)(uintptr_t)tau,          \
                .work = work, .work_length = *lwork)

/* getrf, where the device computes it, and the host's getrs; else the host's gesv. */
#define GESV_ENTRY(letter)                                                                        \
    BLAS_API void ENTRY(letter##gesv)(const INTEGER *n, const INTEGER *nrhs, void *a,             \
                                      const INTEGER *lda, INTEGER *ipiv, void *b,                 \
                                      const INTEGER *ldb, INTEGER *info)                          \
    {                                                                                             \
        blas_function *small = forward_find(BLAS_GESV, BLAS_TYPE_##letter, IS_64, *n);            \
        if (small) {                                                                              \
            ((blas_gesv_function *)small)(n, nrhs, a, lda, ipiv, b, ldb, info);                   \
            return;                                                                               \
        }                                                                                         \
        const blas_factoring call = {FACTORING(letter, BLAS_GETRF), .m = *n, .n = *n, .a = a,     \
                                     .lda = *lda, .pivots = ipiv};                                \
        blas_factoring whole = call;                                                              \
        blas_function *solve = blas_lapack_find(BLAS_GETRS, call.type, IS_64), *host = NULL;      \
        const uint64_t start = blas_summary_clock();                                              \
        uint64_t moved = 0;                                                                       \
        int64_t found = -1;                                                                       \
        tell_written(call.type, b, *n, *nrhs, *ldb);                                              \
        const bool on_device = solve && *nrhs >= 0 && *ldb >= *n &&                               \
                               factoring_run(&call, &found, &moved);                              \
        *info = (INTEGER)found;                                                                   \
        if (on_device && found == 0) {                                                            \
            ((blas_getrs_function *)solve)("N", n, nrhs, a, lda, ipiv, b, ldb, info, 1);          \
        } else if (!on_device && (host = host_function(BLAS_GESV, call.type, IS_64))) {           \
            ((blas_gesv_function *)host)(n, nrhs, a, lda, ipiv, b, ldb, info);                    \
        }                                                                                         \
        whole.kind = BLAS_GESV;                                                                   \
        if (blas_summary_is_wanted()) {                                                           \
            blas_summary_add_factoring(&whole, on_device, moved, start);                          \
        }                                                                                         \
    }

LAPACK_ENTRIES(s, orgqr, ormqr)
LAPACK_ENTRIES(d, orgqr, ormqr)
LAPACK_ENTRIES(c, ungqr, unmqr)
LAPACK_ENTRIES(z, ungqr, unmqr)
GESV_ENTRY(s)
GESV_ENTRY(d)
GESV_ENTRY(c)
GESV_ENTRY(z)

#undef SMALLER
#undef FACTORING
#undef RUN_OR_HOST
#undef LAPACK_ENTRIES
#undef GESV_ENTRY

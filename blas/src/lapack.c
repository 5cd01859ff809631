/* The host's functions, see lapack.h. Integers are passed by address: one of 64 bits serves as
 * one of 32, as the processor is little-endian. */
#include "lapack.h"

#include "host.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "addresses of integers of two sizes");

/* Of real and of complex types. */
static const char *const names[BLAS_FACTORING_COUNT][2] = {
    [BLAS_GETRF] = {"getrf", "getrf"}, [BLAS_POTRF] = {"potrf", "potrf"},
    [BLAS_GEQRF] = {"geqrf", "geqrf"}, [BLAS_ORGQR] = {"orgqr", "ungqr"},
    [BLAS_ORMQR] = {"ormqr", "unmqr"}, [BLAS_LARFT] = {"larft", "larft"},
    [BLAS_GETRS] = {"getrs", "getrs"}, [BLAS_GESV] = {"gesv", "gesv"}};

/* What was found, by type and is_64. A library that is loaded later may have the others. */
static _Atomic(blas_function *) functions[BLAS_FACTORING_COUNT][BLAS_STANDARD_TYPES][2];

/* The next in the loading order; the host's BLAS; a library that is loaded already, as by a module
 * of an interpreter. */
static blas_function *function_search(const char *name)
{
    static const char *const libraries[] = {"liblapack.so.3", "libopenblas.so.0",
                                            "libopenblas64.so.0", "libmkl_rt.so.2"};
    void *found = blas_host_symbol_in(RTLD_NEXT, name);
    found = found ? found : blas_host_symbol(name);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !found; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_NOLOAD);
        found = library ? blas_host_symbol_in(library, name) : NULL;
    }
    return blas_function_at(found);
}

const char *blas_lapack_name(blas_factoring_kind kind, blas_type type)
{
    return names[kind][blas_type_is_complex(type)];
}

blas_function *blas_lapack_find(blas_factoring_kind kind, blas_type type, bool is_64)
{
    _Atomic(blas_function *) *kept = &functions[kind][type][is_64];
    blas_function *found = atomic_load_explicit(kept, memory_order_acquire);
    if (!found) {
        char name[24];
        snprintf(name, sizeof name, "%c%s_%s", "sdcz"[type], blas_lapack_name(kind, type),
                 is_64 ? "64_" : "");
        found = function_search(name);
        atomic_store_explicit(kept, found, memory_order_release);
    }
    return found;
}

/* What a function of the call's interface has written to `info`, which was 0. */
static int64_t info_of(const blas_factoring *call, int64_t info)
{
    return call->is_64 ? info : (int32_t)info;
}

int64_t blas_lapack_getrf(const blas_factoring *call, int64_t m, int64_t n, void *a, int64_t lda,
                          int64_t *pivots)
{
    int64_t info = 0;
    ((blas_getrf_function *)blas_lapack_find(BLAS_GETRF, call->type, call->is_64))(&m, &n, a, &lda,
                                                                                   pivots, &info);
    for (int64_t i = (m < n ? m : n) - 1; i >= 0 && !call->is_64; i--) {
        pivots[i] = ((const int32_t *)pivots)[i]; /* from the end on, since they grow */
    }
    return info_of(call, info);
}

int64_t blas_lapack_potrf(const blas_factoring *call, int64_t n, void *a, int64_t lda)
{
    int64_t info = 0;
    ((blas_potrf_function *)blas_lapack_find(BLAS_POTRF, call->type, call->is_64))(
        &call->uplo, &n, a, &lda, &info, 1);
    return info_of(call, info);
}

int64_t blas_lapack_geqrf(const blas_factoring *call, int64_t m, int64_t n, void *a, int64_t lda,
                          void *tau, void *work, int64_t work_length)
{
    int64_t info = 0;
    ((blas_geqrf_function *)blas_lapack_find(BLAS_GEQRF, call->type, call->is_64))(
        &m, &n, a, &lda, tau, work, &work_length, &info);
    return info_of(call, info);
}

void blas_lapack_larft(const blas_factoring *call, int64_t m, int64_t k, const void *v, int64_t ldv,
                       const void *tau, void *t, int64_t ldt)
{
    ((blas_larft_function *)blas_lapack_find(BLAS_LARFT, call->type, call->is_64))(
        "F", "C", &m, &k, v, &ldv, tau, t, &ldt, 1, 1);
}

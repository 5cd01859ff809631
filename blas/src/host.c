/* Finds the host's BLAS and calls its Fortran interface, see host.h. */
#include "host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BLAS_HOST_FOLDER
#define BLAS_HOST_FOLDER "/usr/lib"
#endif

/* Pointers of every argument, then the lengths of character arguments. */
typedef void gemm_function(const char *, const char *, const void *, const void *, const void *,
                           const void *, const void *, const void *, const void *, const void *,
                           const void *, void *, const void *, size_t, size_t);
typedef void gemmt_function(const char *, const char *, const char *, const void *, const void *,
                            const void *, const void *, const void *, const void *, const void *,
                            const void *, void *, const void *, size_t, size_t, size_t);
typedef void symm_function(const char *, const char *, const void *, const void *, const void *,
                           const void *, const void *, const void *, const void *, const void *,
                           void *, const void *, size_t, size_t);
typedef void syrk_function(const char *, const char *, const void *, const void *, const void *,
                           const void *, const void *, const void *, void *, const void *, size_t,
                           size_t);
typedef void trmm_function(const char *, const char *, const char *, const char *, const void *,
                           const void *, const void *, const void *, const void *, void *,
                           const void *, size_t, size_t, size_t, size_t);

typedef struct host_library {
    void *library; /* null with is_next: symbols are the next in the loading order */
    bool is_next;
    char path[512];
    blas_function *narrow[BLAS_ROUTINE_COUNT], *wide[BLAS_ROUTINE_COUNT];
} host_library;

static host_library host;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;
static const char own_address; /* in this library */

static bool is_own(const void *address)
{
    Dl_info its, own;
    return !dladdr(address, &its) || !dladdr(&own_address, &own) ||
           its.dli_fbase == own.dli_fbase;
}

static void *symbol_in(void *library, const char *name)
{
    void *found = dlsym(library, name);
    return found && !is_own(found) ? found : NULL;
}

/* Takes a library if it has matrix products, of either size of integers. */
static bool host_take(void *library, bool is_next)
{
    void *found = symbol_in(library, "dgemm_");
    found = found ? found : symbol_in(library, "dgemm_64_");
    Dl_info info;
    if (!found || !dladdr(found, &info)) {
        return false;
    }
    host.library = library;
    host.is_next = is_next;
    snprintf(host.path, sizeof host.path, "%s", info.dli_fname);
    return true;
}

static bool host_open(const char *path, int flags)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (library && host_take(library, false)) {
        return true;
    }
    if (library) {
        dlclose(library);
    }
    return false;
}

/* The next in the loading order; a library that is loaded already, as by a module of an interpreter;
 * else one that is installed. */
static void host_search(void)
{
    static const char *const names[] = {"libblas.so.3", "libopenblas.so.0", "libmkl_rt.so.2",
                                        "libblis.so.4",
                                        BLAS_HOST_FOLDER "/blas/libblas.so.3"};
    const char *wanted = secure_getenv("HALYARD_BLAS_HOST");
    if (wanted && *wanted) {
        if (strcmp(wanted, "none") != 0 && !host_open(wanted, 0)) {
            fprintf(stderr, "halyard blas: HALYARD_BLAS_HOST: expected a BLAS or none, got %s\n",
                    wanted);
        }
        return;
    }
    if (host_take(RTLD_NEXT, true)) {
        return;
    }
    for (int flags = RTLD_NOLOAD;; flags = 0) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (host_open(names[i], flags)) {
                return;
            }
        }
        if (flags == 0) {
            return;
        }
    }
}

static void host_load(void)
{
    host_search();
    if (!*host.path) {
        return;
    }
    for (int i = 0; i < BLAS_ROUTINE_COUNT; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s_", blas_routines[i].name);
        host.narrow[i] = blas_function_at(symbol_in(host.library, name));
        snprintf(name, sizeof name, "%s_64_", blas_routines[i].name);
        host.wide[i] = blas_function_at(symbol_in(host.library, name));
    }
}

void *blas_host_symbol(const char *name)
{
    pthread_once(&host_once, host_load);
    return *host.path ? symbol_in(host.library, name) : NULL;
}

const char *blas_host_path(void)
{
    pthread_once(&host_once, host_load);
    return host.path;
}

bool blas_host_has(blas_routine routine)
{
    pthread_once(&host_once, host_load);
    return host.narrow[routine] || host.wide[routine];
}

/* The lengths of a call in one size of integers. */
typedef struct lengths {
    union {
        int32_t narrow[6];
        int64_t wide[6];
    };
    const void *m, *n, *k, *lda, *ldb, *ldc;
} lengths;

static bool lengths_init(lengths *made, const blas_call *call, bool is_wide)
{
    const int64_t values[6] = {call->m, call->n, call->k, call->lda, call->ldb, call->ldc};
    const void *pointers[6];
    for (int i = 0; i < 6; i++) {
        if (is_wide) {
            made->wide[i] = values[i];
            pointers[i] = &made->wide[i];
        } else if (values[i] > INT32_MAX) {
            return false;
        } else {
            made->narrow[i] = (int32_t)values[i];
            pointers[i] = &made->narrow[i];
        }
    }
    made->m = pointers[0];
    made->n = pointers[1];
    made->k = pointers[2];
    made->lda = pointers[3];
    made->ldb = pointers[4];
    made->ldc = pointers[5];
    return true;
}

static void host_call(blas_function *function, const blas_call *c, const lengths *l)
{
    switch (blas_call_kind(c)) {
    case BLAS_GEMM:
        ((gemm_function *)function)(&c->transa, &c->transb, l->m, l->n, l->k, c->alpha, c->a,
                                    l->lda, c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_GEMMT:
        ((gemmt_function *)function)(&c->uplo, &c->transa, &c->transb, l->n, l->k, c->alpha, c->a,
                                     l->lda, c->b, l->ldb, c->beta, c->c, l->ldc, 1, 1, 1);
        break;
    case BLAS_SYMM:
    case BLAS_HEMM:
        ((symm_function *)function)(&c->side, &c->uplo, l->m, l->n, c->alpha, c->a, l->lda, c->b,
                                    l->ldb, c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_SYRK:
    case BLAS_HERK:
        ((syrk_function *)function)(&c->uplo, &c->transa, l->n, l->k, c->alpha, c->a, l->lda,
                                    c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_SYR2K:
    case BLAS_HER2K:
        ((symm_function *)function)(&c->uplo, &c->transa, l->n, l->k, c->alpha, c->a, l->lda, c->b,
                                    l->ldb, c->beta, c->c, l->ldc, 1, 1);
        break;
    case BLAS_TRMM:
    case BLAS_TRSM:
        ((trmm_function *)function)(&c->side, &c->uplo, &c->transa, &c->diag, l->m, l->n, c->alpha,
                                    c->a, l->lda, c->c, l->ldc, 1, 1, 1, 1);
        break;
    }
}

bool blas_host_compute(const blas_call *call)
{
    pthread_once(&host_once, host_load);
    blas_function *narrow = host.narrow[call->routine], *wide = host.wide[call->routine];
    lengths made;
    if (narrow && (!call->is_64 || !wide) && lengths_init(&made, call, false)) {
        host_call(narrow, call, &made);
        return true;
    }
    if (wide && lengths_init(&made, call, true)) {
        host_call(wide, call, &made);
        return true;
    }
    return false;
}

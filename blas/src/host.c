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

typedef struct host_library {
    void *library; /* null with is_next: symbols are the next in the loading order */
    bool is_next;
    char path[512];
    bool is_wide; /* names without a suffix take 64-bit integers, as in Debian's libblas64.so.3 */
    blas_function *narrow[BLAS_ROUTINE_COUNT], *wide[BLAS_ROUTINE_COUNT];
} host_library;

static host_library host;
static pthread_once_t host_once = PTHREAD_ONCE_INIT;
static const char own_address; /* in this library */

static bool is_own(const void *address)
{
    Dl_info its, own;
    return !dladdr(address, &its) || !dladdr(&own_address, &own) || its.dli_fbase == own.dli_fbase;
}

void *blas_host_symbol_in(void *library, const char *name)
{
    void *found = dlsym(library, name);
    return found && !is_own(found) ? found : NULL;
}

/* Takes a library if it has matrix products, of either size of integers. */
static bool host_take(void *library, bool is_next)
{
    void *found = blas_host_symbol_in(library, "dgemm_");
    found = found ? found : blas_host_symbol_in(library, "dgemm_64_");
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

/* The next in the loading order; a library that is loaded already, as by a module of an
 * interpreter; else one that is installed. */
static void host_search(void)
{
    static const char *const names[] = {"libblas.so.3", "libopenblas.so.0", "libmkl_rt.so.2",
                                        "libblis.so.4", BLAS_HOST_FOLDER "/blas/libblas.so.3"};
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

typedef int isamax_function(const int64_t *, const float *, const int64_t *);

/* Asks isamax for a number that is 3 in 32 bits and negative in 64, which gives 0: the test of
 * libblastrampoline (E. Saba, M. Mueller). */
static bool host_is_wide(void)
{
    static const int64_t length = INT64_MIN + 3, step = 1;
    static const float numbers[3] = {1, 2, 3};
    isamax_function *isamax =
        (isamax_function *)blas_function_at(blas_host_symbol_in(host.library, "isamax_"));
    return isamax && isamax(&length, numbers, &step) == 0;
}

static void host_load(void)
{
    host_search();
    if (!*host.path) {
        return;
    }
    host.is_wide = host_is_wide();
    for (int i = 0; i < BLAS_ROUTINE_COUNT; i++) {
        char name[24];
        snprintf(name, sizeof name, "%s_", blas_routines[i].name);
        host.narrow[i] = blas_function_at(blas_host_symbol_in(host.library, name));
        snprintf(name, sizeof name, "%s_64_", blas_routines[i].name);
        host.wide[i] = blas_function_at(blas_host_symbol_in(host.library, name));
        if (host.is_wide) {
            host.wide[i] = host.wide[i] ? host.wide[i] : host.narrow[i];
            host.narrow[i] = NULL;
        }
    }
}

void *blas_host_symbol(const char *name)
{
    pthread_once(&host_once, host_load);
    return *host.path ? blas_host_symbol_in(host.library, name) : NULL;
}

bool blas_host_is_wide(void)
{
    pthread_once(&host_once, host_load);
    return host.is_wide;
}

const char *blas_host_path(void)
{
    pthread_once(&host_once, host_load);
    return host.path;
}

static bool has(blas_routine routine)
{
    return host.narrow[routine] || host.wide[routine];
}

/* Whether the host computes a batch by products one after the other. */
static bool is_by_products(const blas_call *call)
{
    return blas_call_kind(call) == BLAS_GEMM && call->routine >= BLAS_ROUTINE_sgemm_batch_strided &&
           !(blas_call_is_strided(call) && has(call->routine));
}

static blas_routine product_routine(const blas_call *call)
{
    return (blas_routine)(BLAS_ROUTINE_sgemm + blas_call_type(call));
}

bool blas_host_has(const blas_call *call)
{
    pthread_once(&host_once, host_load);
    return has(is_by_products(call) ? product_routine(call) : call->routine);
}

/* Calls a routine that takes these arguments, of which a batch may be computed by products. */
typedef bool invocation(blas_function *, const blas_call *, bool);

static bool compute(const blas_call *call, blas_routine routine, invocation *invoke)
{
    blas_function *narrow = host.narrow[routine], *wide = host.wide[routine];
    if (narrow && (!call->is_64 || !wide) && invoke(narrow, call, false)) {
        return true;
    }
    return wide && invoke(wide, call, true);
}

bool blas_host_compute(const blas_call *call)
{
    pthread_once(&host_once, host_load);
    return is_by_products(call) ? compute(call, product_routine(call), blas_invoke_products)
                                : compute(call, call->routine, blas_invoke);
}

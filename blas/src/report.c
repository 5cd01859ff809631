/* Where errors go, see report.h. */
#include "report.h"

#include "host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

typedef void fortran_handler(const char *name, const void *position, size_t length);
typedef void c_handler(int64_t position, const char *name, const char *format, ...);

/* Handlers that a program may define. A linker exports them from it because they are named here. */
extern void xerbla_(void) __attribute__((weak));
extern void xerbla_64_(void) __attribute__((weak));
extern void cblas_xerbla(void) __attribute__((weak));
extern void cblas_xerbla_64(void) __attribute__((weak));
extern int RowMajorStrg __attribute__((weak));
static const struct {
    blas_function *functions[4];
    int *variable;
} exported
    __attribute__((used)) = {{xerbla_, xerbla_64_, cblas_xerbla, cblas_xerbla_64}, &RowMajorStrg};

/* A symbol of the library that `address` belongs to, or of those that it needs. */
static void *symbol_of_caller(const void *address, const char *name)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !*map->l_name) {
        return NULL;
    }
    void *library = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (library) {
        dlclose(library);
    }
    return found;
}

static blas_function *handler_find(const blas_call *call, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    found = found ? found : symbol_of_caller(call->caller, name);
    return blas_function_at(found ? found : blas_host_symbol(name));
}

static void report_to_fortran(const blas_call *call, int position)
{
    char name[24] = "";
    const char *lower = blas_routines[call->routine].name;
    size_t length = 0;
    for (; lower[length]; length++) {
        const bool is_small = lower[length] >= 'a' && lower[length] <= 'z';
        name[length] = (char)(is_small ? lower[length] - 'a' + 'A' : lower[length]);
    }
    while (length < 6) {
        name[length++] = ' ';
    }
    fortran_handler *handler = NULL;
    if (call->is_64) {
        handler = (fortran_handler *)handler_find(call, "xerbla_64_");
    }
    if (!handler) {
        handler = (fortran_handler *)handler_find(call, "xerbla_");
    }
    /* Its low half, which comes first, is the value for a handler of 32 bits. One of 64 bits may
     * have the plain name: that of a program with 64-bit integers under those names. */
    const int64_t wide = position;
    if (handler) {
        handler(name, &wide, length);
    } else {
        fprintf(stderr, " ** On entry to %s parameter number %d had an illegal value\n", name,
                position);
    }
}

void blas_report_cblas(const blas_call *call, int position)
{
    char name[32];
    snprintf(name, sizeof name, "cblas_%s", blas_routines[call->routine].name);
    c_handler *handler = NULL;
    if (call->is_64) {
        handler = (c_handler *)handler_find(call, "cblas_xerbla_64");
    }
    if (!handler) {
        handler = (c_handler *)handler_find(call, "cblas_xerbla");
    }
    if (handler) {
        handler(position, name, "");
    } else {
        report_to_fortran(call, position);
    }
}

/* The position in the row-major call of an argument, given that in the transposed one: operands,
 * and so their lengths, have changed places. */
static int row_major_position(const blas_call *call, int position)
{
    static const int product[] = {4, 5, 9, 11}, symmetric[] = {4, 5}, triangular[] = {6, 7};
    static const int strided[] = {4, 5, 9, 12, 10, 13};
    const int *pairs = NULL;
    size_t count = 2;
    switch (blas_call_kind(call)) {
    case BLAS_GEMM:
        pairs = blas_call_is_strided(call) ? strided : product;
        count = blas_call_is_strided(call) ? 6 : 4;
        break;
    case BLAS_GEMMT:
        pairs = product + 2;
        break;
    case BLAS_SYMM:
    case BLAS_HEMM:
        pairs = symmetric;
        break;
    case BLAS_TRMM:
    case BLAS_TRSM:
        pairs = triangular;
        break;
    default:
        return position;
    }
    for (size_t i = 0; i < count; i++) {
        if (pairs[i] == position) {
            return pairs[i ^ 1];
        }
    }
    return position;
}

void blas_report(const blas_call *call, int position)
{
    if (!call->is_cblas) {
        report_to_fortran(call, position);
        return;
    }
    /* The handlers of the reference implementation exchange positions themselves, if its variable
     * says that the call is row-major. */
    int *variable = (int *)dlsym(RTLD_DEFAULT, "RowMajorStrg");
    const int kept = variable ? *variable : 0;
    if (call->is_row_major && variable) {
        *variable = 1;
    }
    position++;
    blas_report_cblas(call, call->is_row_major && !variable ? row_major_position(call, position)
                                                            : position);
    if (variable) {
        *variable = kept;
    }
}

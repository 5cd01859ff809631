/* Groups of products, see groups.h. */
#include "groups.h"

#include "entry.h"
#include "forward.h"
#include "report.h"

static int64_t integer_at(const blas_groups *groups, const void *list, int64_t index)
{
    return groups->is_64 ? ((const int64_t *)list)[index] : ((const int32_t *)list)[index];
}

static char transposition_at(const blas_groups *groups, const void *list, int64_t index)
{
    return groups->is_cblas ? blas_transposition(((const int *)list)[index])
                            : blas_letter((const char *)list + index);
}

/* The call of a group, of which the operands are lists of addresses, from `first` on. */
static blas_call call_of(const blas_groups *g, int64_t group, int64_t first)
{
    const size_t scalar = (size_t)group * blas_type_bytes(blas_routines[g->routine].type);
    return (blas_call){.routine = g->routine,
                       .is_64 = g->is_64,
                       .is_cblas = g->is_cblas,
                       .caller = g->caller,
                       .transa = transposition_at(g, g->transa, group),
                       .transb = transposition_at(g, g->transb, group),
                       .m = integer_at(g, g->m, group),
                       .n = integer_at(g, g->n, group),
                       .k = integer_at(g, g->k, group),
                       .alpha = (const char *)g->alpha + scalar,
                       .beta = (const char *)g->beta + scalar,
                       .a = g->a + first,
                       .b = g->b + first,
                       .c = (void *)(g->c + first),
                       .lda = integer_at(g, g->lda, group),
                       .ldb = integer_at(g, g->ldb, group),
                       .ldc = integer_at(g, g->ldc, group),
                       .batch = 1};
}

/* The column-major call; false: an argument is invalid. */
static bool call_begin(const blas_groups *groups, int64_t group, int64_t first, blas_call *call)
{
    *call = call_of(groups, group, first);
    if (groups->is_cblas && !blas_layout_begin(groups->layout, call)) {
        return false;
    }
    int invalid = blas_call_check(call);
    if (invalid == 0 && integer_at(groups, groups->sizes, group) < 0) {
        invalid = 15;
    }
    if (invalid > 0) {
        blas_report(call, invalid);
    }
    return invalid == 0;
}

/* Elements from one address to the next; -1 where they are not whole, or fewer than none. */
static int64_t stride_of(const void *first, const void *second, blas_type type)
{
    const int64_t bytes = (int64_t)blas_type_bytes(type);
    const intptr_t apart = (intptr_t)second - (intptr_t)first;
    return apart >= 0 && apart % bytes == 0 ? apart / bytes : -1;
}

/* Makes a batch of the first products, of at most `count`, that are equally far apart. */
static void batch_of(const blas_call *call, const void *const *a, const void *const *b,
                     void *const *c, int64_t count, blas_call *batch)
{
    const blas_type type = blas_call_type(call);
    *batch = *call;
    batch->a = a[0];
    batch->b = b[0];
    batch->c = c[0];
    if (count < 2) {
        return;
    }
    batch->stride_a = stride_of(a[0], a[1], type);
    batch->stride_b = stride_of(b[0], b[1], type);
    batch->stride_c = stride_of(c[0], c[1], type);
    if (batch->stride_a < 0 || batch->stride_b < 0 ||
        batch->stride_c < (call->n - 1) * call->ldc + call->m) {
        return;
    }
    int64_t at = 1;
    while (at < count && stride_of(a[at - 1], a[at], type) == batch->stride_a &&
           stride_of(b[at - 1], b[at], type) == batch->stride_b &&
           stride_of(c[at - 1], c[at], type) == batch->stride_c) {
        at++;
    }
    batch->batch = at;
}

/* The lists of the column-major call. */
static blas_groups groups_column_major(const blas_groups *g)
{
    blas_groups made = *g;
    if (g->is_cblas && g->layout == BLAS_ROW_MAJOR) {
        made.transa = g->transb;
        made.transb = g->transa;
        made.m = g->n;
        made.n = g->m;
        made.a = g->b;
        made.b = g->a;
        made.lda = g->ldb;
        made.ldb = g->lda;
    }
    return made;
}

/* A group of column-major lists as a call of which letters and lengths are set. */
BLAS_INLINE blas_call shape_of(const blas_groups *g, int64_t group, int64_t batch)
{
    return (blas_call){.routine =
                           (blas_routine)(BLAS_ROUTINE_sgemm + blas_routines[g->routine].type),
                       .is_64 = g->is_64,
                       .transa = transposition_at(g, g->transa, group),
                       .transb = transposition_at(g, g->transb, group),
                       .m = integer_at(g, g->m, group),
                       .n = integer_at(g, g->n, group),
                       .k = integer_at(g, g->k, group),
                       .lda = integer_at(g, g->lda, group),
                       .ldb = integer_at(g, g->ldb, group),
                       .ldc = integer_at(g, g->ldc, group),
                       .batch = batch};
}

/* Passes `count` products of a group from `first` on to the host's gemm, with elements of the lists
 * as arguments. */
static void group_forward(const blas_groups *g, blas_function *host, int64_t group, int64_t first,
                          int64_t count)
{
    const size_t scalar = (size_t)group * blas_type_bytes(blas_routines[g->routine].type);
    const size_t integer = (size_t)group * (g->is_64 ? sizeof(int64_t) : sizeof(int32_t));
    const char transa = transposition_at(g, g->transa, group);
    const char transb = transposition_at(g, g->transb, group);
#define AT(list, bytes) ((const char *)g->list + (bytes))
    for (int64_t i = first; i < first + count; i++) {
        ((blas_gemm_function *)host)(&transa, &transb, AT(m, integer), AT(n, integer),
                                     AT(k, integer), AT(alpha, scalar), g->a[i], AT(lda, integer),
                                     g->b[i], AT(ldb, integer), AT(beta, scalar), g->c[i],
                                     AT(ldc, integer), 1, 1);
    }
#undef AT
}

/* Reports the first invalid argument. */
static void groups_report(const blas_groups *groups)
{
    blas_call call;
    for (int64_t group = 0; group < groups->count; group++) {
        if (!call_begin(groups, group, 0, &call)) {
            return;
        }
    }
}

static bool groups_are_valid(const blas_groups *g)
{
    const blas_type type = blas_routines[g->routine].type;
    bool is_valid = !g->is_cblas || g->layout == BLAS_ROW_MAJOR || g->layout == BLAS_COLUMN_MAJOR;
    for (int64_t group = 0; group < g->count && is_valid; group++) {
        const blas_call shape = shape_of(g, group, 1);
        is_valid =
            blas_shape_check(&shape, BLAS_GEMM, type) == 0 && integer_at(g, g->sizes, group) >= 0;
    }
    return is_valid;
}

/* One group: small products go to the host's BLAS, those that are equally far apart are one call.
 * `g` has the column-major lists. */
static void group_run(const blas_groups *groups, const blas_groups *g, int64_t group, int64_t first,
                      int64_t size)
{
    const blas_type type = blas_routines[g->routine].type;
    blas_call shape = shape_of(g, group, size), call;
    blas_function *host = blas_forward_find(&shape, BLAS_GEMM, type);
    if (host) {
        group_forward(g, host, group, first, size);
        return;
    }
    call_begin(groups, group, first, &call);
    const void *const *a = call.a, *const *b = call.b;
    void *const *c = call.c;
    for (int64_t at = 0; at < size; at += shape.batch) {
        blas_call batch;
        batch_of(&call, a + at, b + at, c + at, size - at, &batch);
        shape.batch = batch.batch;
        host = blas_forward_find(&shape, BLAS_GEMM, type);
        if (host) {
            group_forward(g, host, group, first + at, batch.batch);
        } else {
            blas_run(&batch);
        }
    }
}

void blas_groups_run(const blas_groups *groups)
{
    if (groups->count < 0) {
        blas_report(&(blas_call){.routine = groups->routine,
                                 .is_64 = groups->is_64,
                                 .is_cblas = groups->is_cblas,
                                 .caller = groups->caller},
                    14);
        return;
    }
    const blas_groups lists = groups_column_major(groups);
    if (!groups_are_valid(&lists)) {
        groups_report(groups);
        return;
    }
    int64_t first = 0;
    for (int64_t group = 0; group < groups->count; group++) {
        const int64_t size = integer_at(groups, groups->sizes, group);
        if (size > 0) {
            group_run(groups, &lists, group, first, size);
        }
        first += size;
    }
}

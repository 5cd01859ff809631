/* Random calls of every routine of a BLAS library, compared with another one or timed against it.
 *
 * blas_calls LIBRARY check COUNT SEED ORDER   LIBRARY's results against plain loops in double
 *                                             precision; lengths up to ORDER
 * blas_calls LIBRARY time COUNT SEED ORDER    seconds of LIBRARY and of the BLAS that
 *                                             HALYARD_BLAS_HOST names, the worst ratio first
 * blas_calls LIBRARY cpu COUNT SEED ORDER     the same in seconds of all processors: of one thread
 *                                             on a machine that others use */
#include "host.h"
#include "matrix.h"
#include "plain.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state;
static clockid_t clock_of_times = CLOCK_MONOTONIC;

static uint32_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static char pick(const char *letters)
{
    return letters[random_bits() % strlen(letters)];
}

/* From 1 to `most`, as often small as large. */
static int64_t random_length(int64_t most)
{
    return (int64_t)exp(log((double)most + 0.99) * (random_bits() / 2147483648.0));
}

typedef struct matrix_memory {
    void *data;
    int64_t leading, columns;
} matrix_memory;

static matrix_memory memory_create(blas_type type, int64_t rows, int64_t columns)
{
    const int64_t leading = rows + (random_bits() % 3 == 0 ? random_bits() % 9 : 0);
    matrix_memory made = {malloc((size_t)(leading * columns) * blas_type_bytes(type)), leading,
                          columns};
    for (int64_t i = 0; made.data && i < leading * columns; i++) {
        const blas_number value = {random_bits() / 1073741824.0 - 1,
                                   random_bits() / 1073741824.0 - 1};
        blas_number_store(made.data, type, i, value);
    }
    return made;
}

/* A triangle whose systems are well conditioned. */
static void strengthen_diagonal(const matrix_memory *memory, blas_type type, int64_t order)
{
    for (int64_t i = 0; i < memory->leading * order; i++) {
        blas_number value = blas_number_load(memory->data, type, i);
        value.re /= (double)order;
        value.im /= (double)order;
        if (i % memory->leading == i / memory->leading) {
            value.re += 2;
        }
        blas_number_store(memory->data, type, i, value);
    }
}

typedef struct random_call {
    blas_call call;
    matrix_memory a, b, c;
    double alpha[2], beta[2];
} random_call;

static void random_scalar(double *storage, blas_type type)
{
    static const double values[] = {1, 1, 0, -1, 0.7};
    const double im = random_bits() % 3 ? 0 : -0.3;
    blas_number_store(
        storage, type, 0,
        (blas_number){values[random_bits() % 5], blas_type_is_complex(type) ? im : 0});
}

static void call_letters(blas_call *c, blas_kind kind, bool is_complex)
{
    c->side = pick("LR");
    c->uplo = pick("UL");
    c->diag = pick("UN");
    c->transa = pick("NTC");
    c->transb = pick("NTC");
    if (kind == BLAS_HERK || kind == BLAS_HER2K) {
        c->transa = pick("NC");
    } else if ((kind == BLAS_SYRK || kind == BLAS_SYR2K) && is_complex) {
        c->transa = pick("NT");
    }
}

/* Up to 4 products in memory one after the other, sometimes with one A or B for all. */
static void repeat(random_call *made, blas_type type, int64_t b_columns, int64_t a_columns)
{
    blas_call *c = &made->call;
    c->batch = 1 + random_bits() % 4;
    c->stride_a = random_bits() % 4 ? made->a.leading * a_columns : 0;
    c->stride_b = random_bits() % 4 ? made->b.leading * b_columns : 0;
    c->stride_c = made->c.leading * c->n;
    matrix_memory *const all[3] = {&made->a, &made->b, &made->c};
    const int64_t columns[3] = {a_columns, b_columns, c->n};
    for (int i = 0; i < 3; i++) {
        const int64_t leading = all[i]->leading, count = c->batch * columns[i];
        free(all[i]->data);
        *all[i] = memory_create(type, leading, count);
        all[i]->leading = leading;
    }
}

static void random_call_create(random_call *made, int64_t most)
{
    blas_call *c = &made->call;
    *c = (blas_call){.routine = (blas_routine)(random_bits() % BLAS_ROUTINE_COUNT), .batch = 1};
    const blas_kind kind = blas_call_kind(c);
    const blas_type type = blas_call_operands(c);
    const bool has_side = kind == BLAS_SYMM || kind == BLAS_HEMM || kind >= BLAS_TRMM;
    call_letters(c, kind, blas_type_is_complex(type));
    c->m = random_length(most);
    c->n = random_length(most);
    c->k = random_length(most);
    if (!has_side) {
        c->m = kind == BLAS_GEMM ? c->m : c->n;
        c->side = 0;
    }
    const int64_t order = c->side == 'L' ? c->m : c->n;
    const bool is_straight = c->transa == 'N', is_b_straight = c->transb == 'N';
    if (has_side) {
        made->a = memory_create(type, order, order);
        made->b = memory_create(type, c->m, c->n);
    } else {
        const bool is_update = kind != BLAS_GEMM && kind != BLAS_GEMMT;
        made->a = is_straight ? memory_create(type, c->m, c->k) : memory_create(type, c->k, c->m);
        made->b = is_update       ? (is_straight ? memory_create(type, c->n, c->k)
                                                 : memory_create(type, c->k, c->n))
                  : is_b_straight ? memory_create(type, c->k, c->n)
                                  : memory_create(type, c->n, c->k);
    }
    if (kind == BLAS_TRSM) {
        strengthen_diagonal(&made->a, type, order);
    }
    made->c = memory_create(blas_call_type(c), c->m, c->n);
    if (c->routine >= BLAS_ROUTINE_sgemm_batch_strided) {
        repeat(made, type, made->b.columns, made->a.columns);
    }
    /* The real part comes first in memory: real ones fit too. */
    random_scalar(made->alpha, blas_call_type(c));
    random_scalar(made->beta, blas_call_type(c));
    c->alpha = made->alpha;
    c->beta = kind >= BLAS_TRMM ? NULL : made->beta;
    c->a = made->a.data;
    c->lda = made->a.leading;
    c->b = made->b.data;
    c->ldb = made->b.leading;
    c->c = made->c.data;
    c->ldc = made->c.leading;
}

static void random_call_destroy(random_call *made)
{
    free(made->a.data);
    free(made->b.data);
    free(made->c.data);
}

static void describe(const blas_call *c, char text[96])
{
    snprintf(text, 96, "%-18s %c%c%c%c%c %5lld %5lld %5lld x%lld", blas_routines[c->routine].name,
             c->side ? c->side : '-', c->uplo, c->transa, c->transb, c->diag, (long long)c->m,
             (long long)c->n, (long long)c->k, (long long)c->batch);
}

static blas_function *routine_of(void *library, blas_routine routine, bool is_wide)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", blas_routines[routine].name, is_wide ? "_64_" : "_");
    return blas_function_at(dlsym(library, name));
}

typedef void groups_function(const char *, const char *, const void *, const void *, const void *,
                             const void *, const void *const *, const void *, const void *const *,
                             const void *, const void *, void *const *, const void *, const void *,
                             const void *);

/* The lists of a gemm_batch: the first product is a group, an empty one follows, then the others in
 * reverse. Empty for other routines. */
typedef struct group_lists {
    const void *a[4], *b[4];
    void *c[4];
    _Alignas(double) char scalars[2][3 * 16];
    char letters[2][3];
    int64_t wide[8][3];
    int32_t narrow[8][3];
} group_lists;

static void lists_fill(const blas_call *call, group_lists *lists)
{
    const int64_t values[6] = {call->m, call->n, call->k, call->lda, call->ldb, call->ldc};
    const size_t bytes = blas_type_bytes(blas_call_type(call));
    memset(lists, 0, sizeof *lists);
    if (call->routine < BLAS_ROUTINE_sgemm_batch) {
        return;
    }
    for (int64_t i = 0; i < call->batch; i++) {
        const blas_call one = blas_call_product(call, i == 0 ? 0 : call->batch - i);
        lists->a[i] = one.a;
        lists->b[i] = one.b;
        lists->c[i] = one.c;
    }
    lists->wide[6][0] = 3;
    lists->wide[7][0] = 1;
    lists->wide[7][2] = call->batch - 1;
    for (int group = 0; group < 3; group++) {
        lists->letters[0][group] = call->transa;
        lists->letters[1][group] = call->transb;
        memcpy(lists->scalars[0] + (size_t)group * bytes, call->alpha, bytes);
        memcpy(lists->scalars[1] + (size_t)group * bytes, call->beta, bytes);
        for (int i = 0; i < 8; i++) {
            lists->wide[i][group] = i < 6 ? values[i] : lists->wide[i][group];
            lists->narrow[i][group] = (int32_t)lists->wide[i][group];
        }
    }
}

static void invoke_groups(blas_function *function, const group_lists *lists, bool is_wide)
{
    const void *l[8];
    for (int i = 0; i < 8; i++) {
        l[i] = is_wide ? (const void *)lists->wide[i] : lists->narrow[i];
    }
    ((groups_function *)function)(lists->letters[0], lists->letters[1], l[0], l[1], l[2],
                                  lists->scalars[0], lists->a, l[3], lists->b, l[4],
                                  lists->scalars[1], lists->c, l[5], l[6], l[7]);
}

/* `lists` are those of the call, which only gemm_batch reads. */
static bool invoke(blas_function *function, const blas_call *call, const group_lists *lists,
                   bool is_wide)
{
    if (call->routine < BLAS_ROUTINE_sgemm_batch) {
        return blas_invoke(function, call, is_wide);
    }
    invoke_groups(function, lists, is_wide);
    return true;
}

/* The largest difference in units of the precision times the inner length, relative to the largest
 * element. Elements that the call does not write must have their bits. */
static double difference(const random_call *made, const void *expected)
{
    const blas_call *c = &made->call;
    const blas_type type = blas_call_type(c);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < made->c.leading * made->c.columns; i++) {
        const blas_number x = blas_number_load(expected, type, i);
        const blas_number y = blas_number_load(c->c, type, i);
        const double size = fabs(x.re) + fabs(x.im);
        const double apart = fabs(x.re - y.re) + fabs(x.im - y.im);
        largest = size > largest ? size : largest;
        worst = apart > worst || apart != apart ? apart : worst;
    }
    const double unit = type == BLAS_TYPE_h                            ? 0x1p-11
                        : blas_type_real_bytes(type) == sizeof(double) ? 0x1p-53
                                                                       : 0x1p-24;
    const int64_t inner = c->side ? (c->side == 'L' ? c->m : c->n) : c->k;
    return worst / largest / unit / (double)(inner + 8);
}

static int check_one(void *library, int64_t order)
{
    random_call made;
    random_call_create(&made, order);
    const blas_type type = blas_call_type(&made.call);
    const size_t bytes = (size_t)(made.c.leading * made.c.columns) * blas_type_bytes(type);
    void *expected = malloc(bytes), *given = made.call.c;
    memcpy(expected, given, bytes);
    const bool is_wide = random_bits() % 2;
    blas_function *routine = routine_of(library, made.call.routine, is_wide);
    group_lists lists;
    lists_fill(&made.call, &lists);
    int failed = !routine || !invoke(routine, &made.call, &lists, is_wide);
    made.call.c = expected;
    if (!blas_call_is_empty(&made.call)) {
        blas_plain_compute(&made.call);
    }
    made.call.c = given;
    const double apart = difference(&made, expected);
    if (failed || !(apart < 4)) {
        char text[96];
        describe(&made.call, text);
        printf("%s: differs by %g\n", text, apart);
        failed = 1;
    }
    random_call_destroy(&made);
    free(expected);
    return failed;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(clock_of_times, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

typedef struct timing {
    double ours, host, ratio;
    char text[96];
} timing;

static int by_ratio(const void *x, const void *y)
{
    const double a = ((const timing *)x)->ratio, b = ((const timing *)y)->ratio;
    return (a > b) - (a < b);
}

/* The least of several times in turns; results grow or not, which no library's time depends on. */
static void time_one(void *library, int64_t order, timing *made)
{
    random_call call;
    do {
        random_call_create(&call, order);
    } while ((!blas_host_has(&call.call) || blas_call_is_empty(&call.call)) &&
             (random_call_destroy(&call), true));
    blas_function *routine = routine_of(library, call.call.routine, false);
    const blas_type type = blas_call_type(&call.call);
    const size_t bytes = (size_t)(call.c.leading * call.c.columns) * blas_type_bytes(type);
    void *kept = malloc(bytes);
    memcpy(kept, call.call.c, bytes);
    group_lists lists;
    lists_fill(&call.call, &lists);
    *made = (timing){1e9, 1e9, 0, ""};
    describe(&call.call, made->text);
    const double begin = now();
    for (int turn = 0; turn < 3 || (turn < 200 && now() - begin < 0.02); turn++) {
        memcpy(call.call.c, kept, bytes);
        double start = now();
        invoke(routine, &call.call, &lists, false);
        made->ours = fmin(made->ours, now() - start);
        memcpy(call.call.c, kept, bytes);
        start = now();
        blas_host_compute(&call.call);
        made->host = fmin(made->host, now() - start);
    }
    made->ratio = made->host / made->ours;
    random_call_destroy(&call);
    free(kept);
}

static void time_calls(void *library, int count, int64_t order)
{
    timing *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; all && i < count; i++) {
        time_one(library, order, &all[i]);
    }
    if (all) {
        qsort(all, (size_t)count, sizeof *all, by_ratio);
        printf("host: %s\nworst %.2f, median %.2f of %d calls\n", blas_host_path(), all[0].ratio,
               all[count / 2].ratio, count);
        for (int i = 0; i < count; i++) {
            printf("%6.2f  %s  %10.1f us  %10.1f us\n", all[i].ratio, all[i].text,
                   1e6 * all[i].ours, 1e6 * all[i].host);
        }
    }
    free(all);
}

int main(int argc, char **argv)
{
    void *library = argc == 6 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "blas_calls LIBRARY check|time|cpu COUNT SEED ORDER\n%s\n",
                argc == 6 ? dlerror() : "");
        return 2;
    }
    const int count = (int)strtol(argv[3], NULL, 10);
    const int64_t order = strtol(argv[5], NULL, 10);
    state = (uint64_t)strtol(argv[4], NULL, 10) * 7919 + 1;
    if (strcmp(argv[2], "check") != 0) {
        clock_of_times = strcmp(argv[2], "cpu") == 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        time_calls(library, count, order);
        return 0;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed += check_one(library, order);
    }
    printf("%d calls, %d differ\n", count, failed);
    return failed != 0;
}

/* Operands that stay on the device: whatever writes them between two calls, the second one computes
 * with what is there.
 *
 * HALYARD_BLAS_RESIDENT=watch|told blas_resident   ends with 77 where the kernel cannot tell
 * HALYARD_BLAS_RESIDENT=told HALYARD_BLAS_RESIDENT_LIMIT=1 blas_resident limit   what leaves the
 *                                                  device to make room, of 1 MB */
#include "watch.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDER = 96, COLUMNS = 3, ELEMENTS = ORDER * ORDER, ROUNDS = 60, THREADS = 6 };
#define BYTES (ELEMENTS * sizeof(double))

void dsymm_(const char *, const char *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t,
            size_t);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);
void halyard_blas_written(const void *data, size_t bytes);

static atomic_int failures;

/* The largest error of A times a matrix, as a symmetric and as a general one. */
static double error_of(const double *a)
{
    static const int n = ORDER, columns = COLUMNS;
    static const double one = 1, zero = 0;
    double b[ORDER * COLUMNS], c[2][ORDER * COLUMNS], worst = 0;
    for (int i = 0; i < ORDER * COLUMNS; i++) {
        b[i] = i % 7 - 3;
    }
    dsymm_("L", "L", &n, &columns, &one, a, &n, b, &n, &zero, c[0], &n, 1, 1);
    dgemm_("N", "N", &n, &columns, &n, &one, a, &n, b, &n, &zero, c[1], &n, 1, 1);
    for (int i = 0; i < ORDER * COLUMNS; i++) {
        const int row = i % n, column = i / n;
        double sums[2] = {0, 0};
        for (int p = 0; p < n; p++) {
            const double other = b[p + column * n];
            sums[0] += (row > p ? a[row + p * n] : a[p + row * n]) * other;
            sums[1] += a[row + p * n] * other;
        }
        worst = fmax(worst, fmax(fabs(sums[0] - c[0][i]), fabs(sums[1] - c[1][i])));
    }
    return worst;
}

static void check(const double *a, const char *what)
{
    if (!(error_of(a) < 1e-9)) {
        printf("%s: the result is not of what was written\n", what);
        failures++;
    }
}

static void fill(double *a, int seed)
{
    for (int i = 0; i < ELEMENTS; i++) {
        a[i] = (i * 11 + seed * 7) % 17 - 8;
    }
}

static double *map(int flags)
{
    double *made = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) {
        exit(3);
    }
    fill(made, 1);
    return made;
}

/* A matrix that two calls have used, so that it is on the device. */
static double *map_resident(void)
{
    double *made = map(MAP_PRIVATE);
    check(made, "first call");
    check(made, "second call");
    return made;
}

static void expect_watched(const double *a, bool is_wanted, const char *what)
{
    if (blas_watch_is_clean(blas_watch_pages(a, BYTES)) != is_wanted) {
        printf("%s: expected memory that is %swatched\n", what, is_wanted ? "" : "not ");
        failures++;
    }
}

static void *write_one(void *element)
{
    *(double *)element += 5;
    return NULL;
}

static void stores(void)
{
    double *a = map_resident(), *b = map(MAP_PRIVATE);
    expect_watched(a, true, "a matrix in use");
    a[0] += 3;
    check(a, "a store to the first element");
    a[ELEMENTS - 1] += 3;
    check(a, "a store to the last element");
    fill(b, 0);
    memcpy(a + ELEMENTS / 2, b, BYTES / 4);
    check(a, "memcpy");
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_one, a + ELEMENTS / 3)) {
        exit(3);
    }
    pthread_join(thread, NULL);
    check(a, "a store of another thread");
    mprotect(a, BYTES, PROT_READ);
    check(a, "memory that may only be read");
    mprotect(a, BYTES, PROT_READ | PROT_WRITE);
    a[ELEMENTS / 2] = 77;
    check(a, "a store after mprotect");
    munmap(a, BYTES);
    munmap(b, BYTES);
}

/* Writes within the kernel. */
static void kernel_writes(void)
{
    double *a = map_resident(), values[4] = {50, 51, 52, 53};
    int ends[2];
    if (pipe(ends) || write(ends[1], values, sizeof values) != sizeof values ||
        read(ends[0], a + 700, sizeof values) != sizeof values) {
        exit(3);
    }
    check(a, "read from a pipe");
    values[0] = 60;
    const struct iovec from = {values, sizeof values}, to = {a + 1500, sizeof values};
    if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == sizeof values) {
        check(a, "process_vm_writev");
    }
    const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    if (memory >= 0 && pwrite(memory, values, sizeof values, (off_t)(uintptr_t)(a + 4000)) > 0) {
        check(a, "a write to /proc/self/mem");
    }
    close(memory);
    close(ends[0]);
    close(ends[1]);
    munmap(a, BYTES);
}

static void mappings(void)
{
    double *a = map_resident(), *b = map_resident();
    madvise(a, BYTES, MADV_DONTNEED);
    check(a, "dropped pages");
    fill(a, 2);
    check(a, "pages that were dropped and written");
    if (mmap(a, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        a) {
        exit(3);
    }
    check(a, "another mapping, of zeros, at the same address");
    fill(b, 3);
    check(b, "a matrix to be moved");
    check(b, "a matrix to be moved, again");
    /* The place that becomes free is kept, so that no other memory of the process gets there. */
    if (mremap(b, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, a) != a ||
        mmap(b, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != b) {
        exit(3);
    }
    check(a, "memory that was moved to the same address");
    if (mremap(a, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, b) != b) {
        exit(3);
    }
    b[5] = 9;
    check(b, "memory that was moved away and written");
    munmap(b, BYTES);
    for (int seed = 0; seed < 8; seed++) { /* most often at the same address */
        double *heap = malloc(BYTES);
        fill(heap, seed);
        check(heap, "memory of malloc");
        check(heap, "memory of malloc, again");
        free(heap);
    }
}

/* Memory that others may write without a fault in this process. */
static void shared(void)
{
    double *a = map(MAP_SHARED);
    check(a, "shared memory");
    check(a, "shared memory, again");
    expect_watched(a, false, "shared memory");
    const pid_t child = fork();
    if (child == 0) {
        fill(a, 4);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    check(a, "shared memory that another process wrote");
    munmap(a, BYTES);
}

static void forks(void)
{
    double *a = map_resident();
    const pid_t child = fork();
    if (child == 0) {
        check(a, "a child's memory");
        fill(a, 5);
        check(a, "memory that a child wrote");
        a[17] += 1;
        check(a, "memory that a child wrote again");
        _exit(failures != 0);
    }
    int status = 1;
    check(a, "the parent's memory");
    a[40] += 2;
    check(a, "memory that the parent wrote next to a child");
    waitpid(child, &status, 0);
    failures += status != 0;
    check(a, "the parent's memory after the child's end");
    munmap(a, BYTES);
}

/* Matrices that share pages: looking at one must not hide writes to its neighbour. */
static double *arena;

static void *hammer(void *number)
{
    const int which = *(int *)number;
    double *a = arena + which * ELEMENTS;
    for (int round = 0; round < ROUNDS && !failures; round++) {
        a[(round * 131) % ELEMENTS] = round;
        a[ELEMENTS - 1] = round;
        a[0] = -round;
        check(a, "a matrix next to those of other threads");
        if (round % 3 == 0) {
            check(a, "a matrix that only its neighbours wrote");
        }
    }
    return NULL;
}

static void neighbours(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    arena = malloc(THREADS * BYTES);
    for (int i = 0; i < THREADS; i++) {
        fill(arena + i * ELEMENTS, i);
    }
    double *a = arena, *b = arena + ELEMENTS;
    for (int round = 0; round < 4; round++) {
        check(a, "a neighbour");
        check(b, "its neighbour");
        a[ELEMENTS - 1] += 1; /* on a page of both */
        check(b, "a matrix of which the neighbour was written");
        check(a, "a neighbour that was written before");
    }
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, hammer, &numbers[i])) {
            exit(3);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    free(arena);
}

/* More matrices than there are places. */
static void many(void)
{
    enum { COUNT = 80 };
    double *all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        all[i] = map(MAP_PRIVATE);
        check(all[i], "one of many");
    }
    for (int i = 0; i < COUNT; i++) {
        all[i][i] += i;
        check(all[i], "one of many that was written");
        munmap(all[i], BYTES);
    }
}

/* A result that is an operand of the next call. */
static void results(void)
{
    static const int n = ORDER;
    static const double one = 1, zero = 0;
    double *a = map_resident(), *b = map_resident();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < ELEMENTS; i++) {
            b[i] = (i % (n + 1) == 0 ? 2 : 0) + (i == round); /* nearly 2 I */
        }
        halyard_blas_written(b, BYTES);
        dsymm_("L", "L", &n, &n, &one, b, &n, b, &n, &zero, a, &n, 1, 1);
        check(a, "the result of a call");
    }
    munmap(a, BYTES);
    munmap(b, BYTES);
}

/* Writes count when they are told, and not before, which shows that operands stay. */
static void told(void)
{
    double *a = map_resident();
    a[0] += 100;
    if (error_of(a) < 1) {
        printf("a matrix did not stay\n");
        failures++;
    }
    halyard_blas_written(a, sizeof *a);
    check(a, "a write that was told");
    results();
}

/* A symmetric matrix that is larger than the limit. */
static void too_large(void)
{
    enum { LARGE = 400 };
    static double a[LARGE * LARGE], b[LARGE], c[LARGE];
    static const int n = LARGE, columns = 1;
    static const double one = 1, zero = 0;
    for (int i = 0; i < LARGE; i++) {
        b[i] = 1;
    }
    for (int round = 1; round < 4; round++) {
        a[0] = round; /* not told */
        dsymm_("L", "L", &n, &columns, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
        if (c[0] != round) {
            printf("a matrix that is larger than the limit stayed\n");
            failures++;
        }
    }
}

/* As many matrices stay as the limit has room for: those that were used last. Writes that nobody
 * told show which. Results are right as soon as a matrix has left. */
static void limited(void)
{
    enum { COUNT = 20, ROOM = 1000000 / BYTES };
    double *all[COUNT];
    for (int i = 0; i < COUNT; i++) {
        all[i] = map_resident();
        check(all[0], "the matrix that is used most");
    }
    for (int i = 0; i < COUNT; i++) {
        all[i][i] += 100;
    }
    for (int i = COUNT; i > 0; i--) { /* the first one, then from the last one on */
        const int at = i % COUNT;
        const bool is_wanted = at == 0 || at > COUNT - (int)ROOM;
        if ((error_of(all[at]) >= 1) != is_wanted) {
            printf("matrix %d %s\n", at, is_wanted ? "did not stay" : "stayed");
            failures++;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        halyard_blas_written(all[i], BYTES);
        all[i][5] -= 7;
        check(all[i], "a matrix that was written after others left");
        munmap(all[i], BYTES);
    }
    too_large();
}

int main(int argc, char **argv)
{
    const char *mode = getenv("HALYARD_BLAS_RESIDENT");
    alarm(250);
    if (argc > 1 && strcmp(argv[1], "limit") == 0) {
        limited();
    } else if (mode && strcmp(mode, "told") == 0) {
        told();
    } else if (!mode || strcmp(mode, "watch") != 0) {
        fprintf(stderr, "HALYARD_BLAS_RESIDENT=watch|told blas_resident\n");
        return 2;
    } else if (!blas_watch_is_available()) {
        printf("this kernel cannot tell writes\n");
        return 77;
    } else {
        stores();
        kernel_writes();
        mappings();
        shared();
        forks();
        neighbours();
        many();
        results();
    }
    printf("%d wrong\n", (int)failures);
    return failures != 0;
}

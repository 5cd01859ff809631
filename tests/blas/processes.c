/* Calls from many threads at once, nested parallel regions, forked children and destructors give
 * the right results and end.
 *
 * blas_processes threads|nested|fork|exit */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORDER 96
#define THREADS 16
#define ROUNDS 20

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *,
            const double *, const int *, const double *, const int *, const double *, double *,
            const int *, size_t, size_t);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *,
            const double *, const double *, const int *, double *, const int *, size_t, size_t,
            size_t, size_t);

/* Whether L^-1 (L X) is X, for a lower triangle L and an X that depend on `seed`. */
static int is_right(int seed)
{
    const int n = ORDER;
    const double one = 1, zero = 0;
    double *memory = calloc(3 * ORDER * ORDER, sizeof *memory);
    double *l = memory, *x = memory + n * n, *y = memory + 2 * n * n, worst = 0;
    for (int i = 0; i < n * n; i++) {
        const int row = i % n, column = i / n;
        l[i] = row == column ? 2 : row > column ? ((i * 7 + seed) % 13 - 6) / 100.0 : 0;
        x[i] = (i * 11 + seed * 5) % 17 - 8;
    }
    dgemm_("N", "N", &n, &n, &n, &one, l, &n, x, &n, &zero, y, &n, 1, 1);
    dtrsm_("L", "L", "N", "N", &n, &n, &one, l, &n, y, &n, 1, 1, 1, 1);
    for (int i = 0; i < n * n; i++) {
        worst = fmax(worst, fabs(x[i] - y[i]));
    }
    free(memory);
    return worst < 1e-10;
}

static atomic_int wrong;

static void *thread_main(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        wrong += !is_right(*(int *)number + round);
    }
    return NULL;
}

static void threads_start(pthread_t *threads, int *numbers)
{
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, thread_main, &numbers[i])) {
            exit(3);
        }
    }
}

static void threads_join(const pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void nested(void)
{
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 8; i++) {
#pragma omp parallel for num_threads(2)
        for (int j = 0; j < 4; j++) {
            wrong += !is_right(i * 4 + j);
        }
    }
}

/* Children of a process whose threads are in calls. */
static void forks(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    /* The device is open before: a child that is forked while the C library loads a plugin in
     * another thread has its loader in a state that nobody defines. */
    wrong += !is_right(0);
    threads_start(threads, numbers);
    for (int i = 0; i < 8; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(is_right(i) ? 0 : 1);
        }
        int status = 1;
        wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    threads_join(threads);
    wrong += !is_right(1);
}

static int calls_at_exit;

static void at_exit(void)
{
    if (calls_at_exit && !is_right(5)) {
        _exit(1);
    }
}

__attribute__((destructor)) static void at_end(void)
{
    if (calls_at_exit && !is_right(6)) {
        _exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    alarm(200);
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[THREADS];
        int numbers[THREADS];
        threads_start(threads, numbers);
        threads_join(threads);
    } else if (strcmp(what, "nested") == 0) {
        nested();
    } else if (strcmp(what, "fork") == 0) {
        forks();
    } else if (strcmp(what, "exit") == 0) {
        calls_at_exit = 1;
        wrong += !is_right(3) || atexit(at_exit);
    } else {
        fprintf(stderr, "blas_processes threads|nested|fork|exit\n");
        return 2;
    }
    printf("%s: %d wrong\n", what, (int)wrong);
    return wrong != 0;
}

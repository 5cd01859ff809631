/* The threads of the cpu plugin: all work is done once, with more threads than processors, and late
 * threads are not waited for. */
#include "cpu/threads/pool.h"

#include <dirent.h>
#include <errno.h>
#include <kit/clock.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

enum { ITEMS = 1000, THREADS = 64, RUNS = 300, SPINNERS = 4 };

typedef struct job {
    _Atomic uint32_t next;
    _Atomic uint32_t done[ITEMS];
    _Atomic uint32_t calls[THREADS]; /* by number of the thread */
    _Atomic uint32_t inside;
    _Atomic uint32_t most_inside;
} job;

static uint32_t threads_granted = UINT32_MAX;
static size_t stacks; /* bytes of the stacks of threads so far */
static rlim_t address_space = RLIM_INFINITY;

int __real_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);
int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit);

/* The thread sanitizer asks for limits before it can follow a function. */
#if defined __has_attribute
#if __has_attribute(disable_sanitizer_instrumentation)
__attribute__((disable_sanitizer_instrumentation))
#endif
#endif
int __wrap_getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    if (resource != RLIMIT_AS || address_space == RLIM_INFINITY) {
        return __real_getrlimit(resource, limit);
    }
    *limit = (struct rlimit){.rlim_cur = address_space, .rlim_max = RLIM_INFINITY};
    return 0;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument);

/* The system refuses threads after the first threads_granted. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    if (threads_granted == 0) {
        return EAGAIN;
    }
    threads_granted -= threads_granted != UINT32_MAX;
    size_t stack = 8 << 20;
    if (attributes) {
        pthread_attr_getstacksize(attributes, &stack);
    }
    stacks += stack;
    return __real_pthread_create(thread, attributes, function, argument);
}

static void items_do(void *context, uint32_t thread)
{
    job *j = context;
    const uint32_t inside = atomic_fetch_add(&j->inside, 1) + 1;
    uint32_t most = atomic_load(&j->most_inside);
    while (most < inside && !atomic_compare_exchange_weak(&j->most_inside, &most, inside)) {
    }
    atomic_fetch_add(&j->calls[thread], 1);
    for (;;) {
        const uint32_t item = atomic_fetch_add(&j->next, 1);
        if (item >= ITEMS) {
            break;
        }
        atomic_fetch_add(&j->done[item], 1);
    }
    atomic_fetch_sub(&j->inside, 1);
}

/* Each item is done once, each number is given once, and nobody is inside afterwards. */
static void job_check(cpu_thread_pool *pool, uint32_t threads)
{
    job *j = calloc(1, sizeof(*j));
    assert_non_null(j);
    cpu_thread_pool_run(pool, threads, items_do, j);
    assert_int_equal(atomic_load(&j->inside), 0);
    assert_int_equal(atomic_load(&j->calls[0]), 1);
    assert_true(atomic_load(&j->most_inside) <= threads);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(atomic_load(&j->done[i]), 1);
    }
    uint32_t calls = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_true(atomic_load(&j->calls[i]) <= (i < cpu_thread_pool_size(pool)));
        calls += atomic_load(&j->calls[i]);
    }
    assert_true(calls <= threads);
    free(j);
}

static void test_runs(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 16, THREADS};
    const struct timespec pause = {.tv_nsec = 400000};
    for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        cpu_thread_pool *pool = cpu_thread_pool_create(sizes[s]);
        assert_int_equal(cpu_thread_pool_size(pool), sizes[s]);
        for (uint32_t run = 0; run < RUNS; run++) {
            job_check(pool, 1 + run % sizes[s]);
            if (run % 16 == 0) {
                nanosleep(&pause, NULL); /* the threads fall asleep */
            }
        }
        cpu_thread_pool_destroy(pool);
    }
}

/* A function that ends when a second thread has come: threads do come, awake or asleep. */
static void second_wait(void *context, uint32_t thread)
{
    _Atomic uint32_t *came = context;
    if (thread != 0) {
        atomic_fetch_add(came, 1);
    }
    for (uint32_t turn = 0; atomic_load(came) == 0; turn++) {
        cpu_wait_turn(turn);
    }
}

static void test_threads_come(void **state)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    cpu_thread_pool *pool = cpu_thread_pool_create(4);
    for (uint32_t run = 0; run < 100; run++) {
        _Atomic uint32_t came = 0;
        cpu_thread_pool_run(pool, 2 + run % 3, second_wait, &came);
        assert_in_range(atomic_load(&came), 1, 1 + run % 3);
        if (run % 4 == 0) {
            nanosleep(&pause, NULL);
        }
    }
    cpu_thread_pool_destroy(pool);
}

/* A thread that joined is waited for, also when it takes long. */
static void join_and_sleep(void *context, uint32_t thread)
{
    _Atomic uint32_t *came = context;
    const struct timespec pause = {.tv_nsec = 20000000};
    if (thread == 0) {
        second_wait(context, 0);
    } else {
        atomic_store(came, 1);
        nanosleep(&pause, NULL);
        atomic_store(came, 2);
    }
}

static void test_joined_thread_is_waited_for(void **state)
{
    cpu_thread_pool *pool = cpu_thread_pool_create(2);
    for (uint32_t run = 0; run < 5; run++) {
        _Atomic uint32_t came = 0;
        cpu_thread_pool_run(pool, 2, join_and_sleep, &came);
        assert_int_equal(atomic_load(&came), 2);
    }
    cpu_thread_pool_destroy(pool);
}

/* Gives a policy to all threads of the process but the calling one. */
static void others_set_policy(int policy)
{
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        const struct sched_param parameter = {0};
        if (thread > 0 && thread != gettid()) {
            assert_int_equal(sched_setscheduler(thread, policy, &parameter), 0);
        }
    }
    closedir(folder);
}

static void *spin(void *context)
{
    _Atomic bool *ends = context;
    while (!atomic_load_explicit(ends, memory_order_relaxed)) {
    }
    return NULL;
}

static void nothing_do(void *context, uint32_t thread)
{
}

static int time_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* All threads are on one processor, where others with a higher priority spin: those of the pool
 * hardly ever run. They cost the caller next to nothing, rather than the time until they run. */
static void test_late_threads_are_not_waited_for(void **state)
{
    static uint64_t times[RUNS];
    static pthread_t spinners[SPINNERS];
    _Atomic bool ends = false;
    cpu_set_t before, one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    for (uint32_t threads = 4; threads <= THREADS; threads *= 4) {
        cpu_thread_pool *pool = cpu_thread_pool_create(threads);
        others_set_policy(SCHED_IDLE);
        atomic_store(&ends, false);
        for (uint32_t i = 0; i < SPINNERS; i++) {
            assert_int_equal(pthread_create(&spinners[i], NULL, spin, &ends), 0);
        }
        for (uint32_t run = 0; run < RUNS; run++) {
            const uint64_t start = kit_clock_ns();
            cpu_thread_pool_run(pool, threads, nothing_do, NULL);
            times[run] = kit_clock_ns() - start;
        }
        atomic_store(&ends, true);
        for (uint32_t i = 0; i < SPINNERS; i++) {
            pthread_join(spinners[i], NULL);
        }
        cpu_thread_pool_destroy(pool);
        qsort(times, RUNS, sizeof(times[0]), time_compare);
        assert_true(times[RUNS / 2] < 500000);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Callers take turns. */
typedef struct caller {
    cpu_thread_pool *pool;
    uint64_t sum;
} caller;

static void sum_add(void *context, uint32_t thread)
{
    caller *c = context;
    if (thread == 0) {
        c->sum++;
    }
}

static void *caller_main(void *context)
{
    caller *c = context;
    for (uint32_t run = 0; run < RUNS; run++) {
        cpu_thread_pool_run(c->pool, 1 + run % 4, sum_add, c);
    }
    return NULL;
}

static void test_several_callers(void **state)
{
    caller callers[3];
    pthread_t threads[3];
    cpu_thread_pool *pool = cpu_thread_pool_create(4);
    for (uint32_t i = 0; i < 3; i++) {
        callers[i] = (caller){.pool = pool};
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].sum, RUNS);
    }
    cpu_thread_pool_destroy(pool);
}

static cpu_thread_pool *busy_pool;

/* The calling thread begins another call. */
static void call_within(void *context, uint32_t thread)
{
    if (thread == 0) {
        cpu_thread_pool_run_now(busy_pool, 4, items_do, context);
    }
}

static void test_busy_pool_is_not_waited_for(void **state)
{
    job *j = calloc(1, sizeof(*j));
    busy_pool = cpu_thread_pool_create(4);
    assert_non_null(j);
    assert_non_null(busy_pool);
    cpu_thread_pool_run(busy_pool, 4, call_within, j);
    assert_int_equal(atomic_load(&j->calls[0]), 1);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(atomic_load(&j->calls[i]), 0);
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(atomic_load(&j->done[i]), 1);
    }
    cpu_thread_pool_run_now(busy_pool, 4, items_do, j);
    assert_int_equal(atomic_load(&j->calls[0]), 2);
    cpu_thread_pool_destroy(busy_pool);
    free(j);
}

/* A pool ends whatever its threads do at that moment: beginning, looking for a call, falling
 * asleep. A thread that misses the end would never be joined. */
static void test_ends_at_any_moment(void **state)
{
    for (uint32_t cycle = 0; cycle < 4000; cycle++) {
        cpu_thread_pool *pool = cpu_thread_pool_create(2);
        for (volatile uint32_t turn = cycle % 1000 * 10; turn > 0; turn--) {
        }
        cpu_thread_pool_run(pool, 2, nothing_do, NULL);
        cpu_thread_pool_destroy(pool);
    }
}

/* Stacks take a part of a limited address space: the rest is for the program. */
static void test_stacks_leave_address_space(void **state)
{
    address_space = (rlim_t)64 << 20;
    stacks = 0;
    cpu_thread_pool *pool = cpu_thread_pool_create(1024);
    assert_non_null(pool);
    assert_true(stacks <= address_space / 2);
    assert_true(cpu_thread_pool_size(pool) > 4);
    job_check(pool, cpu_thread_pool_size(pool));
    cpu_thread_pool_destroy(pool);
    address_space = RLIM_INFINITY;
}

/* Where the system refuses threads the pool works with those that it has. */
static void test_threads_are_refused(void **state)
{
    for (uint32_t granted = 0; granted < 16; granted += 3) {
        threads_granted = granted;
        cpu_thread_pool *pool = cpu_thread_pool_create(16);
        threads_granted = UINT32_MAX;
        assert_int_equal(cpu_thread_pool_size(pool), granted < 15 ? granted + 1 : 16);
        job_check(pool, 16);
        cpu_thread_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_threads_come),
        cmocka_unit_test(test_joined_thread_is_waited_for),
        cmocka_unit_test(test_late_threads_are_not_waited_for),
        cmocka_unit_test(test_several_callers),
        cmocka_unit_test(test_busy_pool_is_not_waited_for),
        cmocka_unit_test(test_ends_at_any_moment),
        cmocka_unit_test(test_stacks_leave_address_space),
        cmocka_unit_test(test_threads_are_refused),
    };
    return cmocka_run_group_tests_name("cpu thread pool", tests, NULL, NULL);
}

/* The choice of a thread count on simulated machines: each count has a time, and with some
 * probability a thread is late. */
#include "cpu/threads/choice.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

enum { MICROSECOND = 1000, LATE = 4000 * MICROSECOND };

/* Times in microseconds of work on 1, 2, 4, 8 and 16 threads. */
enum { LENGTH = 5, SCENES = 6 };
static const double scenes[SCENES][LENGTH] = {
    {100, 52, 28, 17, 12},       /* scales */
    {100, 60, 40, 60, 90},       /* best in the middle */
    {100, 60, 40, 60, 9000},     /* collapses with all threads */
    {100, 300, 900, 2000, 4000}, /* only loses */
    {100, 98, 97, 99, 101},      /* makes no difference */
    {6, 18, 20, 25, 40},         /* small */
};

typedef struct machine {
    thread_counts counts;
    thread_choice choice;
    double time[LENGTH]; /* microseconds */
    double late;         /* probability that a run with more than one thread has a late one */
    double hint;         /* expectation of one thread over its time */
    uint64_t random;
    double total;          /* nanoseconds of all runs */
    uint32_t used[LENGTH]; /* runs by count */
} machine;

/* From 0 to 1. */
static double random_next(machine *m)
{
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(m->random >> 11) / (double)(UINT64_C(1) << 53);
}

static void machine_init(machine *m, const double *time, uint32_t start)
{
    *m = (machine){.hint = 1, .random = 7};
    memcpy(m->time, time, sizeof(m->time));
    thread_counts_init(&m->counts, 16);
    thread_choice_init(&m->choice, start);
}

static void machine_run(machine *m, uint32_t runs)
{
    m->total = 0;
    memset(m->used, 0, sizeof(m->used));
    for (uint32_t i = 0; i < runs; i++) {
        const uint32_t index = thread_choice_next(&m->choice, &m->counts);
        assert_in_range(index, 0, LENGTH - 1);
        double took = m->time[index] * MICROSECOND * (0.97 + 0.06 * random_next(m));
        took += index > 0 && random_next(m) < m->late ? LATE : 0;
        thread_choice_note(&m->choice, &m->counts, index, took,
                           m->hint * m->time[0] * MICROSECOND, 64);
        m->total += took;
        m->used[index]++;
    }
}

/* Nanoseconds of a run with the best count, on the average. */
static double best_mean(const machine *m)
{
    double best = m->time[0] * MICROSECOND;
    for (uint32_t i = 1; i < LENGTH; i++) {
        const double mean = m->time[i] * MICROSECOND + m->late * LATE;
        best = mean < best ? mean : best;
    }
    return best;
}

static void counts_expect(uint32_t threads, const uint32_t *wanted, uint32_t length)
{
    thread_counts counts;
    thread_counts_init(&counts, threads);
    assert_int_equal(counts.length, length);
    assert_memory_equal(counts.threads, wanted, length * sizeof(*wanted));
}

static void test_counts(void **state)
{
    thread_counts counts;
    counts_expect(1, (const uint32_t[]){1}, 1);
    counts_expect(2, (const uint32_t[]){1, 2}, 2);
    counts_expect(3, (const uint32_t[]){1, 2, 3}, 3);
    counts_expect(12, (const uint32_t[]){1, 2, 4, 6, 12}, 5);
    counts_expect(16, (const uint32_t[]){1, 2, 4, 8, 16}, 5);
    counts_expect(1024, (const uint32_t[]){1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, 11);
    for (uint32_t threads = 1; threads <= 1024; threads++) {
        thread_counts_init(&counts, threads);
        assert_in_range(counts.length, 1, THREAD_COUNTS_MAX);
        assert_int_equal(counts.threads[counts.length - 1], threads);
        for (uint32_t i = 1; i < counts.length; i++) {
            assert_true(counts.threads[i - 1] < counts.threads[i]);
        }
    }
    thread_counts_init(&counts, 12);
    assert_int_equal(thread_counts_find(&counts, 1), 0);
    assert_int_equal(thread_counts_find(&counts, 5), 2);
    assert_int_equal(thread_counts_find(&counts, 12), 4);
    assert_int_equal(thread_counts_find(&counts, 99), 4);
}

/* From every start and with expectations that are wrong by four, the choice finds a count within
 * the hysteresis of the best. */
static void test_convergence(void **state)
{
    static const double hints[] = {0.25, 1, 4};
    for (uint32_t scene = 0; scene < SCENES; scene++) {
        for (uint32_t start = 0; start < LENGTH; start++) {
            for (uint32_t hint = 0; hint < 3; hint++) {
                machine m;
                machine_init(&m, scenes[scene], start);
                m.hint = hints[hint];
                machine_run(&m, 4000);
                machine_run(&m, 1000);
                assert_true(m.total < 1.15 * 1000 * best_mean(&m));
            }
        }
    }
}

/* Whatever the other counts take, measuring them costs a few percent. */
static void test_exploration_is_bounded(void **state)
{
    for (uint32_t scene = 0; scene < SCENES; scene++) {
        for (uint32_t start = 0; start < LENGTH; start++) {
            machine m;
            machine_init(&m, scenes[scene], start);
            /* Until here the choice finds its way. */
            machine_run(&m, 4000);
            const double best = m.time[m.choice.best] * MICROSECOND;
            machine_run(&m, 20000);
            assert_true(m.total < 1.05 * 20000 * best);
            /* And it does measure them. */
            for (uint32_t i = 0; i < LENGTH; i++) {
                assert_true(m.used[i] > 0);
            }
        }
    }
}

/* One late thread does not change the choice, however late. */
static void test_one_late_thread(void **state)
{
    machine m;
    machine_init(&m, scenes[0], LENGTH - 1);
    machine_run(&m, 4000);
    assert_int_equal(m.choice.best, LENGTH - 1);
    for (uint32_t i = 0; i < 50; i++) {
        while (thread_choice_next(&m.choice, &m.counts) != LENGTH - 1) {
            machine_run(&m, 1);
        }
        thread_choice_note(&m.choice, &m.counts, LENGTH - 1, 1e9, 100 * MICROSECOND, 64);
        machine_run(&m, 500);
        assert_true(m.used[LENGTH - 1] > 400);
    }
}

/* While every run waits for a late thread one thread does the work; afterwards all share again. */
static void test_recovery(void **state)
{
    machine m;
    machine_init(&m, scenes[0], LENGTH - 1);
    machine_run(&m, 1000);
    for (uint32_t phase = 0; phase < 5; phase++) {
        m.late = 1;
        machine_run(&m, 200);
        machine_run(&m, 1000);
        assert_true(m.used[0] > 950);
        m.late = 0;
        machine_run(&m, 20000);
        machine_run(&m, 1000);
        assert_true(m.used[LENGTH - 1] > 900);
    }
}

/* Under load that delays one run in ten, or in three, the mean decides, not a lucky sample. */
static void test_load(void **state)
{
    for (uint32_t scene = 0; scene < SCENES; scene++) {
        for (uint32_t tenths = 1; tenths <= 5; tenths++) {
            for (uint32_t start = 0; start < LENGTH; start++) {
                machine m;
                machine_init(&m, scenes[scene], start);
                m.late = tenths / 10.0;
                machine_run(&m, 2000);
                machine_run(&m, 20000);
                assert_true(m.total < 1.25 * 20000 * best_mean(&m));
            }
        }
    }
}

/* Runs of several threads overlap: a note may come for a count that is no longer of interest. */
static void test_overlapping_runs(void **state)
{
    machine m;
    machine_init(&m, scenes[0], 2);
    machine_run(&m, 3);
    assert_int_equal(m.choice.best, 2);
    const thread_choice before = m.choice;
    thread_choice_note(&m.choice, &m.counts, 4, 1, 100 * MICROSECOND, 64);
    assert_int_equal(m.choice.best, 2);
    assert_int_equal(m.choice.quiet, before.quiet);
    assert_true(m.choice.cost[4] == before.cost[4]);
}

/* A device with one thread has nothing to choose. */
static void test_one_thread(void **state)
{
    thread_counts counts;
    thread_choice choice;
    thread_counts_init(&counts, 1);
    thread_choice_init(&choice, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(thread_choice_next(&choice, &counts), 0);
        thread_choice_note(&choice, &counts, 0, 1000.0 * (i % 7), 1000, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_convergence),
        cmocka_unit_test(test_exploration_is_bounded),
        cmocka_unit_test(test_one_late_thread),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_overlapping_runs),
        cmocka_unit_test(test_one_thread),
    };
    return cmocka_run_group_tests_name("cpu thread choice", tests, NULL, NULL);
}

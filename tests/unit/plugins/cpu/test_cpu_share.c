/* Threads of the pool take part in large runs, with more threads than processors too, and again
 * after the machine was busy. That is so on any machine; test_cpu_share_time compares times. */
#include "cpu/device.h"
#include "cpu/kernel.h"
#include "cpu/queue.h"
#include "cpu_share_fixture.h"

#include <time.h>

enum { CELLS = 1 << 20, STEPS = 100 };

/* Whether a thread of the pool ran groups of a run. */
static bool run_was_helped(bench *b)
{
    bool helped = false;
    for (uint32_t i = 1; i < b->device->threads; i++) {
        b->queue->dispatches.workers[i].executable = 0;
    }
    bench_run(b, 1);
    for (uint32_t i = 1; i < b->device->threads; i++) {
        helped |= b->queue->dispatches.workers[i].executable == b->kernel->executable->number;
    }
    return helped;
}

enum { LOOK_NS = 50000000 };

/* Nanoseconds of processor time that the calling thread gets in LOOK_NS from `start` on. */
static uint64_t processor_take(uint64_t start)
{
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    while (kit_clock_ns() - start < LOOK_NS) {
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (uint64_t)((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec);
}

static void *second_processor_take(void *context)
{
    uint64_t *nanoseconds = context;
    *nanoseconds = processor_take(*nanoseconds);
    return NULL;
}

/* Whether two threads of the process get most of a processor each. */
static bool are_two_processors_free(void)
{
    pthread_t thread;
    const uint64_t start = kit_clock_ns();
    uint64_t second = start;
    assert_int_equal(pthread_create(&thread, NULL, second_processor_take, &second), 0);
    const uint64_t first = processor_take(start);
    pthread_join(thread, NULL);
    return first > LOOK_NS / 4 * 3 && second > LOOK_NS / 4 * 3;
}

/* Runs until a thread of the pool helps. A run takes milliseconds, so that the system finds the
 * thread a processor in one of them. Where other programs leave one processor to the process, none
 * may help: runs only count where two were free afterwards. */
static void expect_help(bench *b)
{
    enum { RUNS = 100, LEAST = 1000, SECONDS = 40 };
    const uint64_t start = kit_clock_ns();
    for (uint32_t counted = 0; counted < LEAST;) {
        for (uint32_t run = 0; run < RUNS; run++) {
            if (run_was_helped(b)) {
                return;
            }
        }
        if (kit_clock_ns() - start > SECONDS * UINT64_C(1000000000)) {
            print_message("not tested: the process gets no two processors\n");
            return;
        }
        counted += are_two_processors_free() ? RUNS : 0;
    }
    fail_msg("the calling thread has done all the work of %d runs", (int)LEAST);
}

static void check_threads(const char *threads)
{
    enum { RUNS = 20 };
    busy_threads busy;
    bench b;
    bench_open(&b, threads, CELLS, STEPS);
    expect_help(&b);
    busy_begin(&busy);
    bench_run(&b, RUNS);
    busy_end(&busy);
    expect_help(&b);
    bench_check(&b);
    bench_close(&b);
}

TEST(test_16_threads)
{
    if (!has_two_processors()) {
        skip();
    }
    check_threads("16");
}

TEST(test_64_threads)
{
    if (!has_two_processors()) {
        skip();
    }
    check_threads("64");
}

TEST(test_default_threads)
{
    if (!has_two_processors()) {
        skip();
    }
    check_threads("");
}

UNIT_MAIN(NULL, cpu_close_all)

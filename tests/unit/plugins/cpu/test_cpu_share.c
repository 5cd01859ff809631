/* Threads of the pool take part in large runs, with more threads than processors too, and again
 * after the machine was busy. That is so on any machine; test_cpu_share_time compares times. */
#include "cpu/cpu_plugin.h"
#include "cpu_share_fixture.h"

enum { CELLS = 1 << 20, STEPS = 100 };

/* Whether a thread of the pool ran groups of a run. */
static bool run_was_helped(bench *b)
{
    bool helped = false;
    for (uint32_t i = 1; i < b->device->threads; i++) {
        b->queue->workers[i].kernel = 0;
    }
    bench_run(b, 1);
    for (uint32_t i = 1; i < b->device->threads; i++) {
        helped |= b->queue->workers[i].kernel == b->kernel->number;
    }
    return helped;
}

/* Runs until a thread of the pool helps. A run takes milliseconds, so that the system finds the
 * thread a processor in one of them, however busy the machine is. */
static void expect_help(bench *b)
{
    enum { SECONDS = 60 };
    const uint64_t start = kit_clock_ns();
    while (!run_was_helped(b)) {
        if (kit_clock_ns() - start > SECONDS * UINT64_C(1000000000)) {
            fail_msg("the calling thread has done all the work for %d s", (int)SECONDS);
        }
    }
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

/* Work is shared over the processors with more threads than processors, on a busy machine too, and
 * again after the load has gone: the times of runs say so, on a machine whose processors nobody
 * else needs. The time that counts is that of processors where possible. */
#include "cpu_share_fixture.h"

#include <time.h>
#include <unistd.h>

enum { CELLS = 1 << 16, STEPS = 40 };

/* Nanoseconds of processor time that the calling thread takes for some runs. */
static double own_time(bench *b, uint32_t runs)
{
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    bench_run(b, runs);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
}

static double wall_time(bench *b, uint32_t runs)
{
    const uint64_t start = kit_clock_ns();
    bench_run(b, runs);
    return (double)(kit_clock_ns() - start);
}

/* Seconds of processor time: of the whole host, with what its own host took from it, and of this
 * process. */
typedef struct load {
    double host, own;
    uint64_t time;
} load;

static load load_now(void)
{
    unsigned long long field[8] = {0}; /* user, nice, system, idle, iowait, irq, softirq, steal */
    load now = {.time = kit_clock_ns()};
    FILE *file = fopen("/proc/stat", "r");
    if (file) {
        const int read =
            fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1],
                   &field[2], &field[3], &field[4], &field[5], &field[6], &field[7]);
        fclose(file);
        const unsigned long long ticks =
            field[0] + field[1] + field[2] + field[5] + field[6] + field[7];
        now.host = read == 8 ? (double)ticks / (double)sysconf(_SC_CLK_TCK) : 0;
    }
    struct timespec own;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    now.own = (double)own.tv_sec + (double)own.tv_nsec / 1e9;
    return now;
}

/* Comparisons of a device with many threads with a device of one. */
typedef struct attempts {
    load before;
    const char *what;
    uint32_t count, good; /* in all, and the last ones in a row that went well */
} attempts;

/* Whether other programs took a fifth of the processors' time since then: the work of a kernel may
 * then find nobody free to share it, and only that it is right can be tested. */
static bool host_was_busy(const load *since)
{
    const load now = load_now();
    const double elapsed = (double)(now.time - since->time) / 1e9;
    const double others = (now.host - since->host) - (now.own - since->own);
    const bool is_busy = others > 0.2 * elapsed * (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (is_busy) {
        print_message("not tested: other programs take %.2f processors\n", others / elapsed);
    }
    return is_busy;
}

/* Notes an attempt. Returns true when enough of them in a row went well: noise alone makes one of
 * some hundred look well. Fails when the time is over and other programs are no excuse. */
static bool attempt_ends(attempts *of, bool is_good, double shared_us, double one_us)
{
    enum { IN_A_ROW = 4, LEAST = 10, SECONDS = 20 };
    of->count++;
    of->good = is_good ? of->good + 1 : 0;
    if (of->good >= IN_A_ROW) {
        return true;
    }
    const uint64_t elapsed = kit_clock_ns() - of->before.time;
    if (of->count < LEAST || elapsed < SECONDS * UINT64_C(1000000000)) {
        return false;
    }
    if (!host_was_busy(&of->before)) {
        fail_msg("%s: %.0f us a run, with one thread %.0f", of->what, shared_us, one_us);
    }
    return true;
}

/* Runs until the calling thread does at most three quarters of the work, as it does when another
 * one helps it. Other programs may keep the processors busy for a while. */
static void expect_sharing(bench *b, bench *alone)
{
    enum { RUNS = 40 };
    attempts of = {.before = load_now(), .what = "the calling thread still does the work"};
    double one, shared;
    do {
        one = own_time(alone, RUNS);
        shared = own_time(b, RUNS);
    } while (!attempt_ends(&of, shared < 0.75 * one, shared / RUNS / 1e3, one / RUNS / 1e3));
}

/* Runs until the runs of some turns take at most three times as long as with one thread under the
 * same load; turns of both alternate. A thread that the system stops in the middle of its part
 * delays a run by milliseconds, which may happen to any of the attempts, but not to all. */
static void expect_no_collapse(bench *b, bench *alone)
{
    enum { TURNS = 20, RUNS = 10 };
    attempts of = {.before = load_now(), .what = "under load"};
    double one, many;
    do {
        one = many = 0;
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            one += wall_time(alone, RUNS);
            many += wall_time(b, RUNS);
        }
    } while (
        !attempt_ends(&of, many <= 3 * one, many / TURNS / RUNS / 1e3, one / TURNS / RUNS / 1e3));
}

/* The load does not make sharing slow for ever. Afterwards the work is shared again. */
static void check_threads(const char *threads)
{
    enum { RUNS = 200 };
    busy_threads busy;
    bench shared, alone;
    bench_open(&shared, threads, CELLS, STEPS);
    bench_open(&alone, "1", CELLS, STEPS);
    bench_run(&alone, 3);
    expect_sharing(&shared, &alone);
    busy_begin(&busy);
    bench_run(&shared, RUNS);
    expect_no_collapse(&shared, &alone);
    busy_end(&busy);
    expect_sharing(&shared, &alone);
    bench_check(&shared);
    bench_check(&alone);
    bench_close(&shared);
    bench_close(&alone);
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

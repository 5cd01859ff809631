/* Work is shared over the processors with more threads than processors, on a busy machine too, and
 * again after the load has gone: the times of runs say so, on a machine whose processors nobody
 * else needs. The time that counts is that of processors where possible. */
#include "cpu_fixture.h"

#include <kit/clock.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { CELLS = 1 << 16, GROUP = 64, STEPS = 40, SPINNERS = 4 };

typedef struct bench {
    hal_plugin_device *device;
    hal_plugin_queue *queue;
    hal_plugin_kernel *kernel;
    hal_plugin_memory *memory;
    uint32_t *cells;
    uint64_t value;
} bench;

/* cells[i] = cells[i] * 5 + 3, STEPS times. */
static hal_plugin_kernel *kernel_make(hal_plugin_device *device)
{
    hal_plugin_kernel *kernel = NULL;
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("affine", &b);
    hal_ir_group_size(b, GROUP, 1, 1);
    hal_ir_memory_id cells = hal_ir_binding(b, "cells", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value x = hal_ir_load(b, cells, i);
    for (uint32_t step = 0; step < STEPS; step++) {
        x = hal_ir_add(b, hal_ir_mul(b, x, hal_ir_u32(b, 5)), hal_ir_u32(b, 3));
    }
    hal_ir_store(b, cells, i, x);
    hal_ir_kernel *ir = cpu_finish(b);
    assert_int_equal(cpu_plugin()->kernel_create(device, ir, &kernel), HAL_OK);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static void bench_open(bench *b, const char *threads)
{
    const hal_plugin *plugin = cpu_plugin();
    void *place = NULL;
    memset(b, 0, sizeof(*b));
    setenv("HAL_CPU_THREADS", threads, 1);
    assert_int_equal(plugin->device_open(0, &b->device), HAL_OK);
    unsetenv("HAL_CPU_THREADS");
    b->kernel = kernel_make(b->device);
    assert_int_equal(plugin->queue_create(b->device, &b->queue), HAL_OK);
    assert_int_equal(
        plugin->memory_allocate(b->device, HAL_MEMORY_DEVICE, CELLS * sizeof(uint32_t), &b->memory),
        HAL_OK);
    assert_int_equal(plugin->memory_map(b->device, b->memory, &place), HAL_OK);
    b->cells = place;
    memset(b->cells, 0, CELLS * sizeof(uint32_t));
}

static void bench_close(bench *b)
{
    const hal_plugin *plugin = cpu_plugin();
    plugin->kernel_destroy(b->device, b->kernel);
    plugin->memory_free(b->device, b->memory);
    plugin->queue_destroy(b->device, b->queue);
    plugin->device_close(b->device);
}

static void bench_run(bench *b, uint32_t runs)
{
    const hal_binding binding = {
        .memory = b->memory, .length = CELLS * sizeof(uint32_t), .access = HAL_ACCESS_READ_WRITE};
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 1,
                                 .grid = {CELLS / GROUP, 1, 1},
                                 .kernel = b->kernel};
    const hal_batch batch = {.size = sizeof(batch),
                             .command_count = 1,
                             .binding_count = 1,
                             .commands = &command,
                             .bindings = &binding};
    for (uint32_t run = 0; run < runs; run++) {
        assert_int_equal(cpu_plugin()->submit(b->queue, &batch, NULL, 0, ++b->value), HAL_OK);
    }
}

/* All cells have seen every run. */
static void bench_check(const bench *b)
{
    uint32_t wanted = 0;
    for (uint64_t step = 0; step < b->value * STEPS; step++) {
        wanted = wanted * 5 + 3;
    }
    for (uint32_t i = 0; i < CELLS; i++) {
        assert_int_equal(b->cells[i], wanted);
    }
}

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

static bool has_two_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 2;
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
    if (file != NULL) {
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

static void *spin(void *context)
{
    _Atomic bool *ends = context;
    while (!atomic_load_explicit(ends, memory_order_relaxed)) {
    }
    return NULL;
}

/* The load does not make sharing slow for ever. Afterwards the work is shared again. */
static void check_threads(const char *threads)
{
    enum { RUNS = 200 };
    pthread_t spinners[SPINNERS];
    _Atomic bool ends = false;
    bench shared, alone;
    bench_open(&shared, threads);
    bench_open(&alone, "1");
    bench_run(&alone, 3);
    expect_sharing(&shared, &alone);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        assert_int_equal(pthread_create(&spinners[i], NULL, spin, &ends), 0);
    }
    bench_run(&shared, RUNS);
    expect_no_collapse(&shared, &alone);
    atomic_store(&ends, true);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        pthread_join(spinners[i], NULL);
    }
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

/* Threads of the pool take part in large runs, with more threads than processors too, and again
 * after the machine was busy. That is so on any machine; test_cpu_share_time compares times. */
#include "cpu/cpu_plugin.h"
#include "cpu_fixture.h"

#include <kit/clock.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { CELLS = 1 << 20, GROUP = 64, STEPS = 100, SPINNERS = 4 };

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

static bool has_two_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 2;
}

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

static void *spin(void *context)
{
    _Atomic bool *ends = context;
    while (!atomic_load_explicit(ends, memory_order_relaxed)) {
    }
    return NULL;
}

static void check_threads(const char *threads)
{
    enum { RUNS = 20 };
    pthread_t spinners[SPINNERS];
    _Atomic bool ends = false;
    bench b;
    bench_open(&b, threads);
    expect_help(&b);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        assert_int_equal(pthread_create(&spinners[i], NULL, spin, &ends), 0);
    }
    bench_run(&b, RUNS);
    atomic_store(&ends, true);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        pthread_join(spinners[i], NULL);
    }
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

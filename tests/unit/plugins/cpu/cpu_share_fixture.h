/* What the tests of sharing have in common: a device with some threads that runs a kernel over
 * cells, and threads that keep processors busy. */
#ifndef TESTS_UNIT_PLUGINS_CPU_CPU_SHARE_FIXTURE_H
#define TESTS_UNIT_PLUGINS_CPU_CPU_SHARE_FIXTURE_H

#include "cpu_fixture.h"

#include <kit/clock.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { GROUP = 64, SPINNERS = 4 };

typedef struct bench {
    hal_plugin_device *device;
    hal_plugin_queue *queue;
    hal_plugin_kernel *kernel;
    hal_plugin_memory *memory;
    uint32_t *cells;
    uint32_t count; /* of cells, a multiple of GROUP */
    uint32_t steps; /* of a run, for each cell */
    uint64_t value;
} bench;

/* cells[i] = cells[i] * 5 + 3, `steps` times. */
static inline hal_plugin_kernel *kernel_make(hal_plugin_device *device, uint32_t steps)
{
    hal_plugin_kernel *kernel = NULL;
    hal_ir_builder *b = NULL;
    hal_ir_builder_create("affine", &b);
    hal_ir_group_size(b, GROUP, 1, 1);
    hal_ir_memory_id cells = hal_ir_binding(b, "cells", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value x = hal_ir_load(b, cells, i);
    for (uint32_t step = 0; step < steps; step++) {
        x = hal_ir_add(b, hal_ir_mul(b, x, hal_ir_u32(b, 5)), hal_ir_u32(b, 3));
    }
    hal_ir_store(b, cells, i, x);
    hal_ir_kernel *ir = cpu_finish(b);
    assert_int_equal(cpu_plugin()->kernel_create(device, ir, &kernel), HAL_OK);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static inline void bench_open(bench *b, const char *threads, uint32_t count, uint32_t steps)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    void *place = NULL;
    *b = (bench){.count = count, .steps = steps};
    setenv("HAL_CPU_THREADS", threads, 1);
    assert_int_equal(plugin_open(plugin, 0, &b->device), HAL_OK);
    unsetenv("HAL_CPU_THREADS");
    b->kernel = kernel_make(b->device, steps);
    assert_int_equal(plugin->queue_create(b->device, &b->queue), HAL_OK);
    assert_int_equal(plugin->memory_allocate(b->device, HAL_MEMORY_DEVICE,
                                             b->count * sizeof(uint32_t), &b->memory),
                     HAL_OK);
    assert_int_equal(plugin->memory_map(b->device, b->memory, &place), HAL_OK);
    b->cells = place;
    memset(b->cells, 0, b->count * sizeof(uint32_t));
}

static inline void bench_close(bench *b)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    plugin->kernel_destroy(b->device, b->kernel);
    plugin->memory_free(b->device, b->memory);
    plugin->queue_destroy(b->device, b->queue);
    plugin->device_close(b->device);
}

static inline void bench_run(bench *b, uint32_t runs)
{
    const hal_binding binding = {.memory = b->memory,
                                 .length = b->count * sizeof(uint32_t),
                                 .access = HAL_ACCESS_READ_WRITE};
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 1,
                                 .grid = {b->count / GROUP, 1, 1},
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
static inline void bench_check(const bench *b)
{
    uint32_t wanted = 0;
    for (uint64_t step = 0; step < b->value * b->steps; step++) {
        wanted = wanted * 5 + 3;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        assert_int_equal(b->cells[i], wanted);
    }
}

static inline bool has_two_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 2;
}

/* Threads of the test that keep processors busy. */
typedef struct busy_threads {
    pthread_t threads[SPINNERS];
    _Atomic bool end;
} busy_threads;

static inline void *spin(void *context)
{
    busy_threads *busy = context;
    while (!atomic_load_explicit(&busy->end, memory_order_relaxed)) {
    }
    return NULL;
}

static inline void busy_begin(busy_threads *busy)
{
    atomic_init(&busy->end, false);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        assert_int_equal(pthread_create(&busy->threads[i], NULL, spin, busy), 0);
    }
}

static inline void busy_end(busy_threads *busy)
{
    atomic_store(&busy->end, true);
    for (uint32_t i = 0; i < SPINNERS; i++) {
        pthread_join(busy->threads[i], NULL);
    }
}

#endif

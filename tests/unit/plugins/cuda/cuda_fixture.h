/* The cuda plugin over a driver without a GPU (cuda_mock.h), for the tests of its parts: a device
 * and a queue for each test, kernels, memory and batches. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_CUDA_FIXTURE_H
#define TESTS_UNIT_PLUGINS_CUDA_CUDA_FIXTURE_H

#include "../plugin_host.h"
#include <cuda/kernel.h>
#include <cuda/memory.h>

#include "cuda_mock.h"

enum { BYTES = 4096 };

static cuda_mock *mock;
static const hal_plugin_entries *plugin;
static hal_plugin_device *device;
static hal_plugin_queue *queue;
static uint64_t value; /* of the queue's last batch */

static inline void does(hal_status status)
{
    if (status != HAL_OK) {
        fail_msg("%s: %s", hal_status_name(status), message);
    }
    assert_int_equal(mock->contexts, 0);
}

static inline void fails(hal_status status, hal_status expected, const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
    assert_int_equal(mock->contexts, 0);
}

static inline void open_device(void)
{
    does(plugin_open(plugin, 0, &device));
    does(plugin->queue_create(device, &queue));
    value = 0;
}

static inline void close_device(void)
{
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    assert_int_equal(mock->contexts, 0);
    assert_int_equal(mock->live_objects, 0);
    assert_int_equal(mock->live_modules, 0);
    assert_int_equal(mock->stale_functions, 0);
}

/* The mock has the name of the driver, so the plugin's own search finds it. Promise 24: neither
 * counting devices nor opening one makes a context on another. */
static inline int load_mock(void)
{
    void *library = dlopen(CUDA_MOCK_PATH, RTLD_NOW | RTLD_GLOBAL);
    mock = !library ? NULL : dlsym(library, CUDA_MOCK_SYMBOL);
    if (!mock) {
        return -1;
    }
    uint32_t count = 0;
    mock->devices = 2;
    does(plugin_list(plugin, NULL, 0, &count));
    for (int i = 0; i < 2; i++) { /* afterwards the objects of the process exist */
        assert_int_equal(mock->retained, i);
        does(plugin_open(plugin, (uint32_t)i, &device));
        does(plugin->queue_create(device, &queue));
        plugin->queue_destroy(device, queue);
        plugin->device_close(device);
    }
    return 0;
}

static inline int begin(void **state)
{
    if (!mock && load_mock() != 0) {
        return -1;
    }
    memset(mock, 0, sizeof *mock);
    mock->devices = 1;
    mock->memory_limit = UINT64_C(1) << 30;
    unsetenv("HAL_CUDA_POINTS");
    unsetenv("HAL_CUDA_CHAIN");
    open_device();
    return 0;
}

/* With kernels that start early in chains of 50 dispatches or more. */
static inline int begin_early(void **state)
{
    setenv("HAL_CUDA_EARLY", "50", 1);
    const int result = begin(state);
    unsetenv("HAL_CUDA_EARLY");
    return result;
}

static inline int end(void **state)
{
    close_device();
    return 0;
}

/* ---- Kernels and batches ---- */

/* out[i] = n + number, in groups of 64. */
static inline hal_plugin_kernel *kernel_of(int number)
{
    char text[512];
    snprintf(text, sizeof text,
             "kernel add\ngroup 64 1 1\nbinding out u32 write\nscalar n u32\n"
             "%%i = local_id u32 x\n%%n = scalar u32 n\n%%c = constant u32 %d\n"
             "%%s = add u32 %%n, %%c\nstore out[%%i], %%s\n",
             number);
    hal_ir_kernel *ir = ir_parse(text);
    hal_plugin_kernel *kernel = NULL;
    does(plugin->kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

static inline hal_plugin_memory *memory_of(uint32_t kind, uint64_t bytes)
{
    hal_plugin_memory *memory = NULL;
    does(plugin->memory_allocate(device, kind, bytes, &memory));
    return memory;
}

static inline void *pointer_of(hal_plugin_memory *memory)
{
    void *pointer = NULL;
    does(plugin->memory_map(device, memory, &pointer));
    return pointer;
}

static inline void submit(const hal_command *commands, uint32_t count, const hal_binding *bindings,
                          uint32_t binding_count, const uint8_t *scalars, uint32_t scalar_bytes)
{
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = count,
                             .binding_count = binding_count,
                             .scalar_bytes = scalar_bytes,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = scalars};
    does(plugin->submit(queue, &batch, NULL, 0, ++value));
}

/* `count` dispatches, number i with the scalar first + i and a grid of i + 1 groups. */
static inline void dispatch_many(hal_plugin_kernel *kernel, hal_plugin_memory *memory,
                                 uint32_t count, uint32_t first)
{
    hal_command *commands = calloc(count, sizeof *commands);
    uint64_t *scalars = calloc(count, sizeof *scalars);
    const hal_binding binding = {.memory = memory, .length = BYTES, .access = HAL_ACCESS_WRITE};
    for (uint32_t i = 0; i < count; i++) {
        scalars[i] = first + i;
        commands[i] = (hal_command){.kind = HAL_COMMAND_DISPATCH,
                                    .binding_count = 1,
                                    .scalar_bytes = 4,
                                    .scalar_first = 8 * i,
                                    .grid = {i + 1, 1, 1},
                                    .kernel = kernel};
    }
    const uint32_t before = mock->launch_count;
    submit(commands, count, &binding, 1, (const uint8_t *)scalars, 8 * count);
    assert_int_equal(mock->launch_count, before + count);
    for (uint32_t i = 0; i < count; i++) {
        const cuda_mock_launch *launch = &mock->launches[before + i];
        uint64_t address = 0;
        uint32_t scalar = 0;
        memcpy(&address, launch->block, 8);
        memcpy(&scalar, launch->block + 8, 4);
        assert_int_equal(launch->bytes, 12);
        assert_int_equal(launch->grid[0], i + 1);
        assert_int_equal(launch->group[0], 64);
        assert_int_equal(scalar, first + i);
        assert_int_not_equal(address, 0);
    }
    free(commands);
    free(scalars);
}

/* Of the group of tests. */
static inline int load_plugin(void **state)
{
    plugin = plugin_load(CUDA_PLUGIN_PATH);
    return !plugin;
}

#endif

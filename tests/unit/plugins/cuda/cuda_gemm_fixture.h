/* Native matrix products of the cuda plugin over a driver without a GPU (cuda_mock.h), for the
 * tests of them: a device for each test, descriptions, kernels and launches. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_CUDA_GEMM_FIXTURE_H
#define TESTS_UNIT_PLUGINS_CUDA_CUDA_GEMM_FIXTURE_H

#include "../plugin_host.h"
#include <cuda/gemm/tile/key.h>

#include "cuda_mock.h"
#include "fragment_sum.h"

static cuda_mock *mock;
static const hal_plugin_entries *plugin;
static hal_plugin_device *device;

static inline int load_plugin(void)
{
    void *driver = dlopen(CUDA_MOCK_PATH, RTLD_NOW | RTLD_GLOBAL);
    plugin = plugin_load(CUDA_PLUGIN_PATH);
    mock = driver ? dlsym(driver, CUDA_MOCK_SYMBOL) : NULL;
    return !plugin || !mock ? -1 : 0;
}

static inline int begin(void **state)
{
    memset(mock, 0, sizeof *mock);
    mock->devices = 1;
    mock->memory_limit = UINT64_C(1) << 30;
    return plugin_open(plugin, 0, &device) == HAL_OK ? 0 : -1;
}

/* Modules live until the device is closed. */
static inline int end(void **state)
{
    plugin->device_close(device);
    return mock->contexts == 0 && mock->live_modules == 0 ? 0 : -1;
}

/* Opens the device again with a tile for all products. */
static inline void reopen(const char *tile)
{
    plugin->device_close(device);
    setenv("HAL_CUDA_GEMM", tile, 1);
    const hal_status status = plugin_open(plugin, 0, &device);
    unsetenv("HAL_CUDA_GEMM");
    assert_int_equal(status, HAL_OK);
}

/* All matrices of one type, stored by rows. */
static inline hal_gemm_description gemm_product(hal_type type, uint8_t precision, int64_t m,
                                                int64_t n, int64_t k)
{
    return (hal_gemm_description){.size = sizeof(hal_gemm_description),
                                  .type_a = type,
                                  .type_b = type,
                                  .type_c = type,
                                  .beta_is_zero = 1,
                                  .precision = precision,
                                  .batch = 1,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .lda = k,
                                  .ldb = n,
                                  .ldc = n};
}

/* The kernel of a product, and the bytes of its workspace. */
static inline hal_plugin_kernel *taken_with(const hal_gemm_description *description,
                                            uint64_t *workspace)
{
    hal_plugin_kernel *kernel = NULL;
    if (plugin->gemm(device, description, &kernel, workspace) != HAL_OK) {
        fail_msg("%s", message);
    }
    uint64_t told = UINT64_MAX; /* by the entry that creates nothing */
    assert_int_equal(plugin->gemm_workspace(device, description, &told), HAL_OK);
    assert_int_equal(told, *workspace);
    return kernel;
}

static inline void declined(const hal_gemm_description *description, const char *words)
{
    hal_plugin_kernel *kernel = NULL;
    uint64_t workspace = 0;
    assert_int_equal(plugin->gemm(device, description, &kernel, &workspace), HAL_ERROR_UNSUPPORTED);
    assert_null(kernel);
    if (!strstr(message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
    assert_int_equal(plugin->gemm_workspace(device, description, &workspace),
                     HAL_ERROR_UNSUPPORTED);
}

static inline hal_plugin_memory *memory_of(uint64_t bytes)
{
    hal_plugin_memory *memory = NULL;
    assert_int_equal(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, bytes, &memory), HAL_OK);
    return memory;
}

/* Submits one dispatch of a product with `inputs` further inputs. A, B, C and those are 16 bytes
 * apart in one memory, from byte 16 on, the workspace at byte 1024. Returns the launch. */
static inline const cuda_mock_launch *launched_on(hal_plugin_queue *queue,
                                                  hal_plugin_kernel *kernel,
                                                  hal_plugin_memory *memory, uint32_t inputs,
                                                  const double scalars[2])
{
    hal_binding bindings[4 + HAL_GEMM_MAX_INPUTS];
    for (uint32_t i = 0; i < 4 + inputs; i++) {
        const uint64_t place = i < 3 ? 1 + i : i;
        bindings[i] = i == 3 ? (hal_binding){.memory = memory, .offset = 1024, .length = 1024}
                             : (hal_binding){.memory = memory, .offset = 16 * place, .length = 64};
    }
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 4 + inputs,
                                 .scalar_bytes = 16,
                                 .grid = {1, 1, 1},
                                 .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 4 + inputs,
                             .scalar_bytes = 16,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars};
    const uint32_t before = mock->launch_count;
    if (plugin->submit(queue, &batch, NULL, 0, 1) != HAL_OK) {
        fail_msg("%s", message);
    }
    assert_int_equal(mock->launch_count, before + 1);
    return &mock->launches[before];
}

#endif

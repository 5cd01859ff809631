/* Strict F32 products of the cuda plugin over a driver without a GPU (cuda_mock.h): which products
 * are taken, and how tiles are shared. The text goes through ptxas, where it is installed. */
#include "../plugin_host.h"
#include <cuda/gemm_fma.h>
#include <unistd.h>

#include "cuda_mock.h"
#include "ptxas.h"

static cuda_mock *mock;
static const hal_plugin *plugin;
static hal_plugin_device *device;

static int begin(void **state)
{
    memset(mock, 0, sizeof *mock);
    mock->devices = 1;
    mock->memory_limit = UINT64_C(1) << 30;
    return plugin->device_open(0, &device) == HAL_OK ? 0 : -1;
}

static int end(void **state)
{
    plugin->device_close(device);
    return mock->contexts == 0 && mock->live_modules == 0 ? 0 : -1;
}

static hal_gemm_description product(int64_t m, int64_t n, int64_t k)
{
    return (hal_gemm_description){.size = sizeof(hal_gemm_description),
                                  .type_a = HAL_TYPE_F32,
                                  .type_b = HAL_TYPE_F32,
                                  .type_c = HAL_TYPE_F32,
                                  .beta_is_zero = 1,
                                  .precision = HAL_GEMM_STRICT,
                                  .batch = 1,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .lda = k,
                                  .ldb = n,
                                  .ldc = n};
}

static hal_plugin_kernel *taken(const hal_gemm_description *description, uint64_t *workspace)
{
    hal_plugin_kernel *kernel = NULL;
    if (plugin->gemm(device, description, &kernel, workspace) != HAL_OK) {
        fail_msg("%s", message);
    }
    return kernel;
}

static void declined(const hal_gemm_description *description, const char *words)
{
    hal_plugin_kernel *kernel = NULL;
    uint64_t workspace = 0;
    assert_int_equal(plugin->gemm(device, description, &kernel, &workspace), HAL_ERROR_UNSUPPORTED);
    assert_null(kernel);
    if (strstr(message, words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
}

static void test_declines(void **state)
{
    hal_gemm_description d = product(4096, 4096, 4096);
    uint64_t workspace = 0;
    d.type_a = d.type_b = d.type_c = HAL_TYPE_BF16;
    declined(&d, "types");
    d = product(4096, 4096, 4096);
    d.levels = 1;
    declined(&d, "levels");
    d = product(100, 127, 4096); /* every tile is larger */
    declined(&d, "64 x 128");
    d = product(480, 64, 952); /* too few multiply-adds */
    d.transpose_a = 1;
    d.lda = 480;
    declined(&d, "shape");
    d = product(4096, 4096, 4096);
    d.copied = 1; /* the portable kernel needs no copy */
    declined(&d, "shape");
    d.required = 1;
    plugin->kernel_destroy(device, taken(&d, &workspace));
    d.candidate = CUDA_FMA_TILES;
    plugin->kernel_destroy(device, taken(&d, &workspace));
    d.candidate++;
    declined(&d, "candidate");
}

/* Parameters of a launch, and the flags of its queue, which are 0. */
static cuda_gemm_block launched(hal_plugin_kernel *kernel, uint32_t *groups)
{
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = NULL;
    cuda_gemm_block block;
    assert_int_equal(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, 4096, &memory), HAL_OK);
    hal_binding bindings[4] = {{.memory = memory, .offset = 16, .length = 64},
                               {.memory = memory, .offset = 32, .length = 64},
                               {.memory = memory, .offset = 48, .length = 64},
                               {.memory = memory, .offset = 1024, .length = 1024}};
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 4,
                                 .scalar_bytes = 16,
                                 .grid = {1, 1, 1},
                                 .kernel = kernel};
    const double scalars[2] = {2.5, 0.5};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 4,
                             .scalar_bytes = 16,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars};
    const uint32_t before = mock->launch_count;
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    if (plugin->submit(queue, &batch, NULL, 0, 1) != HAL_OK) {
        fail_msg("%s", message);
    }
    assert_int_equal(mock->launch_count, before + 1);
    const cuda_mock_launch *launch = &mock->launches[before];
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    *groups = launch->grid[0];
    assert_int_equal(launch->group[0], CUDA_FMA_THREADS);
    assert_true(launch->shared_bytes <= 232448);
    const uint32_t *flags = (const uint32_t *)(uintptr_t)block.fma.flags;
    for (uint32_t i = 0; i < CUDA_FMA_MAX_GROUPS; i++) {
        assert_int_equal(flags[i], 0);
    }
    assert_int_equal(block.fma.b - block.fma.a, 16);
    assert_int_equal(block.c - block.fma.a, 32);
    assert_int_equal(block.fma.partials - block.fma.a, 1008);
    assert_true(block.alpha == 2.5F && block.beta == 0.5F && block.fma.one == 1.0F);
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    return block;
}

/* HAL_CUDA_GEMM names a tile, which products take that the portable kernel would multiply
 * sooner. */
static void test_forced_tiles(void **state)
{
    static const uint32_t tiles[][2] = {{128, 256}, {256, 128}, {64, 128}, {128, 64}};
    const hal_gemm_description d = product(256, 256, 16);
    declined(&d, "shape");
    for (int i = 0; i < CUDA_FMA_TILES; i++) {
        const char name[] = {'s', (char)('1' + i), 0};
        uint64_t workspace = 0;
        uint32_t groups = 0;
        plugin->device_close(device);
        setenv("HAL_CUDA_GEMM", name, 1);
        const hal_status status = plugin->device_open(0, &device);
        unsetenv("HAL_CUDA_GEMM");
        assert_int_equal(status, HAL_OK);
        hal_plugin_kernel *kernel = taken(&d, &workspace);
        const cuda_gemm_block block = launched(kernel, &groups);
        assert_int_equal(block.tiles_m, 256 / tiles[i][0]);
        assert_int_equal(block.tiles_n, 256 / tiles[i][1]);
        plugin->kernel_destroy(device, kernel);
    }
}

/* All stages of all tiles belong to one group each, and groups have work of equal length. */
static void check_shares(const hal_gemm_description *d)
{
    uint64_t workspace = 0;
    uint32_t groups = 0;
    hal_plugin_kernel *kernel = taken(d, &workspace);
    const cuda_gemm_block block = launched(kernel, &groups);
    const uint64_t stages = (uint64_t)block.tiles * block.steps,
                   whole = (uint64_t)block.fma.rounds * groups * block.steps,
                   shared = (uint64_t)block.fma.share * groups + block.fma.longer;
    assert_true(groups <= 132 && block.fma.longer < groups);
    assert_int_equal(whole + shared, stages);
    assert_int_equal(workspace > 0, shared > 0);
    if (shared > 0) { /* sums of a tile, of 64 x 128 or more, for each group */
        assert_true(workspace % groups == 0 && workspace / groups >= 64 * 128 * 4);
    }
    assert_int_equal(block.m, d->m);
    assert_int_equal(block.fma.k, d->k);
    assert_true(block.fma.lda == d->lda && block.fma.ldb == d->ldb && block.ldc == d->ldc);
    plugin->kernel_destroy(device, kernel);
}

static void test_shares(void **state)
{
    static const int64_t shapes[][3] = {{4096, 4096, 4096}, {2048, 2048, 2048}, {4096, 64, 4096},
                                        {64, 4096, 4096},   {1009, 1061, 3780}, {8448, 4096, 64},
                                        {129, 257, 70000},  {64, 128, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        hal_gemm_description d = product(shapes[i][0], shapes[i][1], shapes[i][2]);
        d.required = 1;
        check_shares(&d);
        d.batch = 3;
        d.stride_a = d.m * d.k;
        d.stride_c = d.m * d.n;
        check_shares(&d);
    }
}

/* ---- The text ---- */

static hal_ir_kernel *fragment_bias(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("e", &b), HAL_OK);
    const hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32);
    hal_ir_output(b, 0, hal_ir_add(b, x, bias));
    if (hal_ir_builder_finish(b, &ir) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(b);
    return ir;
}

static void test_text(void **state)
{
    hal_ir_kernel *bias = fragment_bias();
    for (uint32_t i = 0; i < CUDA_FMA_TILES * 4; i++) {
        cuda_gemm_key key = {.type = HAL_TYPE_F32,
                             .type_c = HAL_TYPE_F32,
                             .transpose_a = i / 4 % 2 != 0,
                             .transpose_b = i / 8 != 0,
                             .split = 1,
                             .tile = (uint8_t)(i % 4 + 1),
                             .reads_c = i % 3 == 0,
                             .ragged = i % 3 == 1,
                             .width_a = i % 3 != 1 ? 4 : 1,
                             .width_b = i % 3 != 1 ? 4 : 1,
                             .width = i % 3 == 1 ? 1 : 4};
        if (i % 3 == 2) {
            key.input_count = 1;
            key.inputs[0] = HAL_TYPE_F32;
            key.epilogue = bias;
        }
        kit_text text = {.host = plugin_host()};
        assert_true(cuda_fma_is_supported(&key) && cuda_fma_shared_bytes(&key) <= 232448);
        if (cuda_fma_write(&key, &text) != HAL_OK) {
            fail_msg("%s", message);
        }
        assert_true(PTXAS[0] == 0 ||
                    ptxas_takes(text.data, "-arch=sm_90 --warn-on-spills -Werror", ""));
        kit_text_release(&text);
    }
    hal_ir_kernel_destroy(bias);
}

int main(void)
{
    void *driver = dlopen(CUDA_MOCK_PATH, RTLD_NOW | RTLD_GLOBAL);
    plugin = plugin_load(CUDA_PLUGIN_PATH);
    mock = driver != NULL ? dlsym(driver, CUDA_MOCK_SYMBOL) : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_declines, begin, end),
        cmocka_unit_test_setup_teardown(test_forced_tiles, begin, end),
        cmocka_unit_test_setup_teardown(test_shares, begin, end),
        cmocka_unit_test(test_text),
    };
    return plugin == NULL || mock == NULL ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

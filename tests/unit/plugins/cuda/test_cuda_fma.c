/* Strict F32 products of the cuda plugin over a driver without a GPU (cuda_mock.h): which products
 * are taken, and how tiles are shared. The text goes through ptxas, where it is installed. */
#include "cuda_gemm_fixture.h"

#include <cuda/gemm/fma.h>
#include <unistd.h>

#include "ptxas.h"

static hal_gemm_description product(int64_t m, int64_t n, int64_t k)
{
    return gemm_product(HAL_TYPE_F32, HAL_GEMM_STRICT, m, n, k);
}

static void test_declines(void **state)
{
    hal_gemm_description d = product(4096, 4096, 4096);
    d.type_a = d.type_b = d.type_c = HAL_TYPE_BF16;
    declined(&d, "types");
    d = product(4096, 4096, 4096);
    d.levels = 1;
    declined(&d, "levels");
    d = product(256, 256, 0);
    declined(&d, "k: expected 1");
    d = product(100, 127, 4096); /* every tile is larger */
    declined(&d, "64 x 128");
    double ns = 0;
    d = product(480, 128, 952);
    assert_int_equal(plugin->gemm_estimate(device, &d, 0, &ns), HAL_OK);
    assert_true(ns > 1000 && ns < 1e6);
}

/* Other classes of F32 have the strict kernel where the units have none, or take longer. */
static void test_other_classes(void **state)
{
    hal_gemm_description d = product(1024, 1024, 32);
    uint64_t workspace = 0;
    d.precision = HAL_GEMM_ACCURATE;
    plugin->kernel_destroy(device, taken_with(&d, &workspace));
    assert_non_null(strstr(logged, "strict"));
    d = product(1023, 1021, 33); /* the units would not take copies either */
    d.precision = HAL_GEMM_ACCURATE;
    plugin->kernel_destroy(device, taken_with(&d, &workspace));
    assert_non_null(strstr(logged, "strict"));
    d = product(1024, 1024, 1024);
    d.precision = HAL_GEMM_FAST;
    plugin->kernel_destroy(device, taken_with(&d, &workspace));
    assert_null(strstr(logged, "strict"));
}

/* Parameters of a launch, and the flags of its queue, which are 0. */
static cuda_gemm_block launched(hal_plugin_kernel *kernel, uint32_t *groups)
{
    const double scalars[2] = {2.5, 0.5};
    hal_plugin_memory *memory = memory_of(4096);
    hal_plugin_queue *queue = NULL;
    cuda_gemm_block block;
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    const cuda_mock_launch *launch = launched_on(queue, kernel, memory, 0, scalars);
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
    hal_gemm_description d = product(256, 256, 16);
    for (int i = 0; i < CUDA_FMA_TILES; i++) {
        const char name[] = {'s', (char)('1' + i), 0};
        uint64_t workspace = 0;
        uint32_t groups = 0;
        reopen(name);
        hal_plugin_kernel *kernel = taken_with(&d, &workspace);
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
    hal_plugin_kernel *kernel = taken_with(d, &workspace);
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
        check_shares(&d);
        d.batch = 3;
        d.stride_a = d.m * d.k;
        d.stride_c = d.m * d.n;
        check_shares(&d);
    }
}

/* Neither C nor an epilogue changes the shares; an epilogue that the kernel does not take, or a
 * mask as its input, is declined. */
static void test_one_order(void **state)
{
    hal_gemm_description d = product(2048, 2048, 2048);
    uint64_t workspace = 0;
    char expected[512];
    hal_ir_kernel *bias = fragment_sum(HAL_TYPE_F32, 1, 0),
                  *mask = fragment_sum(HAL_TYPE_BOOL, 1, 0),
                  *long_one = fragment_sum(HAL_TYPE_F32, 1, 800);
    plugin->kernel_destroy(device, taken_with(&d, &workspace));
    memcpy(expected, logged, sizeof expected);
    d.beta_is_zero = 0;
    d.epilogue = bias;
    d.input_count = 1;
    d.inputs[0] = (hal_gemm_input){.type = HAL_TYPE_F32, .column_stride = 1};
    plugin->kernel_destroy(device, taken_with(&d, &workspace));
    assert_string_equal(logged, expected);
    d.epilogue = long_one;
    declined(&d, "epilogue");
    d.epilogue = mask;
    d.inputs[0].type = HAL_TYPE_BOOL;
    declined(&d, "epilogue");
    hal_ir_kernel_destroy(bias);
    hal_ir_kernel_destroy(mask);
    hal_ir_kernel_destroy(long_one);
}

/* ---- The text ---- */

static void test_text(void **state)
{
    hal_ir_kernel *bias = fragment_sum(HAL_TYPE_F32, 1, 0);
    for (uint32_t i = 0; i < CUDA_FMA_TILES * 4; i++) {
        cuda_gemm_key key = {.type = HAL_TYPE_F32,
                             .type_c = HAL_TYPE_F32,
                             .transpose_a = i / 4 % 2 != 0,
                             .transpose_b = i / 8 != 0,
                             .split = 1,
                             .tile = (uint8_t)(i % 4 + 1),
                             .reads_c = i % 3 == 0,
                             .wait_seconds = i % 5 == 0 ? 10 : 0,
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
        assert_int_equal(strstr(text.data, "call.uni __assertfail") != NULL, key.wait_seconds > 0);
        /* Whether an access is within k takes one comparison. */
        assert_int_equal(strstr(text.data, "setp.gt.s32 %p, %x0, ") != NULL, key.ragged);
        assert_true(PTXAS[0] == 0 ||
                    ptxas_takes(text.data, "-arch=sm_90 --warn-on-spills -Werror", ""));
        kit_text_release(&text);
    }
    hal_ir_kernel_destroy(bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_declines, begin, end),
        cmocka_unit_test_setup_teardown(test_other_classes, begin, end),
        cmocka_unit_test_setup_teardown(test_forced_tiles, begin, end),
        cmocka_unit_test_setup_teardown(test_shares, begin, end),
        cmocka_unit_test_setup_teardown(test_one_order, begin, end),
        cmocka_unit_test(test_text),
    };
    return load_plugin() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

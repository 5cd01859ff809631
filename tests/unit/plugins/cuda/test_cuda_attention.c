/* Native attention of the cuda plugin over a driver without a GPU (cuda_mock.h): what is taken,
 * tensor maps and parameter blocks. The text goes through ptxas, where it is installed, which must
 * neither spill registers nor wait for each product by itself. */
#include "cuda_gemm_fixture.h"

#include <cuda/attention/text.h>
#include <math.h>

#include "ptxas.h"

/* Two groups of three heads, which share k and v; rows of all heads follow each other. */
static hal_attention_description description(int64_t m, int64_t n, int64_t head)
{
    const int64_t row = 3 * head;
    return (hal_attention_description){.size = sizeof(hal_attention_description),
                                       .type = HAL_TYPE_BF16,
                                       .precision = HAL_GEMM_FAST,
                                       .batch = 3,
                                       .outer = 2,
                                       .m = m,
                                       .n = n,
                                       .d = head,
                                       .e = head,
                                       .q = {row, head, m * row},
                                       .k = {head, 0, n * head},
                                       .v = {head, 0, n * head},
                                       .y = {row, head, m * row}};
}

static void declines(const hal_attention_description *d, const char *words)
{
    hal_plugin_kernel *kernel = NULL;
    assert_int_equal(plugin->attention(device, d, &kernel), HAL_ERROR_UNSUPPORTED);
    assert_null(kernel);
    if (!strstr(message, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, message);
    }
}

static void test_declines(void **state)
{
    hal_attention_description d = description(100, 200, 64);
    d.precision = HAL_GEMM_STRICT;
    declines(&d, "precision");
    d = description(100, 200, 64);
    d.type = HAL_TYPE_F32;
    declines(&d, "f16");
    d = description(100, 200, 264);
    declines(&d, "256");
    d = description(100, 200, 64);
    d.k.row = 68;
    declines(&d, "16 bytes");
    d = description(100, 200, 64);
    d.q.outer += 4;
    declines(&d, "16 bytes");
    d = description(100, 200, 64);
    d.q.batch = 0; /* only keys and values may be shared */
    declines(&d, "strides");
    d = description(100, 200, 64);
    d.k.row = 0;
    declines(&d, "strides");
    d = description(INT32_MAX, 1, 64);
    declines(&d, "2^30");
    d = description(1 << 30, 1, 64);
    d.batch = 1024;
    declines(&d, "2^31");
}

static const cuda_mock_launch *launch_of(hal_plugin_kernel *kernel, hal_plugin_memory *memory)
{
    hal_plugin_queue *queue = NULL;
    hal_binding bindings[4];
    const double scale = 0.125;
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    for (uint32_t i = 0; i < 4; i++) {
        bindings[i] = (hal_binding){.memory = memory, .offset = 16 * (1 + i), .length = 64};
    }
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = 4,
                                 .scalar_bytes = sizeof scale,
                                 .grid = {1, 1, 1},
                                 .kernel = kernel};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 4,
                             .scalar_bytes = sizeof scale,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)&scale};
    const uint32_t before = mock->launch_count;
    assert_int_equal(plugin->submit(queue, &batch, NULL, 0, 1), HAL_OK);
    assert_int_equal(mock->launch_count, before + 1);
    plugin->queue_destroy(device, queue);
    return &mock->launches[before];
}

static void test_launch(void **state)
{
    const hal_attention_description d = description(1000, 300, 80);
    hal_plugin_kernel *kernel = NULL;
    hal_plugin_memory *memory = memory_of(4096);
    assert_int_equal(plugin->attention(device, &d, &kernel), HAL_OK);
    const cuda_mock_launch *launch = launch_of(kernel, memory);
    cuda_attention_block block;
    cuda_mock_map maps[3];
    memcpy(&block, launch->block, sizeof block);
    for (uint32_t i = 0; i < 3; i++) {
        memcpy(&maps[i], block.maps[i], sizeof maps[i]);
        assert_int_equal((char *)maps[i].address - (char *)maps[0].address, 16 * i);
    }
    assert_int_equal(block.y, (uintptr_t)maps[0].address + 48);
    assert_int_equal(launch->group[0], 384);
    assert_int_equal(launch->grid[0], 48);
    assert_int_equal(block.row_tiles, 8);
    assert_int_equal(block.tiles, 48);
    assert_int_equal(block.batches, 3);
    assert_int_equal(block.matrices, 6);
    assert_int_equal(block.section, 1);
    assert_int_equal(block.m, 1000);
    assert_int_equal(block.n, 300);
    assert_int_equal(block.e, 80);
    assert_int_equal(block.shift, -700);
    assert_int_equal(block.y_row, 480);
    assert_int_equal(block.y_batch, 160);
    assert_int_equal(block.y_outer, 480000);
    assert_int_equal(block.k_batch, 0);
    assert_int_equal(block.k_outer, 1);
    assert_int_equal(block.v_batch, 0);
    assert_int_equal(block.v_outer, 1);
    assert_true(fabs(block.scale - 0.125 / log(2)) < 1e-8);
    const uint64_t extents[3][4] = {{80, 1000, 3, 2}, {80, 300, 1, 2}, {80, 300, 1, 2}};
    for (uint32_t i = 0; i < 3; i++) {
        assert_memory_equal(maps[i].extents, extents[i], sizeof extents[i]);
        assert_int_equal(maps[i].box[0], 64);
        assert_int_equal(maps[i].box[1], 128);
    }
    assert_int_equal(maps[0].strides[0], 480);
    assert_int_equal(maps[0].strides[1], 160);
    assert_int_equal(maps[0].strides[2], 480000);
    assert_int_equal(maps[1].strides[2], 48000);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
}

/* All heads fit, sizes share modules, and causal tiles have a group each. */
static void test_shapes(void **state)
{
    hal_plugin_memory *memory = memory_of(4096);
    for (uint32_t i = 0; i < 32 * 4; i++) {
        static const int64_t rows[4] = {1, 500, 4096, 100000};
        hal_attention_description d = description(rows[i % 4], 77, 8 * (i / 4 + 1));
        hal_plugin_kernel *kernel = NULL;
        d.causal = i % 3 == 0;
        if (plugin->attention(device, &d, &kernel) != HAL_OK) {
            fail_msg("%s", message);
        }
        const cuda_mock_launch *launch = launch_of(kernel, memory);
        cuda_attention_block block;
        memcpy(&block, launch->block, sizeof block);
        assert_true(launch->shared_bytes <= 232448);
        assert_true(launch->group[0] >= 256 && launch->group[0] <= 512);
        assert_true(launch->grid[0] % block.tiles == 0 || launch->grid[0] == 132 ||
                    launch->grid[0] == 264);
        plugin->kernel_destroy(device, kernel);
    }
    /* one query: up to eight groups share the keys, as many as there are tiles and compute units */
    static const int64_t lengths[4][3] = {{1, 100, 1}, {64, 300, 3}, {5, 100000, 8}, {65, 9000, 1}};
    for (uint32_t i = 0; i < 8; i++) {
        const int64_t *lines = lengths[i % 4];
        hal_attention_description d = description(lines[0], lines[1], 64);
        hal_plugin_kernel *kernel = NULL;
        d.outer = i < 4 ? 2 : 40; /* of 3 matrices */
        const uint32_t matrices = 3 * d.outer;
        assert_int_equal(plugin->attention(device, &d, &kernel), HAL_OK);
        const cuda_mock_launch *launch = launch_of(kernel, memory);
        const uint32_t parts = i < 4 ? (uint32_t)lines[2] : 1;
        assert_int_equal(launch->grid[0], matrices * (lines[0] > 64 ? 2 : 1) * parts);
        plugin->kernel_destroy(device, kernel);
    }
    const uint32_t modules = mock->live_modules;
    hal_attention_description d = description(500, 4567, 128);
    hal_plugin_kernel *kernel = NULL;
    assert_int_equal(plugin->attention(device, &d, &kernel), HAL_OK);
    assert_int_equal(mock->live_modules, modules);
    assert_int_equal(mock->linked, 0); /* the linker ignores setmaxnreg */
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* Products of one tile are in flight at once: the assembler does not say that it separates them. */
static void write_and_assemble(const cuda_attention_key *key)
{
    kit_text text = {.host = plugin_host()};
    char expected[64];
    if (cuda_attention_write(key, &text) != HAL_OK) {
        fail_msg("%s", message);
    }
    snprintf(expected, sizeof expected, "m64n%uk16", key->keys);
    assert_int_equal(count_of(text.data, expected),
                     2 * (key->d / 16) + (key->keys == key->e ? 2 * (key->keys / 16) : 0));
    assert_int_equal(count_of(text.data, "selp.f32 %s"), key->keys);
    assert_int_equal(count_of(text.data, "and.b32 %x0, %x0, 0x3ffff;"), 5); /* descriptors */
    if (PTXAS[0] != 0) {
        assert_true(ptxas_takes(text.data, "-arch=sm_90a --warn-on-spills -Werror",
                                key->wait_seconds > 0 ? "2>/dev/null" : ""));
        assert_true(key->wait_seconds > 0 ||
                    !ptxas_takes(text.data, "-v -arch=sm_90a", "2>&1 | grep -q serialized"));
    }
    kit_text_release(&text);
}

static void test_text(void **state)
{
    static const cuda_attention_key keys[] = {
        {.type = HAL_TYPE_F16, .split = 1, .warpgroups = 1, .d = 16, .e = 16, .keys = 128},
        {.type = HAL_TYPE_BF16,
         .split = 1,
         .warpgroups = 1,
         .causal = 1,
         .d = 64,
         .e = 64,
         .keys = 128},
        {.type = HAL_TYPE_F16, .split = 1, .warpgroups = 3, .d = 64, .e = 64, .keys = 128},
        {.type = HAL_TYPE_BF16, .split = 1, .warpgroups = 2, .d = 80, .e = 48, .keys = 128},
        {.type = HAL_TYPE_BF16,
         .split = 1,
         .warpgroups = 2,
         .causal = 1,

         .d = 128,
         .e = 128,
         .keys = 128},
        {.type = HAL_TYPE_F16, .split = 1, .warpgroups = 2, .d = 176, .e = 192, .keys = 96},
        {.type = HAL_TYPE_F16, .split = 8, .warpgroups = 1, .d = 64, .e = 64, .keys = 128},
        {.type = HAL_TYPE_BF16, .split = 3, .warpgroups = 2, .d = 16, .e = 256, .keys = 80},
        {.type = HAL_TYPE_BF16, .split = 1, .warpgroups = 2, .d = 256, .e = 256, .keys = 80},
        {.type = HAL_TYPE_BF16,
         .split = 1,
         .warpgroups = 2,
         .wait_seconds = 10,
         .d = 128,
         .e = 128,
         .keys = 128},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_declines, begin, end),
        cmocka_unit_test_setup_teardown(test_launch, begin, end),
        cmocka_unit_test_setup_teardown(test_shapes, begin, end),
        cmocka_unit_test(test_text),
    };
    return load_plugin() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

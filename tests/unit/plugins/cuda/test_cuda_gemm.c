/* Native matrix products of the cuda plugin over a driver without a GPU (cuda_mock.h): which
 * products are taken, tensor maps, parameter blocks, and modules that shapes share. */
#include "cuda_gemm_fixture.h"

static hal_gemm_description product(int64_t m, int64_t n, int64_t k)
{
    return gemm_product(HAL_TYPE_BF16, HAL_GEMM_FAST, m, n, k);
}

static hal_plugin_kernel *taken(const hal_gemm_description *description)
{
    uint64_t workspace = 1;
    hal_plugin_kernel *kernel = taken_with(description, &workspace);
    assert_int_equal(workspace, 0);
    return kernel;
}

static void test_declines(void **state)
{
    hal_gemm_description d = product(1024, 1024, 1024);
    d.precision = HAL_GEMM_STRICT;
    declined(&d, "f32 for strict");
    d = product(1024, 1024, 1024);
    d.type_a = d.type_b = HAL_TYPE_F64;
    declined(&d, "types");
    d = product(63, 1024, 32); /* too few rows for a strict tile */
    d.type_a = d.type_b = d.type_c = HAL_TYPE_F32;
    d.precision = HAL_GEMM_ACCURATE;
    declined(&d, "at least 64");
    d = product(1024, 1024, 1024);
    d.type_b = HAL_TYPE_F16;
    declined(&d, "types");
    d = product(63, 1022, 1024); /* rows of F32 of 4088 bytes */
    d.type_a = d.type_b = d.type_c = HAL_TYPE_F32;
    declined(&d, "strides");
    d = product(63, 1024, 1024);
    d.type_a = d.type_b = d.type_c = HAL_TYPE_F32;
    d.batch = 2;
    d.stride_a = 63 * 1024 + 2;
    declined(&d, "strides");
    d = product(1024, 1024, 1024);
    d.levels = 1;
    declined(&d, "levels");
    d = product(64, 64, 128);
    double ns = 0;
    assert_int_equal(plugin->gemm_estimate(device, &d, 1, &ns), HAL_ERROR_UNSUPPORTED);
    assert_int_equal(plugin->gemm_estimate(device, &d, 0, &ns), HAL_OK);
    assert_true(ns > 1);
    plugin->kernel_destroy(device, taken(&d));
}

/* Odd lines are read directly, which takes longer than whole ones. */
static void test_lines_count(void **state)
{
    hal_gemm_description d = product(8191, 8190, 4095);
    double ns[2];
    assert_int_equal(plugin->gemm_estimate(device, &d, 0, &ns[0]), HAL_OK);
    d.lda = 4096;
    d.ldb = 8192;
    assert_int_equal(plugin->gemm_estimate(device, &d, 0, &ns[1]), HAL_OK);
    assert_true(ns[1] < ns[0] / 1.5);
    reopen("128x1"); /* a tile for all products is taken whatever its time is */
    assert_int_equal(plugin->gemm_estimate(device, &d, 1, &ns[0]), HAL_OK);
    assert_true(ns[0] == 0);
}

static const cuda_mock_launch *launched(hal_plugin_kernel *kernel, hal_plugin_memory *memory,
                                        const double scalars[2])
{
    hal_plugin_queue *queue = NULL;
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    const cuda_mock_launch *launch = launched_on(queue, kernel, memory, 0, scalars);
    plugin->queue_destroy(device, queue);
    return launch;
}

static void test_launch(void **state)
{
    hal_gemm_description d = product(1000, 1536, 520);
    reopen("192x1");
    d.batch = 3;
    d.stride_a = 1000 * 520; /* B is shared */
    d.stride_c = 1000 * 1536;
    hal_plugin_kernel *kernel = taken(&d);
    const double scalars[2] = {2.5, 0.0};
    hal_plugin_memory *memory = memory_of(4096);
    const cuda_mock_launch *launch = launched(kernel, memory, scalars);
    cuda_gemm_block block;
    cuda_mock_map maps[3];
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    for (int i = 0; i < 3; i++) {
        memcpy(&maps[i], block.maps[i], sizeof maps[i]);
    }
    const uint32_t columns = maps[1].box[0] * (1536 / maps[1].box[0] / block.tiles_n);
    assert_int_equal(launch->group[0], CUDA_GEMM_THREADS);
    assert_int_equal(launch->grid[0], block.tiles < 132 ? block.tiles : 132);
    assert_true(launch->shared_bytes > 100000 && launch->shared_bytes <= 232448);
    assert_int_equal(block.m, 1000);
    assert_int_equal(block.n, 1536);
    assert_int_equal(block.steps, 9); /* of 64: the last has 8 */
    assert_int_equal(block.tiles_m, 8);
    assert_int_equal(block.tiles, 8 * block.tiles_n * 3);
    assert_true(columns % 64 == 0 && columns <= 256);
    assert_int_equal(block.batched_a, 1);
    assert_int_equal(block.batched_b, 0);
    assert_true(block.alpha == 2.5F && block.beta == 0.0F);
    assert_int_equal((char *)maps[1].address - (char *)maps[0].address, 16);
    assert_int_equal((uintptr_t)maps[2].address, block.c);
    assert_int_equal((char *)maps[2].address - (char *)maps[0].address, 32);
    const uint64_t extents[3][3] = {{520, 1000, 3}, {1536, 520, 1}, {1536, 1000, 3}};
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(maps[i].extents, extents[i], sizeof extents[i]);
    }
    assert_int_equal(maps[0].strides[0], 1040);
    assert_int_equal(maps[0].strides[1], 1040000);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
}

/* C may have any lines, which its epilogue stores one by one, and a single line of A any length. */
static void test_odd_lines(void **state)
{
    hal_gemm_description d = product(1, 1021, 367);
    const double scalars[2] = {1.0, 0.0};
    d.ldb = 1024;
    hal_plugin_kernel *kernel = taken(&d);
    hal_plugin_memory *memory = memory_of(4096);
    const cuda_mock_launch *launch = launched(kernel, memory, scalars);
    cuda_gemm_block block;
    cuda_mock_map maps[2];
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    memcpy(maps, block.maps, sizeof maps[0]);
    memcpy(&maps[1], block.maps[1], sizeof maps[1]);
    const bool swapped = maps[0].extents[0] == 1021;
    const cuda_mock_map *a = &maps[swapped ? 1 : 0];
    assert_int_equal(a->extents[0], 367);
    assert_int_equal(a->extents[1], 1);
    assert_int_equal(a->strides[0], 368 * 2);
    plugin->kernel_destroy(device, kernel);
    d = product(1024, 1021, 1024);
    d.ldb = 1024;
    kernel = taken(&d);
    launch = launched(kernel, memory, scalars);
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    assert_int_equal(block.ldc, 1021);
    static const uint8_t unset[CUDA_GEMM_MAP_BYTES];
    assert_memory_equal(block.maps[2], unset, sizeof unset); /* no map describes C */
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
}

/* A and B whose lines no tensor map takes: small products read them without, large ones are faster
 * with copies. */
static void test_direct(void **state)
{
    hal_gemm_description d = product(1021, 1003, 63);
    const double scalars[2] = {1.0, 0.0};
    cuda_gemm_block block;
    cuda_gemm_source sources[2];
    d.transpose_b = 1;
    d.ldb = 63;
    reopen("64x1");
    hal_plugin_kernel *kernel = taken(&d);
    hal_plugin_memory *memory = memory_of(4096);
    memcpy(&block, launched(kernel, memory, scalars)->block, offsetof(cuda_gemm_block, inputs));
    memcpy(&sources[0], block.maps[0], sizeof sources[0]);
    memcpy(&sources[1], block.maps[1], sizeof sources[1]);
    assert_int_equal(sources[1].address - sources[0].address, 16);
    assert_int_equal(block.c - sources[0].address, 32);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sources[i].line, 126);
        assert_int_equal(sources[i].batch, 0);
        assert_int_equal(sources[i].k, 63);
    }
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
    d.batch = 2; /* of which the second A begins within a word */
    d.stride_a = 1021 * 63;
    plugin->kernel_destroy(device, taken(&d));
}

/* The transposed product: A of the kernel is B, and C keeps its layout. */
static void test_swapped(void **state)
{
    const hal_gemm_description d = product(48, 4096, 4096);
    const double scalars[2] = {1.0, 0.0};
    reopen("48x4t");
    hal_plugin_kernel *kernel = taken(&d);
    hal_plugin_memory *memory = memory_of(4096);
    const cuda_mock_launch *launch = launched(kernel, memory, scalars);
    cuda_gemm_block block;
    cuda_mock_map maps[2];
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    for (int i = 0; i < 2; i++) {
        memcpy(&maps[i], block.maps[i], sizeof maps[i]);
    }
    assert_int_equal(launch->grid[0], 30 * 4); /* as many clusters as there are at once */
    assert_int_equal(block.m, 4096);
    assert_int_equal(block.n, 48);
    assert_int_equal(block.tiles, 32);
    assert_int_equal((char *)maps[0].address - (char *)maps[1].address, 16);
    assert_int_equal(maps[0].extents[0], 4096);
    assert_int_equal(maps[0].box[0], 64); /* along n: boxes of 64 x 64 */
    assert_int_equal(maps[0].box[1], 64);
    assert_int_equal(maps[1].extents[1], 48);
    assert_int_equal(maps[1].box[1], 48);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
}

/* Pairs of groups: tiles are counted by pairs, and each group copies half of the tile that they
 * have in common. An odd last tile has a group with nothing to store. */
static void test_pairs(void **state)
{
    for (int i = 0; i < 2; i++) {
        hal_gemm_description d = product(4096 + 128, 4096 + 128, 4096);
        const double scalars[2] = {1.0, 0.0};
        cuda_gemm_block block;
        cuda_mock_map maps[2];
        d.transpose_b = 1;
        d.ldb = d.k;
        reopen(i == 0 ? "128x1a" : "128x1b");
        hal_plugin_kernel *kernel = taken(&d);
        hal_plugin_memory *memory = memory_of(4096);
        const cuda_mock_launch *launch = launched(kernel, memory, scalars);
        memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
        for (int j = 0; j < 2; j++) {
            memcpy(&maps[j], block.maps[j], sizeof maps[j]);
        }
        assert_int_equal(launch->grid[0], 60 * 2);
        assert_int_equal(block.tiles_m, i == 0 ? 33 : 17);
        assert_int_equal(block.tiles_n, i == 0 ? 17 : 33);
        assert_int_equal(block.tiles, 17 * 33);
        assert_int_equal(maps[0].box[1], i == 0 ? 64 : 128);
        assert_int_equal(maps[1].box[1], i == 0 ? 128 : 64);
        plugin->memory_free(device, memory);
        plugin->kernel_destroy(device, kernel);
    }
}

/* Warpgroups that take turns have tiles of 64 rows: of pairs that share A each group copies half of
 * them, of those that share B the pair has 128. */
static void test_turns(void **state)
{
    static const struct {
        const char *tile;
        uint32_t grid, tiles_m, tiles_n, box_a, box_b;
    } cases[] = {{"128x1p", 132, 33, 9, 64, 128},
                 {"128x1ap", 60 * 2, 33, 5, 32, 128},
                 {"128x1bp", 60 * 2, 17, 9, 64, 64},
                 {"64x1tp", 132, 18, 33, 64, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hal_gemm_description d = product(2048 + 64, 1024 + 128, 4096);
        const double scalars[2] = {1.0, 0.0};
        cuda_gemm_block block;
        cuda_mock_map maps[3];
        d.transpose_b = 1;
        d.ldb = d.k;
        reopen(cases[i].tile);
        hal_plugin_kernel *kernel = taken(&d);
        hal_plugin_memory *memory = memory_of(4096);
        const cuda_mock_launch *launch = launched(kernel, memory, scalars);
        memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
        for (int j = 0; j < 3; j++) {
            memcpy(&maps[j], block.maps[j], sizeof maps[j]);
        }
        assert_int_equal(launch->grid[0], cases[i].grid);
        assert_int_equal(block.tiles_m, cases[i].tiles_m);
        assert_int_equal(block.tiles_n, cases[i].tiles_n);
        assert_int_equal(block.tiles, cases[i].tiles_m * cases[i].tiles_n);
        assert_int_equal(maps[0].box[1], cases[i].box_a);
        assert_int_equal(maps[1].box[1], cases[i].box_b);
        assert_int_equal(maps[2].box[1], 64);
        plugin->memory_free(device, memory);
        plugin->kernel_destroy(device, kernel);
        d.precision = HAL_GEMM_ACCURATE;
        declined(&d, "strides");
        d.precision = HAL_GEMM_FAST;
        d.ldc = d.n + 1; /* no tensor map of C */
        declined(&d, "strides");
    }
    const hal_gemm_description d = product(1024, 1024, 1024);
    reopen("128x2p");
    declined(&d, "strides");
    reopen("128x2mp");
    declined(&d, "strides");
}

/* What HAL_CUDA_GEMM takes for a tile. */
static void test_tile_names(void **state)
{
    static const char *const wrong[] = {"256x1pb", "256x1pp", "256x1px", "256p", "p"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hal_plugin_device *other = NULL;
        setenv("HAL_CUDA_GEMM", wrong[i], 1);
        assert_int_equal(plugin_open(plugin, 0, &other), HAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(message, wrong[i]));
        assert_non_null(strstr(message, "256x1bp"));
    }
    unsetenv("HAL_CUDA_GEMM");
    reopen("256x1tbp");
}

/* Parts of k through memory: a group for each part of each tile, and the memory of the queue,
 * whose words are 0. */
static void test_parts_in_memory(void **state)
{
    hal_gemm_description d = product(512, 384, 16384);
    const struct {
        const char *tile;
        uint32_t pairs;
    } cases[] = {{"128x8m", 1}, {"128x8mb", 2}};
    for (int i = 0; i < 2; i++) {
        const double scalars[2] = {1.0, 0.0};
        uint64_t parts = 0;
        cuda_gemm_block block;
        reopen(cases[i].tile);
        hal_plugin_queue *queue = NULL;
        hal_plugin_kernel *kernel = taken(&d);
        hal_plugin_memory *memory = memory_of(4096);
        assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
        for (int j = 0; j < 2; j++) {
            const cuda_mock_launch *launch = launched_on(queue, kernel, memory, 0, scalars);
            memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
            assert_int_equal(launch->grid[0], 4 * 3 * 8);
            assert_int_equal(block.places, 4 * 3 / cases[i].pairs);
            assert_int_equal(block.tiles, 8 * block.places);
            assert_int_equal(block.raster, 2);
            assert_true(block.parts != 0 && (parts == 0 || parts == block.parts));
            parts = block.parts;
            for (int k = 0; k < CUDA_GEMM_STATES; k++) {
                assert_int_equal(((const uint32_t *)(uintptr_t)parts)[k], 0);
            }
        }
        plugin->queue_destroy(device, queue);
        plugin->memory_free(device, memory);
        plugin->kernel_destroy(device, kernel);
    }
    d.m = 2048; /* 528 groups: the memory has the sums of 264 with such a tile */
    d.n = 1408;
    declined(&d, "strides");
}

/* Tiles that are multiplied at once are taken two rows at a time. */
static void test_raster(void **state)
{
    static const struct {
        const char *tile;
        uint32_t m, raster;
    } cases[] = {{"64x1", 1024, 2}, {"64x1", 2048, 8}, {"256x1", 4096, 16}, {"256x1a", 1024, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const hal_gemm_description d = product(cases[i].m, cases[i].m, 1024);
        const double scalars[2] = {1.0, 0.0};
        cuda_gemm_block block;
        reopen(cases[i].tile);
        hal_plugin_kernel *kernel = taken(&d);
        hal_plugin_memory *memory = memory_of(4096);
        memcpy(&block, launched(kernel, memory, scalars)->block, offsetof(cuda_gemm_block, inputs));
        assert_int_equal(block.raster, cases[i].raster);
        plugin->memory_free(device, memory);
        plugin->kernel_destroy(device, kernel);
    }
}

/* An old driver does not know the fences of clusters. */
static void test_old_driver(void **state)
{
    hal_gemm_description d = product(512, 512, 16384);
    reopen("128x4");
    plugin->kernel_destroy(device, taken(&d));
    mock->is_old = 1;
    declined(&d, "strides");
    reopen("128x1a");
    declined(&d, "strides");
    reopen("128x1");
    plugin->kernel_destroy(device, taken(&d));
}

/* F32 is rounded to TF32 on its way to shared memory where it is multiplied once; the parts of
 * accurate products are made of all of its bits. C is never rounded. */
static void test_rounding(void **state)
{
    enum { MAP_F32 = 7, MAP_TF32 = 11 }; /* CUtensorMapDataType */
    for (int i = 0; i < 2; i++) {
        hal_gemm_description d = product(1024, 1024, 1024);
        const double scalars[2] = {1.0, 0.0};
        cuda_mock_map maps[3];
        d.type_a = d.type_b = d.type_c = HAL_TYPE_F32;
        d.precision = i == 0 ? HAL_GEMM_FAST : HAL_GEMM_ACCURATE;
        hal_plugin_kernel *kernel = taken(&d);
        hal_plugin_memory *memory = memory_of(4096);
        const cuda_mock_launch *launch = launched(kernel, memory, scalars);
        for (int j = 0; j < 3; j++) {
            memcpy(&maps[j], launch->block + j * CUDA_GEMM_MAP_BYTES, sizeof maps[j]);
        }
        assert_int_equal(maps[0].type, i == 0 ? MAP_TF32 : MAP_F32);
        assert_int_equal(maps[1].type, i == 0 ? MAP_TF32 : MAP_F32);
        assert_int_equal(maps[2].type, MAP_F32);
        plugin->memory_free(device, memory);
        plugin->kernel_destroy(device, kernel);
    }
}

/* A second shape with the same types, layouts and tile compiles and loads nothing. */
static void test_shapes_share_modules(void **state)
{
    const hal_gemm_description d = product(4096, 4096, 4096), other = product(4096, 4096, 4160);
    hal_gemm_description transposed = d;
    hal_plugin_kernel *first = taken(&d);
    const uint32_t linked = mock->linked, loaded = mock->loaded;
    hal_plugin_kernel *second = taken(&other);
    assert_int_equal(mock->linked, linked);
    assert_int_equal(mock->loaded, loaded);
    plugin->kernel_destroy(device, first);
    transposed.transpose_b = 1;
    transposed.ldb = 4096;
    hal_plugin_kernel *third = taken(&transposed);
    assert_int_equal(mock->linked, linked + 1);
    plugin->kernel_destroy(device, second);
    plugin->kernel_destroy(device, third);
}

/* The driver's linker makes machine code, or the driver as it loads the text. */
static void test_loading(void **state)
{
    const hal_gemm_description d = product(4096, 4096, 4096);
    hal_plugin_device *other = NULL;
    plugin->kernel_destroy(device, taken(&d));
    assert_int_equal(mock->linked, 1);
    plugin->device_close(device);
    setenv("HAL_CUDA_GEMM_LOAD", "text", 1);
    const hal_status status = plugin_open(plugin, 0, &device);
    setenv("HAL_CUDA_GEMM_LOAD", "cubin", 1);
    assert_int_equal(plugin_open(plugin, 0, &other), HAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(message, "linked or text"));
    unsetenv("HAL_CUDA_GEMM_LOAD");
    assert_int_equal(status, HAL_OK);
    const uint32_t loaded = mock->loaded;
    plugin->kernel_destroy(device, taken(&d));
    assert_int_equal(mock->linked, 1);
    assert_int_equal(mock->loaded, loaded + 1);
}

/* As many further inputs as a description has room for reach the kernel. */
static void test_most_inputs(void **state)
{
    hal_gemm_description d = product(4096, 4096, 4096);
    const double scalars[2] = {1.0, 0.0};
    hal_plugin_queue *queue = NULL;
    cuda_gemm_block block;
    hal_ir_kernel *epilogue = fragment_sum(HAL_TYPE_F32, HAL_GEMM_MAX_INPUTS, 0);
    d.epilogue = epilogue;
    d.input_count = HAL_GEMM_MAX_INPUTS;
    for (uint32_t i = 0; i < HAL_GEMM_MAX_INPUTS; i++) {
        d.inputs[i] = (hal_gemm_input){.type = HAL_TYPE_F32,
                                       .row_stride = 100 + i,
                                       .column_stride = 200 + i,
                                       .batch_stride = i};
    }
    hal_plugin_kernel *kernel = taken(&d);
    hal_plugin_memory *memory = memory_of(4096);
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    const cuda_mock_launch *launch =
        launched_on(queue, kernel, memory, HAL_GEMM_MAX_INPUTS, scalars);
    memcpy(&block, launch->block, sizeof block);
    for (uint32_t i = 0; i < HAL_GEMM_MAX_INPUTS; i++) {
        assert_int_equal(block.inputs[i].address - block.c, 16 * (i + 1));
        assert_int_equal(block.inputs[i].row_stride, 100 + i);
        assert_int_equal(block.inputs[i].column_stride, 200 + i);
        assert_int_equal(block.inputs[i].batch_stride, i);
    }
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
    hal_ir_kernel_destroy(epilogue);
}

static hal_status fill(hal_plugin_queue *queue, hal_plugin_memory *memory)
{
    const hal_binding bindings[1] = {{.memory = memory, .length = 64}};
    const uint8_t pattern[8] = {0};
    const hal_command command = {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = 4};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .scalar_bytes = sizeof pattern,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = pattern};
    return plugin->submit(queue, &batch, NULL, 0, 1);
}

/* A queue has the memory of parts from its first product that adds them there: without memory for
 * them other batches run. */
static void test_parts_take_no_memory_of_others(void **state)
{
    const hal_gemm_description d = product(512, 384, 16384);
    const double scalars[2] = {1.0, 0.0};
    hal_plugin_queue *queue = NULL;
    cuda_gemm_block block;
    reopen("128x8m");
    hal_plugin_memory *memory = memory_of(4096);
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    hal_plugin_kernel *kernel = taken(&d);
    mock->memory_limit = mock->memory + (1 << 20);
    assert_int_equal(fill(queue, memory), HAL_OK);
    mock->memory_limit = UINT64_C(1) << 30;
    memcpy(&block, launched_on(queue, kernel, memory, 0, scalars)->block, sizeof block);
    assert_true(block.parts != 0);
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    plugin->kernel_destroy(device, kernel);
}

/* The order in which a product is added, in words: which product, and the parts of k. */
static void order_of(const hal_gemm_description *d, char order[64])
{
    plugin->kernel_destroy(device, taken(d));
    const char *parts = strstr(logged, " part");
    assert_non_null(parts);
    while (parts[-1] != ' ') {
        parts--;
    }
    const char *product_is = strstr(logged, "transposed") ? "transposed, " : "";
    snprintf(order, 64, "%s%.*s", product_is, (int)(strstr(parts, ", ") - parts), parts);
}

/* Neither C nor an epilogue changes the order of additions. The second and the third shape were
 * split in another way with them while each had the parts that suited it best. */
static void test_one_order(void **state)
{
    static const int64_t shapes[][3] = {{1024, 1024, 8192}, {1312, 1048, 8448}, {1800, 920, 6464}};
    hal_ir_kernel *bias = fragment_sum(HAL_TYPE_F32, 1, 0),
                  *long_one = fragment_sum(HAL_TYPE_F32, 1, 200);
    for (int i = 0; i < 3; i++) {
        const hal_gemm_description plain = product(shapes[i][0], shapes[i][1], shapes[i][2]);
        hal_gemm_description d = plain;
        char expected[64], order[64];
        order_of(&plain, expected);
        d.beta_is_zero = 0;
        order_of(&d, order);
        assert_string_equal(order, expected);
        for (int j = 0; j < 2; j++) {
            d.epilogue = j == 0 ? bias : long_one;
            d.input_count = 1;
            d.inputs[0] = (hal_gemm_input){.type = HAL_TYPE_F32, .column_stride = 1};
            order_of(&d, order);
            assert_string_equal(order, expected);
        }
    }
    hal_ir_kernel_destroy(bias);
    hal_ir_kernel_destroy(long_one);
}

/* Warpgroups take turns where narrow tiles of 64 rows fill the device better. */
static void test_turns_are_chosen(void **state)
{
    static const struct {
        int64_t m, n, k;
        hal_type type;
        uint32_t operations; /* of the epilogue; 0: none */
        bool turns;
    } cases[] = {{6016, 64, 528, HAL_TYPE_BF16, 0, true},
                 {6016, 64, 528, HAL_TYPE_F16, 28, true},
                 {6016, 64, 528, HAL_TYPE_F32, 0, false},
                 {4096, 11008, 4096, HAL_TYPE_BF16, 28, false}, /* wide tiles */
                 {1024, 1024, 8192, HAL_TYPE_BF16, 28, false}}; /* parts of k */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hal_gemm_description d = product(cases[i].m, cases[i].n, cases[i].k);
        hal_ir_kernel *epilogue = fragment_sum(HAL_TYPE_F32, 1, cases[i].operations);
        d.type_a = d.type_b = d.type_c = cases[i].type;
        if (cases[i].operations > 0) {
            d.epilogue = epilogue;
            d.input_count = 1;
            d.inputs[0] = (hal_gemm_input){.type = HAL_TYPE_F32, .column_stride = 1};
        }
        plugin->kernel_destroy(device, taken(&d));
        assert_int_equal(strstr(logged, ", in turn") != NULL, cases[i].turns);
        hal_ir_kernel_destroy(epilogue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_declines, begin, end),
        cmocka_unit_test_setup_teardown(test_lines_count, begin, end),
        cmocka_unit_test_setup_teardown(test_launch, begin, end),
        cmocka_unit_test_setup_teardown(test_odd_lines, begin, end),
        cmocka_unit_test_setup_teardown(test_direct, begin, end),
        cmocka_unit_test_setup_teardown(test_swapped, begin, end),
        cmocka_unit_test_setup_teardown(test_pairs, begin, end),
        cmocka_unit_test_setup_teardown(test_turns, begin, end),
        cmocka_unit_test_setup_teardown(test_tile_names, begin, end),
        cmocka_unit_test_setup_teardown(test_turns_are_chosen, begin, end),
        cmocka_unit_test_setup_teardown(test_parts_in_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_raster, begin, end),
        cmocka_unit_test_setup_teardown(test_old_driver, begin, end),
        cmocka_unit_test_setup_teardown(test_rounding, begin, end),
        cmocka_unit_test_setup_teardown(test_shapes_share_modules, begin, end),
        cmocka_unit_test_setup_teardown(test_loading, begin, end),
        cmocka_unit_test_setup_teardown(test_most_inputs, begin, end),
        cmocka_unit_test_setup_teardown(test_one_order, begin, end),
        cmocka_unit_test_setup_teardown(test_parts_take_no_memory_of_others, begin, end),
    };
    return load_plugin() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

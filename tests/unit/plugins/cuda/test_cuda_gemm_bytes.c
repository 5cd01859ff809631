/* Native matrix products of 8-bit types of the cuda plugin, over a driver without a GPU
 * (cuda_mock.h) and through ptxas, where it is installed. */
#include "cuda_gemm_fixture.h"
#include <cuda/driver.h>
#include <cuda/gemm/tile/ring.h>
#include <cuda/gemm/wgmma.h>

#include "ptxas.h"

enum { NN, TN, NT, TT, LAYOUTS }; /* bit 0: A is across k; bit 1: B is along k */

/* C has the sums. */
static hal_gemm_description product(hal_type type, int layout, int64_t m, int64_t n, int64_t k)
{
    hal_gemm_description d = gemm_product(type, HAL_GEMM_STRICT, m, n, k);
    d.type_c = hal_type_of_value(type);
    d.transpose_a = layout & 1;
    d.transpose_b = layout >> 1;
    d.lda = d.transpose_a ? m : k;
    d.ldb = d.transpose_b ? k : n;
    return d;
}

static hal_plugin_kernel *taken(const hal_gemm_description *description)
{
    uint64_t workspace = 1;
    hal_plugin_kernel *kernel = taken_with(description, &workspace);
    assert_int_equal(workspace, 0);
    return kernel;
}

/* The block of a launch. */
static cuda_gemm_block launched(hal_plugin_kernel *kernel, double alpha, double beta)
{
    const double scalars[2] = {alpha, beta};
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = memory_of(4096);
    cuda_gemm_block block;
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    const cuda_mock_launch *launch = launched_on(queue, kernel, memory, 0, scalars);
    memcpy(&block, launch->block, offsetof(cuda_gemm_block, inputs));
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    return block;
}

/* The units read bytes along k: an A across k goes through registers, a B is written again. */
static void test_layouts(void **state)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        const hal_gemm_description d = product(HAL_TYPE_I8, layout, 1040, 2064, 528);
        hal_plugin_kernel *kernel = taken(&d);
        const cuda_gemm_block block = launched(kernel, 1, 0);
        cuda_mock_map maps[3];
        memcpy(maps, block.maps, sizeof maps[0]);
        memcpy(&maps[1], block.maps[1], sizeof maps[1]);
        memcpy(&maps[2], block.maps[2], sizeof maps[2]);
        assert_int_equal(block.steps, 5); /* of 128 elements: the last has 16 */
        const bool swapped = (int64_t)block.m == d.n;
        assert_int_equal(block.m, swapped ? d.n : d.m);
        for (int i = 0; i < 2; i++) {
            const bool along_k = (i == 0) != swapped ? !d.transpose_a : d.transpose_b;
            assert_int_equal(maps[i].type, CUDA_MAP_U8);
            assert_int_equal(maps[i].extents[along_k ? 0 : 1], 528);
            assert_int_equal(maps[i].box[0], 128);
            assert_true(maps[i].box[1] == 128 || along_k);
        }
        plugin->kernel_destroy(device, kernel);
    }
}

/* Whole numbers, modulo 2^32. */
static void test_factors(void **state)
{
    hal_gemm_description d = product(HAL_TYPE_U8, NT, 256, 256, 256);
    d.beta_is_zero = 0;
    hal_plugin_kernel *kernel = taken(&d);
    cuda_gemm_block block = launched(kernel, 4294967295.0, 7);
    assert_int_equal(block.factors[0], 4294967295u);
    assert_int_equal(block.factors[1], 7);
    plugin->kernel_destroy(device, kernel);
    d = product(HAL_TYPE_I8, NT, 256, 256, 256);
    kernel = taken(&d);
    block = launched(kernel, -3, -2147483648.0);
    assert_int_equal(block.factors[0], (uint32_t)-3);
    assert_int_equal(block.factors[1], 0x80000000u);
    plugin->kernel_destroy(device, kernel);
}

static void test_declines(void **state)
{
    hal_gemm_description d = product(HAL_TYPE_I8, NT, 256, 256, 256);
    d.type_b = HAL_TYPE_U8;
    declined(&d, "types");
    d = product(HAL_TYPE_I16, NT, 256, 256, 256);
    declined(&d, "types");
    d = product(HAL_TYPE_I8, NT, 256, 256, 256);
    d.type_c = HAL_TYPE_I8; /* of which the estimate is that of its sums */
    declined(&d, "types");
    d = product(HAL_TYPE_F8_E4M3, NT, 256, 256, 256);
    declined(&d, "f32 for strict");
    d.precision = HAL_GEMM_ACCURATE;
    declined(&d, "precision");
    d.precision = HAL_GEMM_FAST;
    plugin->kernel_destroy(device, taken(&d));
}

/* Odd lines are read without tensor maps, but for a B that is written again. */
static void test_odd_lines(void **state)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        const hal_gemm_description d = product(HAL_TYPE_I8, layout, 1021, 1003, 77);
        cuda_gemm_source sources[2];
        if (layout == TN) {
            declined(&d, "strides");
            continue;
        }
        hal_plugin_kernel *kernel = taken(&d);
        const cuda_gemm_block block = launched(kernel, 1, 0);
        memcpy(&sources[0], block.maps[0], sizeof sources[0]);
        memcpy(&sources[1], block.maps[1], sizeof sources[1]);
        const bool swapped = block.m == 1003;
        assert_int_equal(sources[swapped].line, d.lda);
        assert_int_equal(sources[!swapped].line, d.ldb);
        assert_int_equal(sources[0].k, 77);
        plugin->kernel_destroy(device, kernel);
    }
}

/* A quarter of a sum as a float, times a factor. */
static hal_ir_kernel *fragment_scale(hal_type sum)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("e", &b), HAL_OK);
    const hal_ir_value x = hal_ir_input(b, 0, sum);
    for (uint32_t i = 1; i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value factor = hal_ir_input(b, 4, HAL_TYPE_F32);
    const hal_ir_value value = hal_type_is_integer(sum) ? hal_ir_cast(b, HAL_TYPE_F32, x) : x;
    hal_ir_output(b, 0, hal_ir_mul(b, hal_ir_mul(b, value, hal_ir_f32(b, 0.25F)), factor));
    if (hal_ir_builder_finish(b, &ir) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(b);
    return ir;
}

static void write_and_assemble(const cuda_gemm_key *key)
{
    static const char *const names[HAL_TYPE_COUNT] = {[HAL_TYPE_I8] = "s32.s8.s8",
                                                      [HAL_TYPE_U8] = "s32.u8.u8",
                                                      [HAL_TYPE_F8_E4M3] = "f32.e4m3.e4m3"};
    char expected[64];
    kit_text text = {.host = plugin_host()};
    assert_true(cuda_gemm_is_supported(key));
    assert_true(cuda_gemm_shared_bytes(key) <= 232448 && cuda_gemm_stages(key) >= 3);
    if (cuda_gemm_write(key, &text) != HAL_OK) {
        fail_msg("%s", message);
    }
    snprintf(expected, sizeof expected, "m64n%uk32.%s", key->columns, names[key->type]);
    assert_int_equal(count_of(text.data, expected) % 4, 0);
    assert_non_null(strstr(text.data, expected));
    assert_int_equal(strstr(text.data, "ldmatrix") != NULL, key->transpose_a || !key->transpose_b);
    /* eight lines of an odd length are no multiple of 16 bytes: the warps begin differently */
    assert_int_equal(count_of(text.data, "%apart_a, %start_a;\nmul.lo"), key->direct);
    /* sums of integers are never floats */
    assert_true(!cuda_gemm_is_integer(key) || key->epilogue || !strstr(text.data, "%f0"));
    assert_true(PTXAS[0] == 0 ||
                ptxas_takes(text.data, "-arch=sm_90a --warn-on-spills -Werror", ""));
    kit_text_release(&text);
}

/* All layouts, each with other types, tiles and ends. */
static void test_text(void **state)
{
    hal_ir_kernel *const roots[2] = {fragment_scale(HAL_TYPE_I32), fragment_scale(HAL_TYPE_F32)};
    const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_I8, .type_c = HAL_TYPE_I32, .transpose_b = 1, .columns = 256, .split = 1},
        {.type = HAL_TYPE_U8,
         .type_c = HAL_TYPE_U32,
         .transpose_b = 1,
         .swapped = 1,
         .reads_c = 1,
         .alternates = 1,
         .columns = 64,
         .split = 1},
        {.type = HAL_TYPE_I8,
         .type_c = HAL_TYPE_I32,
         .transpose_a = 1,
         .transpose_b = 1,
         .swapped = 1,
         .columns = 256,
         .split = 1,
         .shared = CUDA_GEMM_SHARES_B},
        {.type = HAL_TYPE_I8,
         .type_c = HAL_TYPE_BF16,
         .transpose_a = 1,
         .transpose_b = 1,
         .swapped = 1,
         .columns = 128,
         .input_count = 1,
         .inputs = {HAL_TYPE_F32},
         .epilogue = roots[0],
         .split = 1},
        {.type = HAL_TYPE_I8,
         .type_c = HAL_TYPE_F16,
         .transpose_a = 1,
         .transpose_b = 1,
         .columns = 192,
         .input_count = 1,
         .inputs = {HAL_TYPE_F32},
         .epilogue = roots[0],
         .split = 1},
        {.type = HAL_TYPE_U8,
         .type_c = HAL_TYPE_U32,
         .transpose_a = 1,
         .columns = 128, /* B is written again */
         .split = 1},
        {.type = HAL_TYPE_I8,
         .type_c = HAL_TYPE_F32,
         .columns = 48, /* again, with an A along k */
         .input_count = 1,
         .inputs = {HAL_TYPE_F32},
         .epilogue = roots[0],
         .split = 4,
         .staged = 1,
         .width = 4},
        {.type = HAL_TYPE_U8,
         .type_c = HAL_TYPE_U32,
         .transpose_b = 1,
         .columns = 64,
         .split = 4,
         .in_memory = 1,
         .staged = 1,
         .width = 4},
        {.type = HAL_TYPE_I8,
         .type_c = HAL_TYPE_I32,
         .transpose_a = 1,
         .transpose_b = 1,
         .direct = 1,
         .by_rows = 1,
         .columns = 128,
         .split = 1},
        {.type = HAL_TYPE_F8_E4M3,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .flushes = 1,
         .columns = 128,
         .input_count = 1,
         .inputs = {HAL_TYPE_F32},
         .epilogue = roots[1],
         .split = 1},
        {.type = HAL_TYPE_F8_E4M3,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .flushes = 1,
         .columns = 64,
         .split = 2,
         .staged = 1,
         .width = 1},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
    hal_ir_kernel_destroy(roots[0]);
    hal_ir_kernel_destroy(roots[1]);
}

static void test_unsupported(void **state)
{
    const cuda_gemm_key key = {.type = HAL_TYPE_I8,
                               .type_c = HAL_TYPE_I32,
                               .transpose_a = 1,
                               .transpose_b = 1,
                               .columns = 128,
                               .split = 1};
    assert_true(cuda_gemm_is_supported(&key));
    cuda_gemm_key other = key;
    other.shared = CUDA_GEMM_SHARES_A; /* a half of A's rows is no whole box */
    assert_false(cuda_gemm_is_supported(&other));
    other.shared = CUDA_GEMM_SHARES_NONE;
    other.alternates = 1; /* as are the rows of a warpgroup */
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.direct = 1;
    assert_true(cuda_gemm_is_supported(&other));
    other.transpose_b = 0; /* the warps that write B again copy it then */
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.type_c = HAL_TYPE_U32; /* which only an epilogue makes of the sums */
    assert_false(cuda_gemm_is_supported(&other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_layouts, begin, end),
        cmocka_unit_test_setup_teardown(test_factors, begin, end),
        cmocka_unit_test_setup_teardown(test_declines, begin, end),
        cmocka_unit_test_setup_teardown(test_odd_lines, begin, end),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_unsupported),
    };
    return load_plugin() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}

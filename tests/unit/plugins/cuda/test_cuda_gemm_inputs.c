/* The text of native matrix products with further inputs: loads of global memory are counted, and
 * the text goes through ptxas, where it is installed, which must not spill registers. */
#include "../plugin_host.h"
#include <cuda/gemm/end/inputs.h>
#include <cuda/gemm/tile/ring.h>
#include <cuda/gemm/wgmma.h>

#include "fragment_sum.h"
#include "ptxas.h"

/* Writes the text, whose loads of global memory are `loads`. */
static void check_text(const cuda_gemm_key *key, uint32_t loads)
{
    kit_text text = {.host = plugin_host()};
    assert_true(cuda_gemm_is_supported(key));
    assert_true(cuda_gemm_shared_bytes(key) <= 232448);
    if (cuda_gemm_write(key, &text) != HAL_OK) {
        fail_msg("%s", message);
    }
    assert_int_equal(count_of(text.data, "ld.global"), loads);
    assert_true(PTXAS[0] == 0 || ptxas_takes(text.data, "-v -arch=sm_90a",
                                             "2>&1 | grep -q ', 0 bytes spill stores'"));
    kit_text_release(&text);
}

/* What the strides of an input say. */
static void test_layouts(void **state)
{
    enum {
        ROWS = CUDA_GEMM_INPUT_SAME_ROWS,
        COLUMNS = CUDA_GEMM_INPUT_SAME_COLUMNS,
        PAIRS = CUDA_GEMM_INPUT_PAIRS,
        FOURS = CUDA_GEMM_INPUT_FOURS
    };
    const struct {
        int64_t row, column, batch, columns;
        uint8_t plain, swapped, by_rows;
    } cases[] = {
        {0, 1, 0, 64, ROWS | PAIRS, COLUMNS, ROWS | FOURS}, /* a bias of the columns */
        {1, 0, 0, 64, COLUMNS, ROWS | PAIRS, COLUMNS},      /* of the rows */
        {0, 0, 1, 64, ROWS, ROWS, ROWS | COLUMNS},          /* of a matrix */
        {64, 1, 4096, 64, 0, 0, FOURS},                     /* an element each */
        {64, 1, 4095, 64, 0, 0, 0},
        {66, 1, 4096, 64, 0, 0, 0},
        {0, 1, 0, 63, ROWS, COLUMNS, ROWS | FOURS},
        {0, 2, 0, 64, ROWS, COLUMNS, 0},
        {1, 64, 4096, 64, 0, 0, 0},
    };
    hal_ir_kernel *sum = fragment_sum(HAL_TYPE_F32, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const hal_gemm_input input = {.type = HAL_TYPE_BF16,
                                      .row_stride = cases[i].row,
                                      .column_stride = cases[i].column,
                                      .batch_stride = cases[i].batch};
        cuda_gemm_key key = {.columns = 64, .epilogue = sum, .input_count = 1};
        assert_int_equal(cuda_gemm_input_layout(&key, &input, cases[i].columns), cases[i].plain);
        key.swapped = 1;
        assert_int_equal(cuda_gemm_input_layout(&key, &input, cases[i].columns), cases[i].swapped);
        key.staged = 1;
        key.width = 4;
        assert_int_equal(cuda_gemm_input_layout(&key, &input, cases[i].columns), cases[i].by_rows);
        key.width = 1;
        assert_int_equal(cuda_gemm_input_layout(&key, &input, cases[i].columns), 0);
    }
    hal_ir_kernel_destroy(sum);
}

/* A work-item has 128 elements of a tile of 256 columns: 64 columns in two rows. */
static void test_boxes(void **state)
{
    hal_ir_kernel *sum = fragment_sum(HAL_TYPE_F32, 1, 0);
    const struct {
        hal_type input;
        uint8_t layout;
        uint32_t loads;
    } cases[] = {
        {HAL_TYPE_BF16, 0, 128},
        {HAL_TYPE_BF16, CUDA_GEMM_INPUT_SAME_ROWS | CUDA_GEMM_INPUT_PAIRS, 32},
        {HAL_TYPE_F32, CUDA_GEMM_INPUT_SAME_ROWS | CUDA_GEMM_INPUT_PAIRS, 32},
        {HAL_TYPE_F16, CUDA_GEMM_INPUT_SAME_ROWS, 64},
        {HAL_TYPE_F32, CUDA_GEMM_INPUT_SAME_COLUMNS, 2},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const cuda_gemm_key key = {.type = HAL_TYPE_BF16,
                                   .type_c = i % 2 ? HAL_TYPE_F32 : HAL_TYPE_BF16,
                                   .columns = 256,
                                   .split = 1,
                                   .input_count = 1,
                                   .inputs = {cases[i / 2].input},
                                   .layouts = {cases[i / 2].layout},
                                   .epilogue = sum};
        check_text(&key, cases[i / 2].loads);
    }
    hal_ir_kernel_destroy(sum);
}

/* Registers that the sums need are left: many inputs, and kernels with further registers. */
static void test_many_inputs(void **state)
{
    hal_ir_kernel *sum = fragment_sum(HAL_TYPE_F32, 8, 0);
    cuda_gemm_key key = {.type = HAL_TYPE_F32,
                         .type_c = HAL_TYPE_F32,
                         .transpose_a = 1,
                         .transpose_b = 1,
                         .columns = 256,
                         .split = 1,
                         .input_count = 8,
                         .epilogue = sum};
    for (uint32_t i = 0; i < 8; i++) {
        key.inputs[i] = i % 2 ? HAL_TYPE_F32 : HAL_TYPE_BF16;
        key.layouts[i] = i < 4   ? CUDA_GEMM_INPUT_SAME_ROWS | CUDA_GEMM_INPUT_PAIRS
                         : i < 6 ? CUDA_GEMM_INPUT_SAME_COLUMNS
                                 : 0;
    }
    check_text(&key, 4 * 32 + 2 * 2 + 2 * 128);
    key.flushes = 1;
    key.columns = 128;
    check_text(&key, 4 * 16 + 2 * 2 + 2 * 64);
    key.input_count = 4;
    hal_ir_kernel_destroy(sum);
    key.epilogue = sum = fragment_sum(HAL_TYPE_F32, 4, 0);
    check_text(&key, 4 * 16);
    key.flushes = 0;
    key.columns = 256;
    check_text(&key, 4 * 32);
    hal_ir_kernel_destroy(sum);
}

/* A piece of four elements: one access. */
static void test_pieces(void **state)
{
    hal_ir_kernel *sum = fragment_sum(HAL_TYPE_F32, 3, 0);
    const cuda_gemm_key key = {.type = HAL_TYPE_BF16,
                               .type_c = HAL_TYPE_BF16,
                               .columns = 128,
                               .split = 4,
                               .staged = 1,
                               .width = 4,
                               .input_count = 3,
                               .inputs = {HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F32},
                               .layouts = {CUDA_GEMM_INPUT_FOURS | CUDA_GEMM_INPUT_SAME_ROWS,
                                           CUDA_GEMM_INPUT_FOURS, CUDA_GEMM_INPUT_SAME_COLUMNS},
                               .epilogue = sum};
    check_text(&key, 4 * 3); /* four pieces at once */
    hal_ir_kernel_destroy(sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_many_inputs),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

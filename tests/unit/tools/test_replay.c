/* The parts of hal-replay: distances between elements of each type, types of ranges, and the
 * kernels that it makes itself, run by the reference interpreter. */

#include "unit.h"
#include <hal/ir_build.h>
#include <kit/interpret.h>
#include <math.h>
#include <replay_compare.h>
#include <replay_kernel.h>
#include <replay_memory.h>
#include <stdlib.h>
#include <string.h>

static const replay_bound by_type = {-1.0, UINT64_MAX}, bits = {0.0, 0};

static replay_comparison compare(hal_type type, const void *here, const void *recorded,
                                 uint64_t bytes, replay_bound bound)
{
    replay_comparison result;
    replay_compare(type, here, recorded, bytes, &bound, &result);
    return result;
}

TEST(floats_are_measured)
{
    const float recorded[4] = {1.0f, 100.0f, 0.0f, -2.0f};
    float here[4] = {1.0f, 100.0f, 0.0f, -2.0f};
    assert_int_equal(compare(HAL_TYPE_F32, here, recorded, 16, bits).unequal, 0);

    here[0] = 1.0009f; /* 100 * 1e-5 is just enough */
    here[3] = nextafterf(-2.0f, -3.0f);
    replay_comparison c = compare(HAL_TYPE_F32, here, recorded, 16, by_type);
    assert_int_equal(c.unequal, 2);
    assert_int_equal(c.beyond, 0);
    assert_int_equal(c.index, 0);
    assert_true(c.absolute > 0.00089 && c.absolute < 0.00091);
    here[0] = 1.0011f;
    assert_int_equal(compare(HAL_TYPE_F32, here, recorded, 16, by_type).beyond, 1);
    assert_int_equal(
        compare(HAL_TYPE_F32, here, recorded, 16, (replay_bound){1e-3, UINT64_MAX}).beyond, 0);

    here[0] = 1.0f; /* one step */
    assert_int_equal(compare(HAL_TYPE_F32, here, recorded, 16, bits).beyond, 1);
    c = compare(HAL_TYPE_F32, here, recorded, 16, (replay_bound){0.0, 1});
    assert_int_equal(c.beyond, 0);
    assert_int_equal(c.ulps, 1);
}

TEST(special_numbers_are_measured)
{
    const replay_bound wide = {1e30, UINT64_MAX - 1};
    const uint32_t nan = 0x7fc00000, other_nan = 0xffc00001, infinity = 0x7f800000;
    const uint32_t zero = 0, minus_zero = 0x80000000, one = 0x3f800000;
    assert_int_equal(compare(HAL_TYPE_F32, &nan, &other_nan, 4, bits).unequal, 0);
    assert_int_equal(compare(HAL_TYPE_F32, &nan, &one, 4, wide).beyond, 1);
    assert_int_equal(compare(HAL_TYPE_F32, &one, &nan, 4, wide).beyond, 1);
    assert_int_equal(compare(HAL_TYPE_F32, &infinity, &one, 4, wide).beyond, 1);
    const replay_comparison c = compare(HAL_TYPE_F32, &zero, &minus_zero, 4, bits);
    assert_int_equal(c.beyond, 1);
    assert_int_equal(c.ulps, 1);
}

TEST(other_types_are_measured)
{
    const uint16_t half[2] = {0x3c00, 0x4900}, half_here[2] = {0x3c01, 0x4900}; /* 1, 10 */
    replay_comparison c = compare(HAL_TYPE_F16, half_here, half, 4, by_type);
    assert_true(c.unequal == 1 && c.beyond == 0 && c.ulps == 1);
    assert_true(c.recorded == 1.0 && c.here == 1.0 + 0x1p-10);
    const uint16_t small = 0x0001, large = 0xfbff;
    c = compare(HAL_TYPE_F16, &small, &large, 2, by_type);
    assert_true(c.here == 0x1p-24 && c.recorded == -65504.0 && c.beyond == 1);
    const uint16_t brain = 0x4049, brain_here = 0x404a;
    c = compare(HAL_TYPE_BF16, &brain_here, &brain, 2, by_type);
    assert_true(c.recorded == 3.140625 && c.beyond == 0 && c.ulps == 1);
    const double wide = 1.0, wide_here = 1.0 + 1e-11;
    assert_int_equal(compare(HAL_TYPE_F64, &wide_here, &wide, 8, by_type).beyond, 1);
    const int8_t byte = -3, byte_here = 4;
    c = compare(HAL_TYPE_I8, &byte_here, &byte, 1, (replay_bound){10.0, 100});
    assert_true(c.beyond == 1 && c.ulps == 7 && c.recorded == -3.0);
    /* Seven bytes are an element and three bytes. */
    const char *seven = "abcdefg", *here = "abcdefh";
    c = compare(HAL_TYPE_U32, here, seven, 7, by_type);
    assert_true(c.elements == 1 && c.beyond == 1);
    assert_int_equal(compare(HAL_TYPE_NONE, here, seven, 7, by_type).elements, 7);
}

static void expect_type(const replay_memory *memory, uint64_t at, hal_type type, uint64_t end)
{
    uint64_t found = 1000;
    assert_int_equal(replay_memory_type(memory, at, &found), type);
    assert_int_equal(found, end);
}

TEST(types_lie_where_they_were_put)
{
    replay_memory memory = {0};
    expect_type(&memory, 0, HAL_TYPE_NONE, 1000);
    assert_ok(replay_memory_set_type(&memory, 100, 200, HAL_TYPE_F32, 0));
    assert_ok(replay_memory_set_type(&memory, 120, 140, HAL_TYPE_I32, 0));
    assert_ok(replay_memory_set_type(&memory, 190, 300, HAL_TYPE_F64, 1));
    expect_type(&memory, 0, HAL_TYPE_NONE, 100);
    expect_type(&memory, 100, HAL_TYPE_F32, 120);
    expect_type(&memory, 130, HAL_TYPE_I32, 140);
    expect_type(&memory, 140, HAL_TYPE_F32, 200);
    expect_type(&memory, 200, HAL_TYPE_F64, 300);
    assert_ok(replay_memory_set_type(&memory, 110, 250, HAL_TYPE_U8, 0));
    expect_type(&memory, 100, HAL_TYPE_F32, 110);
    expect_type(&memory, 110, HAL_TYPE_U8, 250);
    expect_type(&memory, 250, HAL_TYPE_F64, 300);
    expect_type(&memory, 300, HAL_TYPE_NONE, 1000);
    free(memory.types);
}

/* ---- Kernels ---- */

static void interpret(const hal_ir_kernel *kernel, uint32_t lanes, const kit_span *spans,
                      const void *scalars, const uint32_t grid[3])
{
    kit_problem problem;
    const kit_dispatch dispatch = {.kernel = kernel,
                                   .grid = {grid[0], grid[1], grid[2]},
                                   .subgroup_width = lanes,
                                   .bindings = spans,
                                   .scalars = scalars};
    if (kit_interpret(&dispatch, &problem) != HAL_OK) {
        fail_msg("%s", problem.text);
    }
}

/* Every subgroup operation, in groups of `items` x 2: five outputs for each work-item. */
static hal_ir_kernel *make_lanes(uint32_t items)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *kernel = NULL;
    assert_ok(hal_ir_builder_create("lanes", &b));
    hal_ir_group_size(b, items, 2, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value x = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), y = hal_ir_id(b, HAL_IR_LOCAL_ID, 1);
    const hal_ir_value item = hal_ir_add(b, hal_ir_mul(b, y, hal_ir_u32(b, items)), x);
    const hal_ir_value f = hal_ir_cast(b, HAL_TYPE_F32, hal_ir_mul(b, item, item));
    const hal_ir_value lane = hal_ir_id(b, HAL_IR_LANE_ID, 0);
    const hal_ir_value results[5] = {
        hal_ir_cast(b, HAL_TYPE_F32, lane),
        hal_ir_shuffle(b, f, hal_ir_and(b, lane, hal_ir_u32(b, 3))),
        hal_ir_shuffle_xor(b, f, 1),
        hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_ADD, f),
        hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_MAX, f),
    };
    for (uint32_t i = 0; i < 5; i++) {
        const hal_ir_value at =
            hal_ir_add(b, hal_ir_mul(b, item, hal_ir_u32(b, 5)), hal_ir_u32(b, i));
        hal_ir_store(b, out, at, results[i]);
    }
    assert_ok(hal_ir_builder_finish(b, &kernel));
    hal_ir_builder_destroy(b);
    return kernel;
}

/* What a kernel does with the lanes it was written for, its rewritten form does with others. */
TEST(lanes_are_made_through_shared_memory)
{
    static const uint32_t widths[] = {8, 16, 32}, sizes[] = {32, 20};
    const uint32_t grid[3] = {1, 1, 1};
    for (size_t s = 0; s < 2; s++) {
        hal_ir_kernel *kernel = make_lanes(sizes[s]);
        for (size_t w = 0; w < 3; w++) {
            float wanted[64 * 5] = {0}, found[64 * 5] = {0};
            const kit_span to_wanted = {(uint8_t *)wanted, sizeof wanted};
            const kit_span to_found = {(uint8_t *)found, sizeof found};
            hal_ir_kernel *fixed = NULL;
            interpret(kernel, widths[w], &to_wanted, NULL, grid);
            assert_false(replay_lanes_fit(kernel, widths[w], 64));
            assert_true(replay_lanes_fit(kernel, widths[w], widths[w]));
            assert_ok(replay_fix_lanes(kernel, widths[w], &fixed));
            interpret(fixed, 4, &to_found, NULL, grid);
            assert_memory_equal(wanted, found, sizeof wanted);
            hal_ir_kernel_destroy(fixed);
        }
        hal_ir_kernel_destroy(kernel);
    }
}

enum { M = 5, N = 7, K = 6, BATCH = 2 };

/* C = max(2 A B - 3 C + row, 0) with A or B stored the other way, against sums in double. */
TEST(plain_products_are_right)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *epilogue = NULL;
    assert_ok(hal_ir_builder_create_fragment("after", &b));
    const hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    const hal_ir_value row = hal_ir_cast(b, HAL_TYPE_F32, hal_ir_input(b, 1, HAL_TYPE_U32));
    hal_ir_output(b, 0, hal_ir_max(b, hal_ir_add(b, value, row), hal_ir_f32(b, 0.0f)));
    assert_ok(hal_ir_builder_finish(b, &epilogue));
    hal_ir_builder_destroy(b);
    for (int turned = 0; turned < 4; turned++) {
        const int64_t ta = turned & 1, tb = turned >> 1;
        const hal_gemm_description gemm = {
            .size = sizeof gemm, .type_a = HAL_TYPE_F32, .type_b = HAL_TYPE_F32,
            .type_c = HAL_TYPE_F32, .transpose_a = (uint8_t)ta, .transpose_b = (uint8_t)tb,
            .batch = BATCH, .m = M, .n = N, .k = K, .lda = (ta ? M : K) + 1,
            .ldb = tb ? K : N, .ldc = N + 2, .stride_a = 60, .stride_b = N * K, .stride_c = 50};
        float x[120], y[BATCH * N * K], c[100], before[100];
        for (int i = 0; i < 120; i++) {
            x[i] = (float)(i * 7 % 11 - 5);
            y[i % (BATCH * N * K)] = (float)(i * 5 % 13 - 6);
            c[i % 100] = before[i % 100] = (float)(i % 100 * 3 % 7);
        }
        const kit_span spans[3] = {{(uint8_t *)x, sizeof x}, {(uint8_t *)y, sizeof y},
                                   {(uint8_t *)c, sizeof c}};
        const float scale[2] = {2.0f, -3.0f};
        hal_ir_kernel *ir = NULL;
        uint32_t grid[3];
        replay_plain_grid(&gemm, grid);
        assert_ok(replay_plain_gemm(&gemm, epilogue, &ir));
        interpret(ir, 0, spans, scale, grid);
        hal_ir_kernel_destroy(ir);
        for (int64_t i = 0; i < 100; i++) {
            const int64_t batch = i / 50, r = i % 50 / (N + 2), column = i % 50 % (N + 2);
            double sum = before[i];
            if (r < M && column < N) {
                sum = -3.0 * before[i] + (double)r;
                for (int64_t k = 0; k < K; k++) {
                    sum += 2.0 * x[batch * 60 + (ta ? k * gemm.lda + r : r * gemm.lda + k)] *
                           y[batch * N * K + (tb ? column * gemm.ldb + k : k * gemm.ldb + column)];
                }
                sum = sum > 0.0 ? sum : 0.0;
            }
            assert_true(c[i] == (float)sum); /* whole numbers are exact */
        }
    }
    hal_ir_kernel_destroy(epilogue);
}

/* Rows 1 to 3 and 3 to 6 of 7 have a matrix of B each, and a bias. */
TEST(products_of_groups_as_plain_kernels)
{
    enum { GROUPS = 2, ROWS = 7, COLUMNS = 5, DEPTH = 4 };
    const int32_t at[GROUPS + 1] = {1, 3, 6};
    const hal_gemm_description gemm = {
        .size = sizeof gemm, .type_a = HAL_TYPE_F32, .type_b = HAL_TYPE_F32, .type_c = HAL_TYPE_F32,
        .type_offsets = HAL_TYPE_I32, .batch = GROUPS, .input_count = 1, .m = ROWS, .n = COLUMNS,
        .k = DEPTH, .lda = DEPTH, .ldb = COLUMNS, .ldc = COLUMNS, .stride_b = DEPTH * COLUMNS,
        .inputs = {{.type = HAL_TYPE_F32, .column_stride = 1, .batch_stride = COLUMNS}}};
    float x[ROWS * DEPTH], y[GROUPS * DEPTH * COLUMNS], c[ROWS * COLUMNS], bias[GROUPS * COLUMNS];
    hal_ir_kernel *epilogue = NULL, *ir = NULL;
    hal_ir_builder *b = NULL;
    assert_ok(hal_ir_builder_create_fragment("after", &b));
    const hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    hal_ir_output(b, 0, hal_ir_add(b, value, hal_ir_input(b, 4, HAL_TYPE_F32)));
    assert_ok(hal_ir_builder_finish(b, &epilogue));
    hal_ir_builder_destroy(b);
    for (int i = 0; i < GROUPS * DEPTH * COLUMNS; i++) {
        x[i % (ROWS * DEPTH)] = (float)(i * 7 % 11 - 5);
        y[i] = (float)(i * 5 % 13 - 6);
        c[i % (ROWS * COLUMNS)] = 1;
        bias[i % (GROUPS * COLUMNS)] = (float)(i % (GROUPS * COLUMNS));
    }
    const kit_span spans[5] = {{(uint8_t *)x, sizeof x}, {(uint8_t *)y, sizeof y},
                               {(uint8_t *)c, sizeof c}, {(uint8_t *)bias, sizeof bias},
                               {(uint8_t *)(uintptr_t)at, sizeof at}};
    const float scale[2] = {2, 3};
    uint32_t grid[3];
    replay_plain_grid(&gemm, grid);
    assert_ok(replay_plain_gemm(&gemm, epilogue, &ir));
    interpret(ir, 0, spans, scale, grid);
    hal_ir_kernel_destroy(ir);
    hal_ir_kernel_destroy(epilogue);
    for (int row = 0; row < ROWS; row++) {
        const int group = row < 1 || row >= 6 ? -1 : row >= 3;
        for (int column = 0; column < COLUMNS; column++) {
            float sum = group < 0 ? 1 : 3 + bias[group * COLUMNS + column];
            for (int k = 0; k < DEPTH && group >= 0; k++) {
                sum += 2 * x[row * DEPTH + k] * y[(group * DEPTH + k) * COLUMNS + column];
            }
            assert_true(c[row * COLUMNS + column] == sum); /* whole numbers are exact */
        }
    }
}

TEST(products_without_a_plain_kernel_are_refused)
{
    hal_gemm_description gemm = {.size = sizeof gemm, .type_a = HAL_TYPE_I8, .type_b = HAL_TYPE_I8,
                                 .type_c = HAL_TYPE_I32, .batch = 1, .m = 4, .n = 4, .k = 4,
                                 .lda = 4, .ldb = 4, .ldc = 4};
    hal_ir_kernel *ir = NULL;
    assert_int_equal(replay_plain_gemm(&gemm, NULL, &ir), HAL_ERROR_UNSUPPORTED);
    gemm.type_a = gemm.type_b = gemm.type_c = HAL_TYPE_F32;
    const int64_t wrong[] = {0, -1, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 4; i++) {
        gemm.m = wrong[i];
        assert_int_equal(replay_plain_gemm(&gemm, NULL, &ir), HAL_ERROR_UNSUPPORTED);
    }
    gemm.m = 4;
    gemm.lda = INT64_MAX;
    gemm.stride_a = INT64_MAX;
    gemm.batch = 9;
    assert_int_equal(replay_plain_gemm(&gemm, NULL, &ir), HAL_ERROR_UNSUPPORTED);
}

UNIT_MAIN(NULL, NULL)

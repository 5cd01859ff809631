/* The exchange of sums of the portable GEMM kernel on matrix units: only where a lane cannot store
 * its neighbours of a row of C at once, and after a wait for all asynchronous copies. */
#include "ir_fixture.h"

#include "gemm/kernel.h"

enum { THREAD_M = 4, THREAD_N = 8 };

/* A kernel of 64 x 64 x 32 with 4 stages of F32, whose accesses to C have a width. */
static hal_ir_kernel *emit(uint8_t width_c)
{
    const ops_gemm_kernel_key key = {.tiles = {.block_m = 64,
                                               .block_n = 64,
                                               .block_k = 32,
                                               .thread_m = THREAD_M,
                                               .thread_n = THREAD_N,
                                               .strip_m = 1,
                                               .strip_n = 8,
                                               .lanes_m = 8,
                                               .lanes_n = 4,
                                               .stages = 4,
                                               .intra_group_split_k = 1,
                                               .matrix = 1},
                                     .a = {.k_contiguous = 1, .width = 4},
                                     .b = {.k_contiguous = 0, .width = 4},
                                     .type_ab = HAL_TYPE_F32,
                                     .type_c = HAL_TYPE_F32,
                                     .accumulator = HAL_TYPE_F32,
                                     .fused = 1,
                                     .alpha_is_one = 1,
                                     .beta_is_zero = 1,
                                     .unit_c = 1,
                                     .width_c = width_c,
                                     .slots = {0, 1, 2}};
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_binding(b, "a", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_binding(b, "b", HAL_TYPE_F32, HAL_ACCESS_READ);
    hal_ir_binding(b, "c", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    ops_gemm_emit(b, &key);
    return ir_finish(b);
}

static uint32_t count_shared_stores(const hal_ir_kernel *kernel)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const hal_ir_record *record = &kernel->records[i];
        count += record->opcode == HAL_IR_STORE && record->aux >= kernel->binding_count;
    }
    return count;
}

TEST(sums_are_exchanged_before_single_stores)
{
    hal_ir_kernel *single = emit(1), *wide = emit(THREAD_N);
    assert_int_equal(count_shared_stores(single), THREAD_M * THREAD_N);
    assert_int_equal(count_shared_stores(wide), 0);
    assert_int_equal(ir_count(single, HAL_IR_ASYNC_WAIT), ir_count(wide, HAL_IR_ASYNC_WAIT) + 1);
    hal_ir_kernel_destroy(single);
    hal_ir_kernel_destroy(wide);
}

UNIT_MAIN(NULL, NULL)

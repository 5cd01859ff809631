/* An epilogue for the tests of native matrix products. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_FRAGMENT_SUM_H
#define TESTS_UNIT_PLUGINS_CUDA_FRAGMENT_SUM_H

#include "../plugin_host.h"
#include <hal/ir_build.h>

/* An epilogue that adds `count` further inputs of a type, and `records` times 1. */
static inline hal_ir_kernel *fragment_sum(hal_type type, uint32_t count, uint32_t records)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("e", &b), HAL_OK);
    hal_ir_value sum = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_value input = hal_ir_input(b, 4 + i, type);
        sum =
            hal_ir_add(b, sum, type == HAL_TYPE_F32 ? input : hal_ir_cast(b, HAL_TYPE_F32, input));
    }
    for (uint32_t i = 0; i < records; i++) {
        sum = hal_ir_add(b, sum, hal_ir_f32(b, 1));
    }
    hal_ir_output(b, 0, sum);
    if (hal_ir_builder_finish(b, &ir) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(b);
    return ir;
}

#endif

/* Numbers of the host round to nearest in memory's types, in every rounding mode of the thread. */
#include "unit.h"

#include "tensor/rounding.h"
#include "tensor/scalars.h"
#include <fenv.h>
#include <hal/ir_build.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double values[] = {
    0.7,        -0.7,  1.0 / 3,        0x1.000001p0,   0x1.000003p0, 2.5,     -2.5,     3.5,
    0.5,        -0.5,  0x1.ffffffp127, 0x1.fffffep127, 1e39,         -1e39,   0x1p-150, 0x1.8p-149,
    -0x1p-1074, 1e-40, 1e300,          0x1.fp-10,      65519.999,    65520.0, -464.5,   1e10};
enum { VALUES = sizeof values / sizeof *values };

static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { MODES = sizeof modes / sizeof *modes };

TEST(floats_and_integers_round_to_nearest)
{
    for (int m = 0; m < MODES; m++) {
        for (int i = 0; i < VALUES; i++) {
            volatile double value = values[i];
            const double single = (double)(float)value, whole = rint(value);
            const double limited = whole > INT32_MAX   ? INT32_MAX
                                   : whole < INT32_MIN ? INT32_MIN
                                                       : whole;
            fesetround(modes[m]);
            const double rounded = ops_round_to(HAL_TYPE_F32, value);
            const double integer = ops_round_to(HAL_TYPE_I32, value);
            ops_block block;
            ops_block_begin(&block);
            ops_put_number(&block, HAL_TYPE_F32, value);
            fesetround(FE_TONEAREST);
            float put;
            memcpy(&put, block.bytes, sizeof put);
            if (rounded != single || integer != limited || (double)put != single) {
                fail_msg("mode %d: %a is %a, %a as f32 and %g as i32", m, values[i], rounded,
                         (double)put, integer);
            }
        }
    }
}

TEST(narrow_floats_round_to_nearest)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (int i = 0; i < VALUES && hal_type_is_narrow_float(type); i++) {
            const double usual = ops_round_to(type, values[i]);
            for (int m = 0; m < MODES; m++) {
                fesetround(modes[m]);
                const double rounded = ops_round_to(type, values[i]);
                fesetround(FE_TONEAREST);
                assert_true(rounded == usual || (isnan(rounded) && isnan(usual)));
            }
        }
    }
    assert_true(ops_round_to(HAL_TYPE_F16, 65519.999) == 65504);
    assert_true(isinf(ops_round_to(HAL_TYPE_F16, 65520)));
    assert_true(ops_round_to(HAL_TYPE_BF16, 0x1.01p0) == 1 &&
                ops_round_to(HAL_TYPE_BF16, 0x1.03p0) == 0x1.04p0);
}

TEST(differences_round_to_nearest)
{
    volatile double x = 1, y = 0x1.8p-54;
    const double usual = x - y;
    for (int m = 0; m < MODES; m++) {
        fesetround(modes[m]);
        const double difference = ops_subtract(1, 0x1.8p-54);
        assert_int_equal(fegetround(), modes[m]);
        fesetround(FE_TONEAREST);
        assert_true(difference == usual);
    }
}

/* Text of a kernel whose constants are the values. */
static char *constants(hal_type type)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *kernel = NULL;
    char *text = NULL;
    assert_int_equal(hal_ir_builder_create("constants", &b), HAL_OK);
    hal_ir_group_size(b, 1, 1, 1);
    hal_ir_memory_id y = hal_ir_binding(b, "y", type, HAL_ACCESS_WRITE);
    for (int i = 0; i < VALUES; i++) {
        hal_ir_store(b, y, hal_ir_u32(b, (uint32_t)i), hal_ir_number(b, type, values[i]));
    }
    assert_int_equal(hal_ir_builder_finish(b, &kernel), HAL_OK);
    hal_ir_builder_destroy(b);
    assert_int_equal(hal_ir_print(kernel, &text), HAL_OK);
    hal_ir_kernel_destroy(kernel);
    return text;
}

TEST(constants_round_to_nearest)
{
    const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_I32, HAL_TYPE_U64};
    for (int t = 0; t < 3; t++) {
        char *usual = constants(types[t]);
        for (int m = 0; m < MODES; m++) {
            fesetround(modes[m]);
            char *text = constants(types[t]);
            fesetround(FE_TONEAREST);
            assert_string_equal(text, usual);
            free(text);
        }
        free(usual);
    }
}

UNIT_MAIN(NULL, NULL)

/* hal_kernel_create_built: kernels that are created from what a builder holds. */
#include <hal/ir_build.h>
#include <stdlib.h>
#include <string.h>

#include "mock_device.h"

/* y[i] = x[i] + 1, with values that nobody uses. */
static hal_ir_builder *built(void)
{
    hal_ir_builder *b;
    assert_ok(hal_ir_builder_create("plus_one", &b));
    hal_ir_group_size(b, 32, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_mul(b, i, hal_ir_u32(b, 77));
    hal_ir_store(b, y, i, hal_ir_add(b, hal_ir_load(b, x, i), hal_ir_f32(b, 1)));
    return b;
}

static void is_refused(hal_ir_builder *b, hal_status expected, const char *text)
{
    hal_kernel *made = (hal_kernel *)device;
    assert_int_equal(hal_kernel_create_built(device, b, NULL, &made), expected);
    assert_non_null(strstr(hal_status_message(), text));
    assert_null(made);
    hal_ir_builder_destroy(b);
}

DEVICE_TEST(the_kernel_is_that_of_the_finished_ir)
{
    hal_kernel *made, *again;
    hal_ir_kernel *ir;
    hal_ir_builder *b = built(), *other = built();
    assert_ok(hal_kernel_create_built(device, b, NULL, &made));
    assert_string_equal(hal_kernel_get_name(made), "plus_one");
    assert_ok(hal_ir_builder_finish(other, &ir));
    assert_ok(hal_kernel_create(device, ir, &again));
    assert_ptr_equal(made, again);
    hal_kernel_release(again);
    hal_kernel_release(made);
    hal_ir_kernel_destroy(ir);
    hal_ir_builder_destroy(b);
    hal_ir_builder_destroy(other);
}

DEVICE_TEST(a_builder_is_used_once)
{
    hal_kernel *made;
    hal_ir_kernel *ir;
    hal_ir_builder *b = built();
    assert_ok(hal_kernel_create_built(device, b, NULL, &made));
    hal_kernel_release(made);
    assert_int_equal(hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_STATE);
    is_refused(b, HAL_ERROR_INVALID_STATE, "hal_kernel_create_built: builder: expected one that ");
}

DEVICE_TEST(what_was_built_wrongly_is_refused)
{
    hal_ir_builder *b = built();
    hal_ir_add(b, hal_ir_f32(b, 1), hal_ir_u32(b, 1));
    is_refused(b, HAL_ERROR_INVALID_IR, "add");

    b = built();
    hal_ir_if(b, hal_ir_bool(b, 1));
    is_refused(b, HAL_ERROR_INVALID_IR, "if: expected an end");

    b = built();
    hal_ir_if(b, hal_ir_eq(b, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, 0)));
    hal_ir_barrier(b);
    hal_ir_end(b);
    is_refused(b, HAL_ERROR_INVALID_IR, "uniform");

    b = built();
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 8), hal_ir_u32(b, 0));
    hal_ir_end(b);
    is_refused(b, HAL_ERROR_INVALID_IR, "step: expected more than 0");

    assert_ok(hal_ir_builder_create_fragment("same", &b));
    hal_ir_output(b, 0, hal_ir_input(b, 0, HAL_TYPE_F32));
    is_refused(b, HAL_ERROR_INVALID_ARGUMENT,
               "hal_kernel_create_built: builder: expected a kernel, got fragment same");

    b = built();
    hal_ir_group_size(b, 65536, 65536, 1);
    is_refused(b, HAL_ERROR_INVALID_IR, "group size");
}

/* The group may be set after the record whose rule it breaks. */
DEVICE_TEST(groups_with_matrix_units_are_whole_subgroups)
{
    hal_ir_builder *b = built();
    hal_ir_kernel *ir;
    const hal_ir_value word = hal_ir_u32(b, 0), sum = hal_ir_f32(b, 0);
    const hal_ir_value two = hal_ir_pack(b, 2, (const hal_ir_value[]){word, word});
    const hal_ir_value four = hal_ir_pack(b, 4, (const hal_ir_value[]){word, word, word, word});
    const hal_ir_value sums = hal_ir_pack(b, 4, (const hal_ir_value[]){sum, sum, sum, sum});
    hal_ir_matrix_multiply(b, HAL_TYPE_F16, four, two, sums);
    hal_ir_group_size(b, 48, 1, 1);
    assert_int_equal(hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_IR);
    assert_non_null(strstr(hal_status_message(), "expected a multiple of 32, got 48"));
    hal_ir_builder_destroy(b);
}

DEVICE_TEST(null_is_refused)
{
    hal_kernel *made;
    hal_ir_builder *b = built();
    assert_int_equal(hal_kernel_create_built(device, b, NULL, NULL), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_create_built(NULL, b, NULL, &made), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_create_built(device, NULL, NULL, &made),
                     HAL_ERROR_INVALID_ARGUMENT);
    /* Nothing has happened to it. */
    assert_ok(hal_kernel_create_built(device, b, NULL, &made));
    hal_kernel_release(made);
    hal_ir_builder_destroy(b);
}

UNIT_MAIN(device_begin, device_end)

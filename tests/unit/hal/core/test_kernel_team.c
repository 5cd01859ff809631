/* hal_kernel_create_all: kernels that several threads compile, for which one call waits. */
#include <hal/ir_build.h>
#include <stdio.h>
#include <string.h>

#include "mock_device.h"

enum { KERNELS = 40 };

/* Kernels that differ by a constant; number `wrong` has a group that no device takes. */
static void kernels_parse(const hal_ir_kernel **irs, uint32_t wrong)
{
    char text[200];
    for (uint32_t i = 0; i < KERNELS; i++) {
        hal_ir_kernel *ir = NULL;
        snprintf(text, sizeof text,
                 "kernel k%u\ngroup %u 1 1\nbinding x u32 write\n%%c = constant u32 %u\n"
                 "%%z = constant u32 0\nstore x[%%z], %%c\n",
                 i, i == wrong ? 65536 : 4, i);
        assert_ok(hal_ir_parse(text, strlen(text), &ir));
        irs[i] = ir;
    }
}

static void all_release(const hal_ir_kernel **irs, hal_kernel **kernels)
{
    for (uint32_t i = 0; i < KERNELS; i++) {
        hal_ir_kernel_destroy((hal_ir_kernel *)irs[i]);
        hal_kernel_release(kernels[i]);
    }
}

DEVICE_TEST(each_kernel_is_created)
{
    const hal_ir_kernel *irs[KERNELS];
    hal_kernel *kernels[KERNELS], *again;
    char name[16];
    kernels_parse(irs, KERNELS);
    assert_ok(hal_kernel_create_all(device, irs, NULL, KERNELS, kernels));
    for (uint32_t i = 0; i < KERNELS; i++) {
        snprintf(name, sizeof name, "k%u", i);
        assert_string_equal(hal_kernel_get_name(kernels[i]), name);
        assert_ok(hal_kernel_create(device, irs[i], &again));
        assert_ptr_equal(again, kernels[i]);
        hal_kernel_release(again);
    }
    all_release(irs, kernels);
}

DEVICE_TEST(the_others_are_created_without_a_wrong_one)
{
    const hal_ir_kernel *irs[KERNELS];
    hal_kernel *kernels[KERNELS];
    kernels_parse(irs, 17);
    assert_int_equal(hal_kernel_create_all(device, irs, NULL, KERNELS, kernels),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(hal_status_message(), "k17"));
    for (uint32_t i = 0; i < KERNELS; i++) {
        assert_int_equal(!kernels[i], i == 17);
    }
    all_release(irs, kernels);
}

/* The compiler's failures as well; a kernel that fails once is compiled again. */
DEVICE_TEST(the_others_are_created_without_one_that_fails)
{
    const hal_ir_kernel *irs[KERNELS];
    hal_kernel *kernels[KERNELS];
    kernels_parse(irs, KERNELS);
    atomic_store(&mock->fail_with, HAL_ERROR_COMPILE);
    atomic_store(&mock->fail_in[MOCK_KERNEL], 1);
    assert_ok(hal_kernel_create_all(device, irs, NULL, KERNELS, kernels));
    for (uint32_t i = 0; i < KERNELS; i++) {
        assert_non_null(kernels[i]);
        assert_ok(hal_kernel_wait(kernels[i]));
    }
    all_release(irs, kernels);
}

DEVICE_TEST(wrong_arguments_are_refused)
{
    const hal_ir_kernel *none[2] = {NULL, NULL};
    hal_kernel *kernels[2];
    assert_ok(hal_kernel_create_all(device, NULL, NULL, 0, NULL));
    assert_int_equal(hal_kernel_create_all(device, NULL, NULL, 1, kernels),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_create_all(device, none, NULL, 2, NULL),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_kernel_create_all(device, none, NULL, 2, kernels),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_null(kernels[0]);
    assert_null(kernels[1]);
}

UNIT_MAIN(device_begin, device_end)

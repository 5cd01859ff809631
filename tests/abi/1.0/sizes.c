/* What structures were in 1.0, for test_sized. */
#include <hal/plugin.h>
#include <stddef.h>

const size_t device_info_1_0 = offsetof(hal_device_info, reserved);
const size_t gemm_description_1_0 = sizeof(hal_gemm_description);
const size_t ir_kernel_1_0 = sizeof(hal_ir_kernel);
const uint32_t ir_version_1_0 = HAL_IR_VERSION;

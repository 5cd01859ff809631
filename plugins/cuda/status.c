/* Failures of the driver, with a message. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

/* Errors of running kernels stay with the context: the device is lost. */
static hal_status status_of_result(cuda_result result)
{
    switch (result) {
    case CUDA_OUT_OF_MEMORY:
        return HAL_ERROR_OUT_OF_MEMORY;
    case CUDA_NO_DEVICE:
        return HAL_ERROR_NO_DEVICE;
    case CUDA_STUB_LIBRARY:
    case CUDA_SYSTEM_DRIVER_MISMATCH:
        return HAL_ERROR_DRIVER_MISSING;
    case CUDA_INVALID_IMAGE:
    case CUDA_NO_BINARY_FOR_GPU:
    case CUDA_INVALID_PTX:
    case CUDA_JIT_COMPILER_NOT_FOUND:
    case CUDA_UNSUPPORTED_PTX_VERSION:
        return HAL_ERROR_COMPILE;
    case CUDA_NOT_FOUND:
        return HAL_ERROR_NOT_FOUND;
    case CUDA_LAUNCH_OUT_OF_RESOURCES:
        return HAL_ERROR_UNSUPPORTED;
    case CUDA_DEVICE_UNAVAILABLE:
    case CUDA_ECC_UNCORRECTABLE:
    case CUDA_NVLINK_UNCORRECTABLE:
    case CUDA_CONTAINED:
    case CUDA_ILLEGAL_ADDRESS:
    case CUDA_LAUNCH_TIMEOUT:
    case CUDA_CONTEXT_IS_DESTROYED:
    case CUDA_ASSERT:
        return HAL_ERROR_DEVICE_LOST;
    default:
        return result >= CUDA_HARDWARE_STACK_ERROR && result <= CUDA_LAUNCH_FAILED
                   ? HAL_ERROR_DEVICE_LOST
                   : HAL_ERROR_INTERNAL;
    }
}

hal_status cuda_check(cuda_result result, const char *attempt, ...)
{
    char attempted[256];
    const char *name = NULL, *text = NULL;
    va_list arguments;
    if (result == 0) {
        return HAL_OK;
    }
    va_start(arguments, attempt);
    vsnprintf(attempted, sizeof attempted, attempt, arguments);
    va_end(arguments);
    cuda_functions()->cuGetErrorName(result, &name);
    cuda_functions()->cuGetErrorString(result, &text);
    return kit_fail(status_of_result(result), "cuda: %s: %s (%s)", attempted,
                    name ? name : "unknown result", text ? text : "no text");
}

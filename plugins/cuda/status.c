/* The host's services, the driver's functions, and failing with a sentence. Called by every file
 * of the plugin. */
#include "cuda_plugin.h"

#include <kit/library.h>
#include <stdarg.h>
#include <stdio.h>

static hal_status meaning(cuda_result result);

static const hal_host *the_host;
static cuda_driver the_driver;
static bool loaded;

void cuda_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *cuda_host(void)
{
    return the_host;
}

const cuda_driver *cuda_functions(void)
{
    return &the_driver;
}

/* hal calls enumerate and device_open from one thread at a time. */
hal_status cuda_load_driver(void)
{
    static const kit_symbol symbols[] = {
#define SYMBOL(name, parameters) {#name, offsetof(cuda_driver, name), 1},
#define OPTIONAL(name, parameters) {#name, offsetof(cuda_driver, name), 0},
#include "symbols.inl"
#undef SYMBOL
#undef OPTIONAL
    };
    static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
    static const kit_library library = {
        .title = "the CUDA driver",
        .names = names,
        .remedy = "install the NVIDIA driver, 510 or newer; no toolkit is needed",
        .missing = HAL_ERROR_DRIVER_MISSING,
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof symbols[0],
    };
    const hal_status status = loaded ? HAL_OK : kit_library_open(the_host, &library, &the_driver);
    loaded = status == HAL_OK;
    return status;
}

hal_status cuda_fail(hal_status status, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return the_host->fail(status, message);
}

hal_status cuda_failed(cuda_result result, const char *format, ...)
{
    char tried[256];
    const char *name = NULL, *text = NULL;
    va_list arguments;
    if (result == 0) {
        return HAL_OK;
    }
    va_start(arguments, format);
    vsnprintf(tried, sizeof tried, format, arguments);
    va_end(arguments);
    the_driver.cuGetErrorName(result, &name);
    the_driver.cuGetErrorString(result, &text);
    return cuda_fail(meaning(result), "cuda: %s: %s (%s)", tried, name ? name : "unknown result",
                     text ? text : "no text");
}

/* Errors of running kernels stay with the context: the device is lost. */
static hal_status meaning(cuda_result result)
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

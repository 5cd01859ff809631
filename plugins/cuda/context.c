/* The primary context of a device: retained once by the process, current while a call needs it. */
#include "cuda_plugin.h"

/* By ordinal. hal opens and closes devices from one thread at a time. */
static cuda_context retained[CUDA_MAX_DEVICES];

hal_status cuda_context_retain(hal_plugin_device *device)
{
    const uint32_t ordinal = (uint32_t)device->ordinal;
    hal_status status = HAL_OK;
    if (ordinal >= CUDA_MAX_DEVICES) {
        return cuda_fail(HAL_ERROR_UNSUPPORTED,
                         "cuda: device: expected one of the first %u, got %u",
                         (unsigned)CUDA_MAX_DEVICES, ordinal);
    }
    if (!retained[ordinal]) {
        status = cuda_check(
            cuda_functions()->cuDevicePrimaryCtxRetain(&retained[ordinal], device->ordinal),
            "opening device %u", ordinal);
    }
    device->context = retained[ordinal];
    return status;
}

void cuda_context_give_up(hal_plugin_device *device)
{
    cuda_functions()->cuDevicePrimaryCtxRelease_v2(device->ordinal);
    retained[device->ordinal] = NULL;
}

hal_status cuda_context_push(const hal_plugin_device *device)
{
    return cuda_check(cuda_functions()->cuCtxPushCurrent_v2(device->context),
                      "making the device's context current");
}

void cuda_context_pop(void)
{
    cuda_context context;
    cuda_functions()->cuCtxPopCurrent_v2(&context);
}

/* What a device is, in hal's terms. */
#include "describe.h"

#include "capability.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WARP = 32, MAX_QUEUES = 32 };

uint32_t cuda_describe_attribute(cuda_device device, int attribute)
{
    int value = 0;
    cuda_functions()->cuDeviceGetAttribute(&value, attribute, device);
    return value > 0 ? (uint32_t)value : 0;
}

uint32_t cuda_describe_capability(cuda_device device)
{
    return 10 * cuda_describe_attribute(device, CUDA_DEVICE_CAPABILITY_MAJOR) +
           cuda_describe_attribute(device, CUDA_DEVICE_CAPABILITY_MINOR);
}

/* In the form that OpenCL and Vulkan give for the same card. */
hal_status cuda_describe_id(cuda_device device, char *id, size_t bytes)
{
    cuda_uuid uuid;
    const hal_status status =
        cuda_check(cuda_functions()->cuDeviceGetUuid(&uuid, device), "reading a device's UUID");
    if (status == HAL_OK) {
        const uint8_t *b = uuid.bytes;
        snprintf(id, bytes, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                 b[13], b[14], b[15]);
    }
    return status;
}

/* The version of the kernel driver, which is part of the compile cache's key: the first word of the
 * file that consists of digits and points. Empty where there is no such file. */
static void driver_release(char *release, size_t bytes)
{
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    release[0] = 0;
    if (!file) {
        return;
    }
    const char *at = fgets(line, sizeof line, file) ? line : "";
    fclose(file);
    while (*at != 0 && release[0] == 0) {
        const size_t length = strcspn(at, " \t\n"), digits = strspn(at, "0123456789.");
        if (digits == length && length > 2 && length < bytes) {
            snprintf(release, bytes, "%.*s", (int)length, at);
        }
        at += length + (at[length] != 0);
    }
}

static void describe_limits(cuda_device device, hal_device_info *info)
{
    const uint32_t shared = cuda_describe_attribute(device, CUDA_DEVICE_SHARED_PER_BLOCK),
                   opt_in = cuda_describe_attribute(device, CUDA_DEVICE_SHARED_PER_BLOCK_OPTIN);
    for (int i = 0; i < 3; i++) {
        info->max_group_size[i] = cuda_describe_attribute(device, CUDA_DEVICE_MAX_BLOCK_DIM_X + i);
        info->max_grid[i] = cuda_describe_attribute(device, CUDA_DEVICE_MAX_GRID_DIM_X + i);
    }
    info->binding_alignment = 16;
    info->compute_units = cuda_describe_attribute(device, CUDA_DEVICE_MULTIPROCESSORS);
    info->subgroup_width = WARP;
    info->max_group_items = cuda_describe_attribute(device, CUDA_DEVICE_MAX_THREADS_PER_BLOCK);
    info->shared_bytes = opt_in > shared ? opt_in : shared;
    info->max_bindings = HAL_IR_MAX_BINDINGS;
    info->max_vector_bytes = 16;
    info->preferred_group = 256;
    info->storage_types =
        HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I8) | HAL_TYPE_BIT(HAL_TYPE_U8) |
        HAL_TYPE_BIT(HAL_TYPE_I16) | HAL_TYPE_BIT(HAL_TYPE_U16) | HAL_TYPE_BIT(HAL_TYPE_I32) |
        HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64) |
        HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32) |
        HAL_TYPE_BIT(HAL_TYPE_F64);
    info->arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                             HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                             HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                             HAL_TYPE_BIT(HAL_TYPE_F64);
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->max_queues = MAX_QUEUES;
}

static bool has_virtual_memory(cuda_device device)
{
    const cuda_driver *cu = cuda_functions();
    return cu->cuMemGetAllocationGranularity && cu->cuMemAddressReserve && cu->cuMemAddressFree &&
           cu->cuMemCreate && cu->cuMemRelease && cu->cuMemMap && cu->cuMemUnmap &&
           cu->cuMemSetAccess && cuda_describe_attribute(device, CUDA_DEVICE_VIRTUAL_MEMORY) != 0;
}

hal_status cuda_describe(cuda_device device, hal_device_info *info)
{
    const cuda_driver *cu = cuda_functions();
    size_t bytes = 0;
    int version = 0;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    hal_status status = cuda_describe_id(device, info->id, sizeof info->id);
    if (status == HAL_OK) {
        status = cuda_check(cu->cuDeviceGetName(info->name, sizeof info->name, device),
                            "reading a device's name");
    }
    if (status == HAL_OK) {
        status =
            cuda_check(cu->cuDeviceTotalMem_v2(&bytes, device), "reading a device's memory size");
    }
    if (status != HAL_OK) {
        return status;
    }
    cu->cuDriverGetVersion(&version);
    const uint32_t capability = cuda_describe_capability(device),
                   features = cuda_features(capability);
    info->kind = cuda_describe_attribute(device, CUDA_DEVICE_INTEGRATED) ? HAL_DEVICE_INTEGRATED
                                                                         : HAL_DEVICE_DISCRETE;
    char release[32];
    driver_release(release, sizeof release);
    snprintf(info->driver, sizeof info->driver, "CUDA driver %d.%d%s%s", version / 1000,
             version % 1000 / 10, release[0] ? ", " : "", release);
    snprintf(info->architecture, sizeof info->architecture, "sm_%u", capability);
    info->memory_bytes = info->max_allocation = info->max_binding = bytes;
    info->features =
        HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_TIMESTAMPS | HAL_FEATURE_FAST_MATH |
        HAL_FEATURE_ZERO_COPY | HAL_FEATURE_FILL_PATTERNS | HAL_FEATURE_COPY_ROWS |
        (features & CUDA_FEATURE_ASYNC_COPY ? HAL_FEATURE_ASYNC_COPY : 0) |
        (has_virtual_memory(device) ? HAL_FEATURE_VIRTUAL_MEMORY : 0) |
        (capability == 90 && cu->cuTensorMapEncodeTiled ? HAL_FEATURE_INTEGER_PRODUCTS : 0);
    info->matrix_types =
        features & CUDA_FEATURE_MATRIX_UNITS
            ? HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) | HAL_TYPE_BIT(HAL_TYPE_F32)
            : 0;
    info->matrix_types |= features & CUDA_FEATURE_MATRIX_F64 ? HAL_TYPE_BIT(HAL_TYPE_F64) : 0;
    describe_limits(device, info);
    return HAL_OK;
}

/* The results of Vulkan as statuses with a message. */
#include "status.h"

static hal_status status_of_result(VkResult result)
{
    switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
        return HAL_ERROR_OUT_OF_MEMORY;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
        return HAL_ERROR_DRIVER_MISSING;
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
        return HAL_ERROR_UNSUPPORTED;
    default:
        return HAL_ERROR_INTERNAL;
    }
}

const char *vulkan_result_name(VkResult result)
{
#define NAMED(result)   \
    {                   \
        result, #result \
    }
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
        NAMED(VK_NOT_READY),
        NAMED(VK_TIMEOUT),
        NAMED(VK_INCOMPLETE),
        NAMED(VK_ERROR_OUT_OF_HOST_MEMORY),
        NAMED(VK_ERROR_OUT_OF_DEVICE_MEMORY),
        NAMED(VK_ERROR_INITIALIZATION_FAILED),
        NAMED(VK_ERROR_DEVICE_LOST),
        NAMED(VK_ERROR_MEMORY_MAP_FAILED),
        NAMED(VK_ERROR_LAYER_NOT_PRESENT),
        NAMED(VK_ERROR_EXTENSION_NOT_PRESENT),
        NAMED(VK_ERROR_FEATURE_NOT_PRESENT),
        NAMED(VK_ERROR_INCOMPATIBLE_DRIVER),
        NAMED(VK_ERROR_TOO_MANY_OBJECTS),
        NAMED(VK_ERROR_OUT_OF_POOL_MEMORY),
        NAMED(VK_ERROR_INVALID_SHADER_NV),
        NAMED(VK_ERROR_UNKNOWN),
    };
#undef NAMED
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].result == result) {
            return names[i].name;
        }
    }
    return "an unknown result";
}

hal_status vulkan_fail_attempt(const char *name, VkResult result, const char *attempt)
{
    if (result == VK_ERROR_DEVICE_LOST) {
        return kit_fail(HAL_ERROR_DEVICE_LOST,
                        "%s: %s: VK_ERROR_DEVICE_LOST; a kernel may have run too long or "
                        "accessed memory outside its bindings; open the device again",
                        name, attempt);
    }
    return kit_fail(status_of_result(result), "%s: %s: %s (%d)", name, attempt,
                    vulkan_result_name(result), (int)result);
}

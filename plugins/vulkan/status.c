/* The host's services, failing with a sentence, and what Vulkan's results mean. Called by every
 * file of the plugin. */
#include "vulkan_plugin.h"

#include <stdarg.h>
#include <stdio.h>

static const hal_host *the_host;

static hal_status status_of(VkResult result)
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

void vulkan_set_host(const hal_host *host)
{
    the_host = host;
}

const hal_host *vulkan_host(void)
{
    return the_host;
}

hal_status vulkan_fail(hal_status status, const char *format, ...)
{
    char message[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return the_host != NULL ? the_host->fail(status, message) : status;
}

hal_status vulkan_failed(hal_plugin_device *device, VkResult result, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const char *name = device != NULL ? device->is.info.name : "vulkan";
    if (result == VK_ERROR_DEVICE_LOST) {
        if (device != NULL) {
            atomic_store(&device->lost, 1);
        }
        return vulkan_fail(
            HAL_ERROR_DEVICE_LOST,
            "%s: %s: the driver says VK_ERROR_DEVICE_LOST; a kernel may have run too "
            "long or accessed memory that it was not given; open the device anew",
            name, what);
    }
    return vulkan_fail(status_of(result), "%s: %s: the driver says %s (%d)", name, what,
                       vulkan_result_name(result), (int)result);
}

hal_status vulkan_check(const hal_plugin_device *device)
{
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return HAL_OK;
    }
    return vulkan_fail(HAL_ERROR_DEVICE_LOST, "%s was lost earlier; open it anew",
                       device->is.info.name);
}

hal_status vulkan_check_runs(const hal_plugin_device *device)
{
    if (!device->is.is_null) {
        return vulkan_check(device);
    }
    return vulkan_fail(HAL_ERROR_UNSUPPORTED,
                       "%s is a device without hardware (%s is set): it makes kernels, and has no "
                       "memory and runs nothing",
                       device->is.info.name, device->is.quirks->null_variable);
}

const char *vulkan_result_name(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
        {VK_NOT_READY, "VK_NOT_READY"},
        {VK_TIMEOUT, "VK_TIMEOUT"},
        {VK_INCOMPLETE, "VK_INCOMPLETE"},
        {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
        {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
        {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
        {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED"},
        {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
        {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
        {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
        {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
        {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY"},
        {VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV"},
        {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].result == result) {
            return names[i].name;
        }
    }
    return "a result that this plugin does not know";
}

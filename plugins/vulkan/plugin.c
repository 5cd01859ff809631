/* The vulkan plugin's table and its one symbol. */
#include "vulkan_plugin.h"

#include <kit/query.h>

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI,
        .name = "vulkan",
        .version = "0.1.0",
        .enumerate = vulkan_enumerate,
        .device_open = vulkan_device_open,
        .device_close = vulkan_device_close,
        .memory_info = vulkan_memory_info,
        .memory_allocate = vulkan_memory_allocate,
        .memory_free = vulkan_memory_free,
        .memory_map = vulkan_memory_map,
        .kernel_create = vulkan_kernel_create,
        .kernel_destroy = vulkan_kernel_destroy,
        .queue_create = vulkan_queue_create,
        .queue_destroy = vulkan_queue_destroy,
        .submit = vulkan_queue_submit,
        .wait = vulkan_queue_wait,
        .queue_elapsed = vulkan_queue_elapsed,
        .formats = vulkan_kernel_formats,
        .kernel_create_native = vulkan_kernel_create_native,
    };
    return kit_plugin_query(&table, host_abi, host, vulkan_set_host);
}

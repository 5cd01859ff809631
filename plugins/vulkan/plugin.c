/* The vulkan plugin's table and its one symbol. */
#include "external.h"
#include "fence.h"
#include "kernel.h"
#include "memory.h"
#include "point.h"
#include "quirks.h"
#include "send.h"
#include "slot.h"

#include <kit/plugin.h>

/* Where the driver compiles a kernel at its first dispatch, that is now. */
static hal_status kernel_warm(hal_plugin_device *device, hal_plugin_kernel **kernel)
{
    if (!(device->physical.quirks & VULKAN_QUIRK_COMPILES_LATE)) {
        return HAL_OK;
    }
    const hal_status status = vulkan_queue_warm(device, *kernel);
    if (status != HAL_OK) {
        vulkan_kernel_destroy(device, *kernel);
        *kernel = NULL;
    }
    return status;
}

static hal_status kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    HAL_TRY(vulkan_kernel_create(device, ir, kernel));
    return kernel_warm(device, kernel);
}

static hal_status kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel)
{
    HAL_TRY(vulkan_kernel_create_native(device, format, code, bytes, entry, interface, kernel));
    return kernel_warm(device, kernel);
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue) {
        vulkan_send_stop(queue);
        vulkan_slot_destroy_all(queue);
    }
    vulkan_queue_destroy(device, queue);
}

static kit_plugin plugin = {
    .table = {.name = "vulkan",
              .version = "0.1.0",
              .device_close = vulkan_device_close,
              .memory_allocate = vulkan_memory_allocate,
              .memory_free = vulkan_memory_free,
              .memory_map = vulkan_memory_map,
              .kernel_create = kernel_create,
              .kernel_destroy = vulkan_kernel_destroy,
              .queue_create = vulkan_queue_create,
              .queue_destroy = queue_destroy,
              .submit = vulkan_queue_submit,
              .wait = vulkan_queue_wait},
    .enumerate = vulkan_enumerate,
    .device_open = vulkan_device_open,
    .memory_info = {.memory_info = vulkan_memory_info},
    .faults = {.queue_fail_next = vulkan_queue_fail_next},
    .timing = {.queue_elapsed = vulkan_queue_elapsed},
    .handles = {.device_handle = vulkan_device_handle,
                .queue_handle = vulkan_queue_handle,
                .kernel_handle = vulkan_kernel_handle},
    .external = {.external_info = vulkan_external_info,
                 .memory_import = vulkan_memory_import,
                 .memory_export = vulkan_memory_export,
                 .memory_allocate_shareable = vulkan_memory_allocate_shareable},
    .reports = {.kernel_report = vulkan_kernel_report,
                .clocks_read = vulkan_clocks_read,
                .queue_time = vulkan_queue_time},
    .quirks = {.device_quirk = vulkan_device_quirk},
    .fences = {.fence_info = vulkan_fence_info,
               .fence_import = vulkan_fence_import,
               .fence_create = vulkan_fence_create,
               .fence_export = vulkan_fence_export,
               .fence_destroy = vulkan_fence_destroy,
               .queue_signal_fence = vulkan_queue_signal_fence},
    .native = {.formats = vulkan_kernel_formats, .kernel_create_native = kernel_create_native},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

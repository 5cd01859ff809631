/* The metal plugin's table and its one symbol. */
#include "commands.h"
#include "external.h"
#include "fence.h"
#include "kernel.h"
#include "memory.h"
#include "point.h"

#include <kit/plugin.h>

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue && !metal_device_is_after_fork(device)) {
        metal_point_destroy_all(queue);
    }
    metal_queue_destroy(device, queue);
}

static kit_plugin plugin = {
    .table = {.name = "metal",
              .version = "0.1.0 (never run on Apple hardware)",
              .device_close = metal_device_close,
              .memory_allocate = metal_memory_allocate,
              .memory_free = metal_memory_free,
              .memory_map = metal_memory_map,
              .kernel_create = metal_kernel_create,
              .kernel_destroy = metal_kernel_destroy,
              .queue_create = metal_queue_create,
              .queue_destroy = queue_destroy,
              .submit = metal_queue_submit,
              .wait = metal_queue_wait},
    .enumerate = metal_enumerate,
    .device_open = metal_device_open,
    .memory_info = {.memory_info = metal_memory_info},
    .faults = {.queue_fail_next = metal_queue_fail_next},
    .timing = {.queue_elapsed = metal_queue_elapsed},
    .external = {.external_info = metal_external_info,
                 .memory_import = metal_memory_import,
                 .memory_export = metal_memory_export},
    .quirks = {.device_quirk = metal_device_quirk},
    .fences = {.fence_info = metal_fence_info,
               .fence_import = metal_fence_import,
               .fence_create = metal_fence_create,
               .fence_export = metal_fence_export,
               .fence_destroy = metal_fence_destroy,
               .queue_signal_fence = metal_queue_signal_fence},
    .native = {.formats = "msl", .kernel_create_native = metal_kernel_create_native},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

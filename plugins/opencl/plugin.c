/* The OpenCL plugin's table and its one symbol. */
#include "commands.h"
#include "external.h"
#include "fence.h"
#include "kernel.h"
#include "memory.h"
#include "point.h"

#include <kit/plugin.h>

/* The driver knows nothing of a queue in a child of fork. */
static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue && opencl_device_check(device) == HAL_OK) {
        opencl_point_destroy_all(queue);
    }
    opencl_queue_destroy(device, queue);
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    return opencl_queue_make(device, NULL, queue);
}

static kit_plugin plugin = {
    .table = {.name = "opencl",
              .version = "0.1.0",
              .device_close = opencl_device_close,
              .memory_allocate = opencl_memory_allocate,
              .memory_free = opencl_memory_free,
              .memory_map = opencl_memory_map,
              .kernel_create = opencl_kernel_create,
              .kernel_destroy = opencl_kernel_destroy,
              .queue_create = queue_create,
              .queue_destroy = queue_destroy,
              .submit = opencl_queue_submit,
              .wait = opencl_queue_wait},
    .enumerate = opencl_enumerate,
    .device_open = opencl_device_open,
    .faults = {.queue_fail_next = opencl_queue_fail_next},
    .timing = {.queue_elapsed = opencl_queue_elapsed},
    .handles = {.device_handle = opencl_device_handle,
                .queue_handle = opencl_queue_handle,
                .kernel_handle = opencl_kernel_handle},
    .native_queues = {.queue_import = opencl_queue_import,
                      .queue_wait_native = opencl_queue_wait_native,
                      .queue_block_native = opencl_queue_block_native},
    .external = {.external_info = opencl_external_info,
                 .memory_import = opencl_memory_import,
                 .memory_export = opencl_memory_export},
    .reports = {.kernel_report = opencl_kernel_report},
    .quirks = {.device_quirk = opencl_device_quirk},
    .fences = {.fence_info = opencl_fence_info,
               .fence_import = opencl_fence_import,
               .fence_create = opencl_fence_create,
               .fence_export = opencl_fence_export,
               .fence_destroy = opencl_fence_destroy,
               .queue_signal_fence = opencl_queue_signal_fence},
    .native = {.formats = "opencl-c", .kernel_create_native = opencl_kernel_create_native},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

/* The metal plugin's table and its one symbol. */
#include "commands.h"
#include "kernel.h"
#include "memory.h"
#include "point.h"

#include <kit/query.h>

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (queue && !metal_device_is_after_fork(device)) {
        metal_point_destroy_all(queue);
    }
    metal_queue_destroy(device, queue);
}

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI,
        .name = "metal",
        .version = "0.1.0 (never run on Apple hardware)",
        .enumerate = metal_enumerate,
        .device_open = metal_device_open,
        .device_close = metal_device_close,
        .memory_info = metal_memory_info,
        .memory_allocate = metal_memory_allocate,
        .memory_free = metal_memory_free,
        .memory_map = metal_memory_map,
        .kernel_create = metal_kernel_create,
        .kernel_destroy = metal_kernel_destroy,
        .queue_create = metal_queue_create,
        .queue_destroy = queue_destroy,
        .submit = metal_queue_submit,
        .wait = metal_queue_wait,
        .queue_elapsed = metal_queue_elapsed,
        .formats = "msl",
        .kernel_create_native = metal_kernel_create_native,
    };
    return kit_plugin_query(&table, host_abi, host, kit_set_host);
}

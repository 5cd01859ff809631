/* The cpu plugin's table and its one symbol. */
#include "device.h"
#include "kernel.h"
#include "memory.h"
#include "queue.h"
#include "status.h"

#include <kit/guard.h>
#include <kit/plugin.h>

static kit_plugin plugin = {
    .table = {.name = "cpu",
              .version = "0.1.0",
              .device_close = cpu_device_close,
              .memory_allocate = cpu_memory_allocate,
              .memory_free = cpu_memory_free,
              .memory_map = cpu_memory_map,
              .kernel_create = cpu_kernel_create,
              .kernel_destroy = cpu_kernel_destroy,
              .queue_create = cpu_queue_create,
              .queue_destroy = cpu_queue_destroy,
              .submit = cpu_queue_submit,
              .wait = cpu_queue_wait},
    .enumerate = cpu_enumerate,
    .device_open = cpu_device_open,
    .memory_info = {.memory_info = cpu_memory_info},
    .timing = {.queue_elapsed = cpu_queue_elapsed},
    .gemm = {.gemm = cpu_kernel_create_product},
    .host_copy = {.host_copy = cpu_host_copy},
    .faults = {.queue_fail_next = cpu_queue_fail_next},
    .reports = {.kernel_report = cpu_kernel_report,
                .clocks_read = cpu_clocks_read,
                .queue_time = cpu_queue_time},
    .virtual_memory = {.part_bytes = cpu_part_bytes,
                       .memory_reserve = cpu_memory_reserve,
                       .memory_commit = cpu_memory_commit,
                       .memory_decommit = cpu_memory_decommit,
                       .memory_protect = cpu_memory_protect},
    .external = {.external_info = cpu_external_info,
                 .memory_import = cpu_memory_import,
                 .memory_export = cpu_memory_export},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    kit_guard_waits_alone(); /* in cpu_queue_wait */
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

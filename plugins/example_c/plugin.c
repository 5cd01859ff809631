/* The C example's table and its one symbol. */
#include "example_c.h"

#include <kit/plugin.h>

static kit_plugin plugin = {
    .table = {.name = "example_c",
              .version = "0.1.0",
              .device_close = example_device_close,
              .memory_allocate = example_memory_allocate,
              .memory_free = example_memory_free,
              .memory_map = example_memory_map,
              .kernel_create = example_kernel_create,
              .kernel_destroy = example_kernel_destroy,
              .queue_create = example_queue_create,
              .queue_destroy = example_queue_destroy,
              .submit = example_queue_submit,
              .wait = example_queue_wait},
    .enumerate = example_enumerate,
    .device_open = example_device_open,
    .faults = {.queue_fail_next = example_queue_fail_next},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

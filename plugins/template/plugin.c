/* The template plugin's table and its one symbol. */
#include "template_plugin.h"

#include <kit/plugin.h>

static kit_plugin plugin = {
    .table = {.name = "template",
              .version = "0.1.0",
              .device_close = template_device_close,
              .memory_allocate = template_memory_allocate,
              .memory_free = template_memory_free,
              .memory_map = template_memory_map,
              .kernel_create = template_kernel_create,
              .kernel_destroy = template_kernel_destroy,
              .queue_create = template_queue_create,
              .queue_destroy = template_queue_destroy,
              .submit = template_queue_submit,
              .wait = template_queue_wait},
    .enumerate = template_enumerate,
    .device_open = template_device_open,
    .faults = {.queue_fail_next = template_queue_fail_next},
};

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    return kit_plugin_create(&plugin, host_abi, host, instance);
}

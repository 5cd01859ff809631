/* The template plugin's table and its one symbol. */
#include "template_plugin.h"

#include <kit/query.h>

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static hal_plugin table = {
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI,
        .name = "template",
        .version = "0.1.0",
        .enumerate = template_enumerate,
        .device_open = template_device_open,
        .device_close = template_device_close,
        .memory_allocate = template_memory_allocate,
        .memory_free = template_memory_free,
        .memory_map = template_memory_map,
        .kernel_create = template_kernel_create,
        .kernel_destroy = template_kernel_destroy,
        .queue_create = template_queue_create,
        .queue_destroy = template_queue_destroy,
        .submit = template_queue_submit,
        .wait = template_queue_wait,
    };
    return kit_plugin_query(&table, host_abi, host, template_set_host);
}

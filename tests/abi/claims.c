/* The cpu plugin with claims about its device that are beyond reason, but that no lie of the plugin
 * about memory hangs on: MOST, all as large as numbers are; LEAST, all 0, "not known". hal and ops
 * have to count with them all the same. */
#include "wrap.h"

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                  uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    for (uint32_t i = 0; status == HAL_OK && i < *count && i < capacity; i++) {
        hal_device_info *info = &infos[i];
#ifdef MOST
        const uint32_t claim = UINT32_MAX;
        info->memory_bytes = UINT64_MAX;
        info->max_allocation = UINT64_MAX;
        info->max_binding = UINT64_MAX;
        for (int d = 0; d < 3; d++) {
            info->max_grid[d] = claim;
        }
        info->max_bindings = claim;
#else
        const uint32_t claim = 0;
        info->memory_bytes = 0;
        info->max_vector_bytes = 0;
        info->name[0] = 0;
        info->driver[0] = 0;
        info->architecture[0] = 0;
#endif
        info->compute_units = claim;
        info->preferred_group = claim;
        info->max_queues = claim;
        info->item_vector_bytes = claim;
        info->item_register_bytes = claim;
        info->max_loop_iterations = claim;
    }
    return status;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (table) {
        table->enumerate = enumerate;
    }
    return wrap_plugin(table);
}

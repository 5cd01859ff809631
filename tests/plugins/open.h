/* For tests that call a plugin themselves: its entries in one structure, its devices by index. */
#ifndef TESTS_PLUGINS_OPEN_H
#define TESTS_PLUGINS_OPEN_H

#include "../../hal/src/plugin/entries.h"

/* Makes an instance and reads its entries; false if there is none. */
static inline int plugin_create(hal_plugin_entries *entries, hal_plugin_create_function create,
                                const hal_host *host)
{
    hal_plugin_instance *instance = 0;
    const hal_plugin *table = create(HAL_PLUGIN_ABI, host, &instance);
    if (!table) {
        return 0;
    }
    hal_plugin_entries_read(entries, table, instance);
    return !hal_plugin_entries_extend(entries);
}

static inline hal_status plugin_list(const hal_plugin_entries *plugin, hal_device_info *infos,
                                     uint32_t capacity, uint32_t *count)
{
    return plugin->enumerate(plugin->instance, infos, capacity, count);
}

/* Opens the device of record `index`; for an index without a record one of an unknown id. */
static inline hal_status plugin_open(const hal_plugin_entries *plugin, uint32_t index,
                                     hal_plugin_device **device)
{
    enum { ROOM = 16 };
    hal_device_info infos[ROOM];
    uint32_t count = 0;
    const hal_status status = plugin->enumerate(plugin->instance, infos, ROOM, &count);
    const int is_there = status == HAL_OK && index < count && index < ROOM;
    return plugin->device_open(plugin->instance, is_there ? infos[index].id : "no such device",
                               device);
}

#endif

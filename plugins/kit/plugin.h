/* A plugin as its tables. A plugin file defines one:
 *
 *     static kit_plugin plugin = {
 *         .table = {.name = "mine", .version = "1.0", .device_close = mine_device_close, ...},
 *         .enumerate = mine_enumerate,
 *         .device_open = mine_device_open,
 *         .timing = {.queue_elapsed = mine_queue_elapsed},
 *     };
 *
 *     const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
 *                                         hal_plugin_instance **instance)
 *     {
 *         return kit_plugin_create(&plugin, host_abi, host, instance);
 *     }
 *
 * The kit adds the instance, the search by id, the build id, the sizes and versions, and the guard
 * (guard.h). Extensions without an entry are not offered. */
#ifndef PLUGINS_KIT_PLUGIN_H
#define PLUGINS_KIT_PLUGIN_H

#include "tables.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each plugin defines it. */
__attribute__((visibility("default"))) const hal_plugin *
hal_plugin_create(uint32_t host_abi, const hal_host *host, hal_plugin_instance **instance);

/* Makes an instance and returns the completed table, with the linker's number of the object as its
 * build_id (linker option --build-id), in hexadecimal, or "unknown". Null, and nothing is made, if
 * the host has another major version, or after host->fail if it lacks a function of minor 0.
 * Threads: any. */
const hal_plugin *kit_plugin_create(kit_plugin *plugin, uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance);

#ifdef __cplusplus
}
#endif
#endif

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

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(extension, name): the extensions that the kit knows. */
#define KIT_EXTENSIONS(X)                     \
    X(memory_info, HAL_EXTENSION_MEMORY_INFO) \
    X(coherence, HAL_EXTENSION_COHERENCE)     \
    X(timing, HAL_EXTENSION_TIMING)           \
    X(native, HAL_EXTENSION_NATIVE)           \
    X(gemm, HAL_EXTENSION_GEMM)               \
    X(peers, HAL_EXTENSION_PEERS)             \
    X(host_copy, HAL_EXTENSION_HOST_COPY)     \
    X(collectives, HAL_EXTENSION_COLLECTIVES)

/* The first member of a plugin's hal_plugin_device, hal_plugin_queue and hal_plugin_comm is
 * `const hal_host *host`, which the kit sets when the object is created. */
typedef struct kit_plugin {
    hal_plugin table;

    /* Describes the devices, as the table's entry does. */
    hal_status (*enumerate)(hal_device_info *infos, uint32_t capacity, uint32_t *count);

    /* Opens the device of record `index`. */
    hal_status (*device_open)(uint32_t index, hal_plugin_device **device);

    hal_extension_memory_info memory_info;
    hal_extension_coherence coherence;
    hal_extension_timing timing;
    hal_extension_native native;
    hal_extension_gemm gemm;
    hal_extension_peers peers;
    hal_extension_host_copy host_copy;
    hal_extension_collectives collectives;
} kit_plugin;

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

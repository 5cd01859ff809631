/* What the file of a plugin fills in: main table, extensions, entries that the kit completes. */
#ifndef PLUGINS_KIT_TABLES_H
#define PLUGINS_KIT_TABLES_H

#include <hal/plugin.h>

/* X(extension, name): the extensions that the kit knows. */
#define KIT_EXTENSIONS(X)                         \
    X(memory_info, HAL_EXTENSION_MEMORY_INFO)     \
    X(coherence, HAL_EXTENSION_COHERENCE)         \
    X(timing, HAL_EXTENSION_TIMING)               \
    X(native, HAL_EXTENSION_NATIVE)               \
    X(gemm, HAL_EXTENSION_GEMM)                   \
    X(attention, HAL_EXTENSION_ATTENTION)         \
    X(peers, HAL_EXTENSION_PEERS)                 \
    X(host_copy, HAL_EXTENSION_HOST_COPY)         \
    X(faults, HAL_EXTENSION_FAULTS)               \
    X(external, HAL_EXTENSION_EXTERNAL)           \
    X(handles, HAL_EXTENSION_HANDLES)             \
    X(native_queues, HAL_EXTENSION_NATIVE_QUEUES) \
    X(reports, HAL_EXTENSION_REPORTS)             \
    X(quirks, HAL_EXTENSION_QUIRKS)               \
    X(virtual_memory, HAL_EXTENSION_VIRTUAL_MEMORY) \
    X(fences, HAL_EXTENSION_FENCES)               \
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
    hal_extension_attention attention;
    hal_extension_peers peers;
    hal_extension_host_copy host_copy;
    hal_extension_faults faults;
    hal_extension_external external;
    hal_extension_handles handles;
    hal_extension_native_queues native_queues;
    hal_extension_virtual_memory virtual_memory;
    hal_extension_reports reports;
    hal_extension_quirks quirks;
    hal_extension_fences fences;
    hal_extension_collectives collectives;
} kit_plugin;

#endif

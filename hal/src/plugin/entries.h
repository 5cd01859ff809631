/* All entries of a plugin in one structure: those of its main table and of its extensions, and null
 * where it has none. */
#ifndef HAL_SRC_PLUGIN_ENTRIES_H
#define HAL_SRC_PLUGIN_ENTRIES_H

#include <hal/plugin.h>
#include <string.h>

#define HAL_REQUIRED_ENTRIES(X) \
    X(instance_destroy)         \
    X(enumerate)                \
    X(device_open)              \
    X(device_close)             \
    X(memory_allocate)          \
    X(memory_free)              \
    X(memory_map)               \
    X(kernel_create)            \
    X(kernel_destroy)           \
    X(queue_create)             \
    X(queue_destroy)            \
    X(submit)                   \
    X(wait)

/* X(extension, entry) */
#define HAL_EXTENSION_ENTRIES(X)           \
    X(memory_info, memory_info)            \
    X(coherence, memory_flush)             \
    X(coherence, memory_invalidate)        \
    X(timing, queue_elapsed)               \
    X(native, formats)                     \
    X(native, kernel_create_native)        \
    X(gemm, gemm)                          \
    X(gemm, gemm_estimate)                 \
    X(gemm, gemm_workspace)                \
    X(attention, attention)                \
    X(peers, device_can_access_peer)       \
    X(host_copy, host_copy)                \
    X(faults, queue_fail_next)             \
    X(handles, device_handle)              \
    X(handles, queue_handle)               \
    X(handles, kernel_handle)              \
    X(native_queues, queue_import)         \
    X(native_queues, queue_wait_native)    \
    X(native_queues, queue_block_native)   \
    X(virtual_memory, part_bytes)          \
    X(virtual_memory, memory_reserve)      \
    X(virtual_memory, memory_commit)       \
    X(virtual_memory, memory_decommit)     \
    X(virtual_memory, memory_protect)      \
    X(reports, kernel_report)              \
    X(reports, clocks_read)                \
    X(reports, queue_time)                 \
    X(quirks, device_quirk)                \
    X(fences, fence_info)                  \
    X(fences, fence_import)                \
    X(fences, fence_create)                \
    X(fences, fence_export)                \
    X(fences, fence_destroy)               \
    X(fences, queue_signal_fence)          \
    X(external, external_info)             \
    X(external, memory_import)             \
    X(external, memory_export)             \
    X(external, memory_allocate_shareable) \
    X(collectives, comm_backend)           \
    X(collectives, comm_id)                \
    X(collectives, comm_create)            \
    X(collectives, comm_poll)              \
    X(collectives, comm_abort)             \
    X(collectives, comm_destroy)

typedef struct hal_plugin_entries {
    hal_plugin_instance *instance;
    uint32_t size, abi; /* as the plugin states them */
    uint32_t ir_version;
    uint32_t extensions; /* bit i: extension i of HAL_EXTENSIONS is there */
    const char *name, *version, *build_id;
    const void *(*query_extension)(hal_plugin_instance *, const char *, uint32_t);
#define HAL_FIELD(entry) __typeof__(((hal_plugin *)0)->entry) entry;
    HAL_REQUIRED_ENTRIES(HAL_FIELD)
#undef HAL_FIELD
#define HAL_FIELD(extension, entry) __typeof__(((hal_extension_##extension *)0)->entry) entry;
    HAL_EXTENSION_ENTRIES(HAL_FIELD)
#undef HAL_FIELD
} hal_plugin_entries;

/* Reads the main table, as far as its size goes. */
static inline void hal_plugin_entries_read(hal_plugin_entries *entries, const hal_plugin *table,
                                           hal_plugin_instance *instance)
{
    *entries = (hal_plugin_entries){.instance = instance, .size = table->size, .abi = table->abi};
#define HAL_READ(entry) entries->entry = HAL_PLUGIN_HAS(table, entry) ? table->entry : 0;
    HAL_READ(name)
    HAL_READ(version)
    HAL_READ(build_id)
    HAL_READ(ir_version)
    HAL_READ(query_extension)
    HAL_REQUIRED_ENTRIES(HAL_READ)
#undef HAL_READ
}

/* Asks for the extensions and reads their tables. Returns null, or the name of an extension whose
 * table is of another major version. */
static inline const char *hal_plugin_entries_extend(hal_plugin_entries *entries)
{
    const char *wrong = 0;
    uint32_t bit = 0;
    if (!entries->query_extension) {
        return 0;
    }
#define HAL_ASK(extension, name, needed)                                                          \
    const hal_extension_##extension *extension =                                                  \
        (const hal_extension_##extension *)entries->query_extension(entries->instance, name, 1);  \
    if (extension && (extension->size < 2 * sizeof(uint32_t) || extension->version >> 16 != 1)) { \
        wrong = name;                                                                             \
        extension = 0;                                                                            \
    }                                                                                             \
    entries->extensions |= (uint32_t)(extension != 0) << bit++;
    HAL_EXTENSIONS(HAL_ASK)
#undef HAL_ASK
#define HAL_READ(extension, entry) \
    entries->entry = extension && HAL_PLUGIN_HAS(extension, entry) ? extension->entry : 0;
    HAL_EXTENSION_ENTRIES(HAL_READ)
#undef HAL_READ
    return wrong;
}

#endif

/* Memory: every kind is plain memory of the host. Entries of the plugin's table. */
#ifndef PLUGINS_CPU_MEMORY_H
#define PLUGINS_CPU_MEMORY_H

#include <hal/plugin.h>
#include <stdbool.h>

struct hal_plugin_memory {
    uint8_t *address;
    uint64_t bytes;
    bool is_mapped;   /* by mmap; else from the heap */
    bool is_imported; /* of others, who free it */
};

hal_status cpu_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
hal_status cpu_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                               hal_plugin_memory **memory);
void cpu_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status cpu_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

hal_status cpu_external_info(hal_plugin_device *device, hal_external_info *info);
hal_status cpu_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                             hal_plugin_memory **memory);
hal_status cpu_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                             hal_memory_handle *handle);

hal_status cpu_part_bytes(hal_plugin_device *device, uint64_t *bytes);
hal_status cpu_memory_reserve(hal_plugin_device *device, uint64_t bytes,
                              hal_plugin_memory **memory);
hal_status cpu_memory_commit(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                             uint64_t bytes);
hal_status cpu_memory_decommit(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes);
hal_status cpu_memory_protect(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes, uint32_t access);

/* Bytes of the machine, or the limit of the process's control group. */
uint64_t cpu_memory_total(void);

#endif

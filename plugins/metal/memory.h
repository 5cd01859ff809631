/* Memory: the object, and its entries. */
#ifndef PLUGINS_METAL_MEMORY_H
#define PLUGINS_METAL_MEMORY_H

#include "device.h"

struct hal_plugin_memory {
    metal_buffer *buffer;
    uint8_t *host; /* null for private memory */
    uint64_t bytes;
};

hal_status metal_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                             uint64_t *total_bytes);
hal_status metal_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                 hal_plugin_memory **memory);
void metal_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status metal_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

#endif

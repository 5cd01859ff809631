/* Memory: the object, and its entries. */
#ifndef PLUGINS_VULKAN_MEMORY_H
#define PLUGINS_VULKAN_MEMORY_H

#include "device.h"

/* A buffer that is bound to a VkDeviceMemory. The usable bytes start `shift` bytes into both, so
 * that their address is aligned. */
struct hal_plugin_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address;      /* of its first byte */
    uint8_t *mapped;              /* its first byte; null where it is not mapped */
    uint64_t bytes, shift, taken; /* usable; before them; of the heap */
    uint32_t heap;
};

hal_status vulkan_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);
hal_status vulkan_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void vulkan_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status vulkan_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

#endif

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
    uint64_t whole;               /* bytes of the VkDeviceMemory */
    uint32_t heap;
    bool is_native;                            /* buffer and memory are others' */
    VkExternalMemoryHandleTypeFlagBits handle; /* of a descriptor that can be exported, or 0 */
};

/* How memory is shared with others; for memory that is not, `chain` is null and `types` 0. */
typedef struct vulkan_sharing {
    VkExternalMemoryHandleTypeFlags types;
    uint32_t type_bits;    /* of memory that can be used */
    uint64_t buffer_bytes; /* of the VkBuffer */
    uint64_t memory_bytes; /* of the VkDeviceMemory; 0: as the buffer requires */
    const void *chain;     /* of VkMemoryAllocateInfo */
} vulkan_sharing;

uint64_t vulkan_memory_padded(uint64_t bytes);
hal_status vulkan_memory_allocate_shared(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                         const vulkan_sharing *sharing, hal_plugin_memory **memory);

hal_status vulkan_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);
hal_status vulkan_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void vulkan_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status vulkan_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

#endif

/* Memory: the object, and its entries. */
#ifndef PLUGINS_CUDA_MEMORY_H
#define PLUGINS_CUDA_MEMORY_H

#include "device.h"
#include "registered.h"

typedef enum cuda_memory_owner {
    CUDA_MEMORY_OWN,
    CUDA_MEMORY_NATIVE,  /* of others, an address of the context */
    CUDA_MEMORY_HOST,    /* of others, memory of the host that is registered */
    CUDA_MEMORY_SHARED,  /* of another API, by a descriptor */
    CUDA_MEMORY_RESERVED /* addresses, see virtual.h */
} cuda_memory_owner;

struct hal_plugin_memory {
    const hal_plugin_device *device;
    cuda_address address;
    void *pointer; /* in the host's address space; null for device memory */
    uint64_t bytes;
    cuda_memory_owner owner;
    cuda_shared_memory shared;       /* of CUDA_MEMORY_SHARED */
    cuda_registration *registration; /* of CUDA_MEMORY_HOST; null: of others too */
    cuda_physical *parts;            /* of CUDA_MEMORY_RESERVED: memory of each part, or 0 */
    uint64_t part_bytes;
};

hal_status cuda_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
hal_status cuda_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory);
void cuda_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
/* Unmaps and frees the parts from `first` on that have memory. The context is current. */
cuda_result cuda_parts_free(hal_plugin_memory *memory, uint64_t first, uint64_t count);
hal_status cuda_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

#endif

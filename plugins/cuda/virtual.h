/* Virtual memory: addresses whose parts get memory and lose it. Entries of the extension. */
#ifndef PLUGINS_CUDA_VIRTUAL_H
#define PLUGINS_CUDA_VIRTUAL_H

#include "memory.h"

hal_status cuda_part_bytes(hal_plugin_device *device, uint64_t *bytes);
hal_status cuda_memory_reserve(hal_plugin_device *device, uint64_t bytes,
                               hal_plugin_memory **memory);
hal_status cuda_memory_commit(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes);
hal_status cuda_memory_decommit(hal_plugin_device *device, hal_plugin_memory *memory,
                                uint64_t offset, uint64_t bytes);
hal_status cuda_memory_protect(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t access);

#endif

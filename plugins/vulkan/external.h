/* Native handles, and memory that others own or share: the entries of the extension. */
#ifndef PLUGINS_VULKAN_EXTERNAL_H
#define PLUGINS_VULKAN_EXTERNAL_H

#include "memory.h"

hal_status vulkan_external_info(hal_plugin_device *device, hal_external_info *info);
hal_status vulkan_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory);
hal_status vulkan_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                                hal_memory_handle *handle);
hal_status vulkan_memory_allocate_shareable(hal_plugin_device *device, uint32_t handle_kind,
                                            uint64_t bytes, hal_plugin_memory **memory);

hal_status vulkan_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle);
hal_status vulkan_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle);
hal_status vulkan_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                const char *type, uint64_t *handle);

#endif

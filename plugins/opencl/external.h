/* Native handles, and memory that others own: the entries of the extension. */
#ifndef PLUGINS_OPENCL_EXTERNAL_H
#define PLUGINS_OPENCL_EXTERNAL_H

#include "memory.h"

hal_status opencl_external_info(hal_plugin_device *device, hal_external_info *info);
hal_status opencl_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory);
hal_status opencl_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                                hal_memory_handle *handle);

hal_status opencl_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle);
hal_status opencl_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle);

hal_status opencl_queue_import(hal_plugin_device *device, const char *type, uint64_t handle,
                               hal_plugin_queue **queue);
hal_status opencl_queue_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle);
hal_status opencl_queue_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle);

hal_status opencl_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                const char *type, uint64_t *handle);

#endif

/* Native handles, and memory that others own: the entries of the extensions. */
#ifndef PLUGINS_CUDA_EXTERNAL_H
#define PLUGINS_CUDA_EXTERNAL_H

#include "memory.h"
#include "queue.h"

hal_status cuda_external_info(hal_plugin_device *device, hal_external_info *info);
hal_status cuda_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory);
hal_status cuda_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                              hal_memory_handle *handle);

hal_status cuda_device_handle(hal_plugin_device *device, const char *type, uint64_t *handle);
hal_status cuda_queue_handle(hal_plugin_queue *queue, const char *type, uint64_t *handle);

/* The stream of a native handle, never null: 0 is the default stream. Errors: UNSUPPORTED. */
hal_status cuda_native_stream(const char *type, uint64_t handle, cuda_stream *stream);
hal_status cuda_queue_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle);
hal_status cuda_queue_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle);

hal_status cuda_kernel_handle(hal_plugin_device *device, hal_plugin_kernel *kernel,
                              const char *type, uint64_t *handle);

#endif

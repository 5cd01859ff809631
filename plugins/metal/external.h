/* Memory that others own: the entries of the extension. */
#ifndef PLUGINS_METAL_EXTERNAL_H
#define PLUGINS_METAL_EXTERNAL_H

#include "memory.h"

hal_status metal_external_info(hal_plugin_device *device, hal_external_info *info);
hal_status metal_memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                               hal_plugin_memory **memory);
hal_status metal_memory_export(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                               hal_memory_handle *handle);

#endif

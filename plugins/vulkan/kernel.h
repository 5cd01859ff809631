/* Kernels: the object, and its entries. */
#ifndef PLUGINS_VULKAN_KERNEL_H
#define PLUGINS_VULKAN_KERNEL_H

#include "device.h"

struct hal_plugin_kernel {
    VkPipeline pipeline;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint32_t argument_bytes;
};

extern const char vulkan_kernel_formats[];
hal_status vulkan_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
hal_status vulkan_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
/* Nothing: drivers tell of pipelines that were made for it only, by names of their own. */
hal_status vulkan_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report);
void vulkan_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

#endif

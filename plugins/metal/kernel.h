/* Kernels: the object, and its entries. */
#ifndef PLUGINS_METAL_KERNEL_H
#define PLUGINS_METAL_KERNEL_H

#include "device.h"

struct hal_plugin_kernel {
    metal_pipeline *pipeline;
    char name[HAL_IR_MAX_NAME + 1];
    uint32_t group[3];
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint32_t argument_bytes; /* of the scalars, padded as the kernel's structure; 0: none */
};

hal_status metal_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel);
hal_status metal_kernel_create_native(hal_plugin_device *device, const char *format,
                                      const void *code, uint64_t bytes, const char *entry,
                                      const hal_ir_kernel *signature, hal_plugin_kernel **kernel);
void metal_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

#endif

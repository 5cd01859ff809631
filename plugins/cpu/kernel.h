/* Kernels: executables of IR, and native matrix products. Entries of the plugin's table. */
#ifndef PLUGINS_CPU_KERNEL_H
#define PLUGINS_CPU_KERNEL_H

#include "executable.h"
#include "gemm/product.h"

struct hal_plugin_kernel {
    uint64_t number;       /* unique in the process */
    _Atomic uint64_t work; /* nanoseconds of a group or product: estimated, then measured */
    cpu_executable *executable;
    cpu_product *product; /* null: the kernel is an executable */
};

hal_status cpu_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                             hal_plugin_kernel **kernel);
hal_status cpu_kernel_create_product(hal_plugin_device *device,
                                     const hal_gemm_description *description,
                                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes);
hal_status cpu_kernel_report(hal_plugin_device *device, hal_plugin_kernel *kernel,
                             hal_kernel_report *report);
void cpu_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

#endif

/* Native matrix products: the plugin's entry `gemm`. */
#ifndef PLUGINS_CUDA_GEMM_GEMM_H
#define PLUGINS_CUDA_GEMM_GEMM_H

#include "device.h"

/* A loaded kernel, shared by all products with its key until the device is closed. */
typedef struct cuda_gemm_module {
    uint64_t key[2];
    bool is_made; /* else a thread compiles it */
    cuda_module module;
    cuda_function function;
    uint32_t clusters; /* that are on the device at once; of split-K */
    struct cuda_gemm_module *next;
} cuda_gemm_module;

hal_status cuda_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

/* The entry `gemm_workspace`. */
hal_status cuda_gemm_workspace(hal_plugin_device *device, const hal_gemm_description *description,
                               uint64_t *workspace_bytes);

/* The entry `gemm_estimate`; 0 ns for the tile that HAL_CUDA_GEMM names. */
hal_status cuda_gemm_estimate(hal_plugin_device *device, const hal_gemm_description *description,
                              double most_ns, double *nanoseconds);

/* Unloads the modules of a device that is closed; `lost`: its context is gone. */
void cuda_gemm_forget(hal_plugin_device *device, bool lost);

#endif

/* Native matrix products: the plugin's entry `gemm`. */
#ifndef PLUGINS_CUDA_GEMM_GEMM_H
#define PLUGINS_CUDA_GEMM_GEMM_H

#include "device.h"

hal_status cuda_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                     hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

/* The entry `gemm_workspace`. */
hal_status cuda_gemm_workspace(hal_plugin_device *device, const hal_gemm_description *description,
                               uint64_t *workspace_bytes);

/* The entry `gemm_estimate`; 0 ns for the tile that HAL_CUDA_GEMM names. */
hal_status cuda_gemm_estimate(hal_plugin_device *device, const hal_gemm_description *description,
                              double most_ns, double *nanoseconds);

#endif

/* What variables of the environment choose for native matrix products, for measurements. */
#ifndef PLUGINS_CUDA_GEMM_VARIABLES_H
#define PLUGINS_CUDA_GEMM_VARIABLES_H

#include "device.h"

/* Sets the device's gemm_tile, gemm_wait and gemm_loads_text. Errors: INVALID_ARGUMENT. */
hal_status cuda_gemm_read_variables(hal_plugin_device *device);

#endif

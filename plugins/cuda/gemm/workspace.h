/* Memory of a queue for native matrix products. The device's context is current. */
#ifndef PLUGINS_CUDA_GEMM_WORKSPACE_H
#define PLUGINS_CUDA_GEMM_WORKSPACE_H

#include "queue.h"

/* The flags of strict F32 products, where the device has such kernels. */
hal_status cuda_gemm_flags_create(hal_plugin_queue *queue);
/* The memory of parts, when a batch needs it for the first time. */
hal_status cuda_gemm_parts_create(hal_plugin_queue *queue);

#endif

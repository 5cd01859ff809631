/* The choice of the kernel of a strict F32 product. */
#ifndef PLUGINS_CUDA_GEMM_FMA_PLAN_H
#define PLUGINS_CUDA_GEMM_FMA_PLAN_H

#include "gemm/plan.h"

/* Chooses the tile and the number of groups with the least estimated time, a function of the
 * description and the device's number of multiprocessors alone. Errors: UNSUPPORTED, with the
 * reason as the message. */
hal_status cuda_fma_plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                                cuda_gemm_plan *plan);

#endif

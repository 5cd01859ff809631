/* The cost model of the portable kernel on GPUs. */
#ifndef OPS_SRC_GEMM_COST_H
#define OPS_SRC_GEMM_COST_H

#include "candidates.h"

/* The estimated nanoseconds of a candidate, whose `ns` is not read. */
double ops_gemm_estimate_ns(const hal_device_info *info, const ops_gemm_shape *shape,
                            const ops_gemm_candidate *candidate);

#endif

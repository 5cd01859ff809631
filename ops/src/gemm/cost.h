/* The cost model of the portable kernel on GPUs. */
#ifndef OPS_SRC_GEMM_COST_H
#define OPS_SRC_GEMM_COST_H

#include "tiles.h"

/* A way to compute a product with the portable kernel. */
typedef struct ops_gemm_candidate {
    ops_gemm_tiles tiles;        /* of the kernel, or of the one that computes the parts */
    const ops_gemm_rates *rates; /* as ops_gemm_get_tiles gives them */
    uint32_t depth;              /* steps of k of a part; 0: one kernel */
    double ns;                   /* estimated time */
} ops_gemm_candidate;

/* The estimated nanoseconds of a candidate, whose `ns` is not read. */
double ops_gemm_estimate_ns(const hal_device_info *info, const ops_gemm_shape *shape,
                            const ops_gemm_candidate *candidate);

#endif

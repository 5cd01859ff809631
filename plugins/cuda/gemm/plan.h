/* The choice of the kernel of a matrix product, and what its tensor maps describe. */
#ifndef PLUGINS_CUDA_GEMM_PLAN_H
#define PLUGINS_CUDA_GEMM_PLAN_H

#include "device.h"
#include "gemm/tile/key.h"

/* A matrix as a tensor map sees it: contiguous along `inner`. */
typedef struct cuda_gemm_operand {
    hal_type type;
    int64_t inner, outer, leading, batch_stride; /* elements */
    uint32_t batch;                              /* matrices; 1 where all products share it */
    uint32_t box_inner, box_outer;
} cuda_gemm_operand;

typedef struct cuda_gemm_plan {
    hal_gemm_description product; /* the transposed one where the key says swapped */
    cuda_gemm_key key;
    cuda_gemm_operand operands[3];
    uint32_t tiles_m, tiles_n;
    uint32_t raster; /* rows of tiles that are taken together, see gemm/tile/module.h */
    double ns;       /* estimated time */
    /* Of strict F32, see cuda_fma_block: */
    uint32_t groups, rounds, share, longer;
    bool partials; /* groups pass sums through the workspace */
} cuda_gemm_plan;

/* Reasons for which both choices decline a product. */
#define CUDA_GEMM_SLOWER "shape: expected one that the portable kernel multiplies more slowly"
#define CUDA_GEMM_LONG_EPILOGUE \
    "epilogue: expected a short one, with inputs of f32, f16, bf16, i32 or u32"

static inline hal_status cuda_gemm_decline(const char *reason)
{
    return kit_fail(HAL_ERROR_UNSUPPORTED, "cuda: gemm: %s", reason);
}

/* Chooses the kernel with the least estimated time, a function of the description, the device's
 * number of multiprocessors and whether the driver knows clusters. The parts of k are those of the
 * product that neither reads C nor has an epilogue. Errors: UNSUPPORTED, with the reason as the
 * message, also where any plan takes longer than most_ns, above 0. */
hal_status cuda_gemm_plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                                 double most_ns, cuda_gemm_plan *plan);

#endif

/* What a kernel is compiled from in the background, see kernel_ahead.h. */
#include "kernel_ahead.h"

#include "base/status.h"

#include <hal/ir_build.h>
#include <stdlib.h>

static hal_kernel_ahead *ahead_allocate(hal_ir_kernel *ir)
{
    hal_kernel_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead) {
        hal_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory to compile a kernel ahead");
        hal_ir_kernel_destroy(ir);
        return NULL;
    }
    ahead->ir = ir;
    return ahead;
}

hal_kernel_ahead *hal_kernel_ahead_create(hal_ir_kernel *ir,
                                          const hal_kernel_fingerprint *fingerprint)
{
    hal_kernel_ahead *ahead = ahead_allocate(ir);
    if (ahead && fingerprint) {
        ahead->has_fingerprint = true;
        ahead->fingerprint = *fingerprint;
    }
    return ahead;
}

hal_kernel_ahead *hal_kernel_ahead_create_gemm(const hal_gemm_description *gemm,
                                               hal_ir_kernel *epilogue)
{
    hal_kernel_ahead *ahead = ahead_allocate(epilogue);
    if (ahead) {
        ahead->is_gemm = true;
        ahead->gemm = *gemm;
        ahead->gemm.epilogue = epilogue;
    }
    return ahead;
}

void hal_kernel_ahead_destroy(hal_kernel_ahead *ahead)
{
    if (ahead) {
        hal_ir_kernel_destroy(ahead->ir);
        free(ahead);
    }
}

hal_kernel_source hal_kernel_ahead_source(hal_kernel_ahead *ahead)
{
    return ahead->is_gemm ? (hal_kernel_source){.gemm = &ahead->gemm,
                                                .built = ahead->ir,
                                                .workspace_bytes = &ahead->workspace_bytes}
                          : (hal_kernel_source){.ir = ahead->ir, .built = ahead->ir};
}

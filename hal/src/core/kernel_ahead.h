/* What a kernel is compiled from in the background: it belongs to the kernel. */
#ifndef HAL_SRC_CORE_KERNEL_AHEAD_H
#define HAL_SRC_CORE_KERNEL_AHEAD_H

#include "kernel.h"

#include "base/jobs.h"

typedef struct hal_kernel_ahead {
    hal_job job;
    hal_kernel *kernel;
    hal_ir_kernel *ir; /* legalised; of a matrix product the epilogue or null. Kept until the kernel
                        * is compiled */
    bool is_gemm;
    bool has_fingerprint;
    hal_gemm_description gemm;
    uint64_t workspace_bytes;
    hal_kernel_fingerprint fingerprint;
} hal_kernel_ahead;

/* Takes `ir`. `fingerprint` may be null. Null, with a message, without host memory. */
hal_kernel_ahead *hal_kernel_ahead_create(hal_ir_kernel *ir,
                                          const hal_kernel_fingerprint *fingerprint);

/* Takes the epilogue of a checked description, whose epilogue it is, or null. Null, with a message,
 * without host memory. */
hal_kernel_ahead *hal_kernel_ahead_create_gemm(const hal_gemm_description *gemm,
                                               hal_ir_kernel *epilogue);

/* Null is allowed. */
void hal_kernel_ahead_destroy(hal_kernel_ahead *ahead);

/* The source, which refers to `ahead`. */
hal_kernel_source hal_kernel_ahead_source(hal_kernel_ahead *ahead);

#endif

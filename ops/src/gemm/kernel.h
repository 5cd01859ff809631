/* The portable GEMM kernel: one function builds the IR for every tile size, type, layout and
 * epilogue. */
#ifndef OPS_SRC_GEMM_KERNEL_H
#define OPS_SRC_GEMM_KERNEL_H

#include "kernel_key.h"

/* Bytes of shared memory that a key with matrix units needs. */
uint32_t ops_gemm_matrix_bytes(const ops_gemm_kernel_key *key);

/* Emits the kernel; the bindings are declared already. */
void ops_gemm_emit(hal_ir_builder *b, const ops_gemm_kernel_key *key);

/* The scalars of a dispatch, in the order in which the kernel declares them. */
void ops_gemm_put(const ops_gemm_kernel_key *key, const ops_gemm_work *work, ops_block *block);

#endif

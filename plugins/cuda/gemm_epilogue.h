/* The epilogue of the wgmma kernel: from the sums in registers to C. Called by gemm_text.c. */
#ifndef HALYARD_CUDA_GEMM_EPILOGUE_H
#define HALYARD_CUDA_GEMM_EPILOGUE_H

#include "gemm_text.h"
#include "lower_state.h"

/* Whether the further inputs have types that are loaded here, and the fragment is short enough to
 * be written once for each element of a work-item. */
bool cuda_gemm_epilogue_is_supported(const cuda_gemm_key *key);

/* Writes what is done once: scalars, and places in shared memory. `store_offset`: of the boxes of
 * C from register %base, in bytes. */
void cuda_gemm_epilogue_begin(cuda_lowering *l, const cuda_gemm_key *key, uint32_t store_offset);

/* Writes what is done for each tile; the sums are in %f0 and on, in wgmma's layout. */
void cuda_gemm_epilogue_tile(cuda_lowering *l, const cuda_gemm_key *key);

#endif

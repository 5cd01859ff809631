/* The epilogue of the wgmma kernel: from the sums in registers to C, in boxes that leave shared
 * memory by tensor maps, or by rows. */
#ifndef PLUGINS_CUDA_GEMM_END_EPILOGUE_H
#define PLUGINS_CUDA_GEMM_END_EPILOGUE_H

#include "gemm/end/inputs.h"
#include "gemm/tile/key.h"
#include "lower/text.h"

bool cuda_gemm_epilogue_is_supported(const cuda_gemm_key *key);

/* Writes what is done once: scalars, and places in shared memory. */
void cuda_gemm_epilogue_begin(cuda_lowering *l, const cuda_gemm_key *key);

/* Writes what is done for each tile before its sums: the first inputs are loaded meanwhile. */
void cuda_gemm_epilogue_prepare(cuda_lowering *l, const cuda_gemm_key *key,
                                cuda_gemm_inputs *inputs);

/* Writes what is done for each tile; the sums are in %f0 and on, in wgmma's layout. */
void cuda_gemm_epilogue_tile(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs);

/* Writes what a warp does before it ends. */
void cuda_gemm_epilogue_end(kit_text *t, const cuda_gemm_key *key);

#endif

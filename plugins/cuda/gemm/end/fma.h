/* What follows the last stage of a tile, or of a share of it: sums of slices and of other groups,
 * and the store. */
#ifndef PLUGINS_CUDA_GEMM_END_FMA_H
#define PLUGINS_CUDA_GEMM_END_FMA_H

#include "gemm/tile/fma.h"
#include "lower/text.h"

/* Bytes of shared memory behind the stages, for the sums of a tile. */
uint32_t cuda_fma_sums_bytes(const cuda_fma_tile *tile);

/* Whether the epilogue's fragment is short enough, and its inputs have types that are loaded. */
bool cuda_fma_end_is_supported(const cuda_gemm_key *key);

/* Writes the declarations; then the code, which ends before label NEXT_SEGMENT. */
void cuda_fma_end_begin(cuda_lowering *l);
void cuda_fma_end(cuda_lowering *l, const cuda_gemm_key *key);

/* Writes: %row and %column are where tile %tile begins, %inner_row and %inner_column where it is
 * moved to; %batch. */
void cuda_fma_write_place(kit_text *t, const cuda_fma_tile *tile);

#endif

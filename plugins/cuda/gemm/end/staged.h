/* The staged epilogue of the wgmma kernel: the sums go to shared memory, and from there by rows to
 * C. It adds the sums of the groups of a cluster, which share a tile, and needs no tensor map of
 * C. */
#ifndef PLUGINS_CUDA_GEMM_END_STAGED_H
#define PLUGINS_CUDA_GEMM_END_STAGED_H

#include "gemm/tile/key.h"
#include "lower/text.h"

bool cuda_gemm_staged_is_supported(const cuda_gemm_key *key);

/* Writes what is done once. */
void cuda_gemm_staged_begin(cuda_lowering *l, const cuda_gemm_key *key);

/* Writes what is done for each tile; the sums are in %f0 and on, in wgmma's layout. They replace
 * the stages of the ring, which the producer fills again after all have arrived at `drained`. */
void cuda_gemm_staged_tile(cuda_lowering *l, const cuda_gemm_key *key);

/* Arrivals of a tile at the barrier `drained`. */
uint32_t cuda_gemm_staged_arrivals(const cuda_gemm_key *key);

/* Writes what a warp does before it ends: other groups may be reading this group's sums. */
void cuda_gemm_staged_end(kit_text *t, const cuda_gemm_key *key);

#endif

/* Bytes across k, which the units take along k only: an A through registers, a B that converting
 * warps write again. */
#ifndef PLUGINS_CUDA_GEMM_TILE_BYTES_H
#define PLUGINS_CUDA_GEMM_TILE_BYTES_H

#include "gemm/tile/key.h"

#include <kit/text.h>

/* Writes: %place_a is where a work-item's line of A is in a stage; the 16 rows of a warp are a
 * piece of the line. A work-item has two neighbours of these rows. */
void cuda_gemm_bytes_begin(kit_text *t);

/* Loads 32 elements of k x 16 bytes at register `from`, of step `step` of a stage, into registers
 * %a`first` and three more: of the first row and the second one, k and then 16 more. */
void cuda_gemm_bytes_load(kit_text *t, const char *from, uint32_t step, uint32_t first);

/* Writes the B along n of stage %stage along k. A warp takes 16 columns in turn. */
void cuda_gemm_bytes_convert(kit_text *t, const cuda_gemm_key *key);

#endif

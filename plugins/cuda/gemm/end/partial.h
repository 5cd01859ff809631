/* Sums of parts of k that are added through device memory.
 *
 * Every group writes the sums of its part to memory and tells the tile's word. A group waits for
 * the others of its tile, and adds a slice of the tile, whose sums it keeps, only if all of them
 * have begun: they are on the device then, and end without waiting for groups that are not. Else it
 * leaves its slice to the group that is the last to write. Whichever group adds a slice adds the
 * parts in the order of k, so that the bits do not depend on time. The last group to go on makes
 * the word 0 again. */
#ifndef PLUGINS_CUDA_GEMM_END_PARTIAL_H
#define PLUGINS_CUDA_GEMM_END_PARTIAL_H

#include "gemm/tile/key.h"
#include "lower/text.h"

/* Columns of a tile are added in blocks of 8: a work-item has 4 sums of each. */
enum { CUDA_GEMM_BLOCK_COLUMNS = 8 };

bool cuda_gemm_partial_is_supported(const cuda_gemm_key *key);

/* Blocks of the largest slice. */
uint32_t cuda_gemm_partial_blocks(const cuda_gemm_key *key);

/* Writes the declarations; what is done before the sums of a tile. */
void cuda_gemm_partial_begin(kit_text *t);
void cuda_gemm_partial_begin_tile(kit_text *t, const cuda_gemm_key *key);

/* Writes what the copying work-item does after its last copy of a tile: it asks whether all groups
 * of the tile have begun, until they have or the sums are there. */
void cuda_gemm_partial_ask(kit_text *t, const cuda_gemm_key *key);

/* Writes what is done with the sums in %f0 and on. %slices then has a bit for each slice that this
 * group adds. A work-item's sums are in shared memory from %spot on (gemm/end/staged.c). */
void cuda_gemm_partial_exchange(cuda_lowering *l, const cuda_gemm_key *key);

/* Takes a slice from %slices: blocks %first_block to %end_block, which it adds and stores in
 * shared memory. */
void cuda_gemm_partial_add(cuda_lowering *l, const cuda_gemm_key *key);

/* Writes what is done after the tile is stored. */
void cuda_gemm_partial_end_tile(kit_text *t);

#endif

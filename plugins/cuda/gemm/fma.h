/* The PTX of strict F32 products by multiply-adds, for compute capability 9.0.
 *
 * A kernel is persistent: each group multiplies whole tiles of C in turn, and then an equal share
 * of the stages of k of the last tiles (stream-K), so that all multiprocessors end at the same
 * time. A group whose share begins inside a tile writes its sums to the workspace; the group that
 * has the tile's first stage adds them in the order of k, so that the bits do not depend on time.
 * Flags in the memory of the queue tell that sums are there; each is 0 again when the kernel ends.
 * A group waits for groups whose place in the grid is lower alone. Devices start groups in that
 * order, which CUDA does not promise, so they run already.
 *
 * Tiles at the lower and right edge of C are moved inside, and store their part alone, so that
 * loads need no bounds; a tile is no larger than C. */
#ifndef PLUGINS_CUDA_GEMM_FMA_H
#define PLUGINS_CUDA_GEMM_FMA_H

#include "gemm/tile/fma.h"

#include <kit/text.h>

/* Bytes of shared memory of a group. */
uint32_t cuda_fma_shared_bytes(const cuda_gemm_key *key);

/* Whether the text can be written: the epilogue's records and inputs. */
bool cuda_fma_is_supported(const cuda_gemm_key *key);

/* Appends the PTX. Memory: of text->host. Threads: any, each on its own text.
 * Errors, with their message given to the host: UNSUPPORTED for a record of the epilogue that the
 * lowering does not know; OUT_OF_MEMORY. */
hal_status cuda_fma_write(const cuda_gemm_key *key, kit_text *text);

#endif

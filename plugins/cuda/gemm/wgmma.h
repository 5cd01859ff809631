/* The PTX of matrix products on the warpgroup units (wgmma) of compute capability 9.0.
 *
 * A kernel is persistent: each group takes tiles of C in turn. One warpgroup copies tiles of A and
 * B into a ring of stages, through tensor maps or without (`direct`); two warpgroups multiply, and
 * write C. Shapes, strides and addresses are parameters, so that a new shape needs no new kernel.
 *
 * A kernel may compute the transpose, C' = B' A' (`swapped`); m, n, A and B are then those of the
 * transposed product. Groups may share a tile: each sums a part of k, and adds all parts of a slice
 * of the tile in the order of k (`split`), in a cluster or through memory (`in_memory`). */
#ifndef PLUGINS_CUDA_GEMM_WGMMA_H
#define PLUGINS_CUDA_GEMM_WGMMA_H

#include "gemm/tile/key.h"

#include <kit/text.h>

/* Whether the text can be written: types, layouts, tile and the records of the epilogue. */
bool cuda_gemm_is_supported(const cuda_gemm_key *key);

/* Appends the PTX. Memory: of text->host. Threads: any, each on its own text.
 * Errors, with their message given to the host: UNSUPPORTED for a record of the epilogue that the
 * lowering does not know; OUT_OF_MEMORY. */
hal_status cuda_gemm_write(const cuda_gemm_key *key, kit_text *text);

#endif

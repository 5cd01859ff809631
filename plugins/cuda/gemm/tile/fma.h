/* The tiles of strict F32 products. */
#ifndef PLUGINS_CUDA_GEMM_TILE_FMA_H
#define PLUGINS_CUDA_GEMM_TILE_FMA_H

#include "gemm/tile/key.h"

/* A work-item has thread_m x thread_n sums, in strips of 4 rows and columns; lanes_m x lanes_n
 * work-items are a warp, warps_m x warps_n warps a slice; slices take `depth` / slices steps of k
 * of a stage each, and add their sums in order. */
typedef struct cuda_fma_tile {
    uint16_t rows, columns;
    uint8_t thread_m, thread_n, lanes_m, lanes_n, warps_m, warps_n, slices, depth, stages;
    uint8_t groups; /* of a multiprocessor */
} cuda_fma_tile;

enum {
    CUDA_FMA_TILES = 4,
    CUDA_FMA_THREADS = 256,
    CUDA_FMA_MAX_GROUPS = CUDA_FMA_THREADS /* a work-item waits for each other one */
};

/* The tile of a key with `tile` 1 to CUDA_FMA_TILES. */
const cuda_fma_tile *cuda_fma_tile_of(const cuda_gemm_key *key);

/* Bytes of the sums of a tile, which a group leaves in the workspace. */
uint32_t cuda_fma_partial_bytes(const cuda_gemm_key *key);

#endif

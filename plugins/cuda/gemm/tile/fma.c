/* The tiles of strict F32 products, see gemm/tile/fma.h. */
#include "gemm/tile/fma.h"

static const cuda_fma_tile tiles[CUDA_FMA_TILES] = {
    /* rows columns thread lanes warps slices depth stages groups */
    {128, 256, 8, 16, 4, 8, 4, 2, 1, 8, 3, 1},
    {256, 128, 16, 8, 8, 4, 2, 4, 1, 8, 3, 1},
    {64, 128, 8, 16, 8, 4, 1, 2, 4, 32, 3, 1},
    {128, 64, 16, 8, 4, 8, 2, 1, 4, 32, 3, 1},
};

const cuda_fma_tile *cuda_fma_tile_of(const cuda_gemm_key *key)
{
    return &tiles[key->tile - 1];
}

uint32_t cuda_fma_partial_bytes(const cuda_gemm_key *key)
{
    const cuda_fma_tile *tile = cuda_fma_tile_of(key);
    return (uint32_t)tile->rows * tile->columns * 4;
}

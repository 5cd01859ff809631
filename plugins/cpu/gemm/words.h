/* Tiles of 16 x 16 words in registers, for what packs the panels of pair_kernels.h by AVX-512. */
#ifndef PLUGINS_CPU_GEMM_WORDS_H
#define PLUGINS_CPU_GEMM_WORDS_H

#include "gemm/pair_kernels.h"
#include "gemm/vec.h"

#include <immintrin.h>

enum { TILE = CPU_PAIRS_TILE, HALF = CPU_PAIRS_BLOCK_BYTES / 2 };

static inline int least(int64_t a, int b)
{
    return a < b ? (int)a : b;
}

/* Transposes 16 x 16 words by four perfect shuffles. */
ALWAYS_INLINE void words_transpose(__m512i words[TILE])
{
    const __m512i lo = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i hi =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    __m512i mixed[TILE];
    UNROLL
    for (int round = 1; round < TILE; round *= 2) {
        UNROLL
        for (int i = 0; i < TILE / 2; i++) {
            mixed[2 * i] = _mm512_permutex2var_epi32(words[i], lo, words[i + TILE / 2]);
            mixed[2 * i + 1] = _mm512_permutex2var_epi32(words[i], hi, words[i + TILE / 2]);
        }
        UNROLL
        for (int i = 0; i < TILE; i++) {
            words[i] = mixed[i];
        }
    }
}

#endif

/* The product of two panels of pair_kernels.h by AVX-512, whatever adds the products of words. */
#ifndef PLUGINS_CPU_GEMM_PANELS_H
#define PLUGINS_CPU_GEMM_PANELS_H

#include "gemm/words.h"

enum { PANEL_STRIP = 8, PANEL_SHORT = 4 }; /* rows whose sums are in registers */

/* A word of A, in all lanes, and words of B: added to the sums of a row, f32 or i32. */
typedef __m512i words_add(__m512i sums, __m512i a, __m512i b);

/* The number of words that hold elements in a block, with `elements` left along k. */
static inline int words_of(int64_t elements, int depth)
{
    const int in_word = depth / TILE;
    return (least(elements, depth) + in_word - 1) / in_word;
}

/* The sums of a row of the panel of A and a tile of columns. */
static inline char *row_sums(void *sums, int row, int tile)
{
    return (char *)sums + (row / TILE * 2 + tile) * HALF + row % TILE * CPU_PAIRS_LINE_BYTES;
}

/* Some rows, which are in one tile, times one or two tiles of columns. */
ALWAYS_INLINE void rows_multiply(const struct cpu_pairs_product *p, int row, const int rows,
                                 const int tiles, const int depth, const __m512i begin[2],
                                 words_add *add)
{
    const char *a = (const char *)p->a + row * CPU_PAIRS_LINE_BYTES, *b = p->b;
    __m512i sums[PANEL_STRIP][2];
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int i = 0; i < tiles; i++) {
            sums[r][i] =
                p->first
                    ? begin[i]
                    : _mm512_add_epi32(begin[i], _mm512_load_si512(row_sums(p->sums, row + r, i)));
        }
    }
    for (int64_t k = 0; k < p->k; k += depth) {
        const int words = words_of(p->k - k, depth);
        for (int word = 0; word < words; word++) {
            __m512i of_b[2];
            UNROLL
            for (int i = 0; i < tiles; i++) {
                of_b[i] = _mm512_load_si512(b + i * HALF + word * CPU_PAIRS_LINE_BYTES);
            }
            UNROLL
            for (int r = 0; r < rows; r++) {
                int32_t of_a;
                memcpy(&of_a, a + r * CPU_PAIRS_LINE_BYTES + word * 4, sizeof of_a);
                UNROLL
                for (int i = 0; i < tiles; i++) {
                    sums[r][i] = add(sums[r][i], _mm512_set1_epi32(of_a), of_b[i]);
                }
            }
        }
        a += CPU_PAIRS_BLOCK_BYTES;
        b += CPU_PAIRS_BLOCK_BYTES;
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        UNROLL
        for (int i = 0; i < tiles; i++) {
            _mm512_store_si512(row_sums(p->sums, row + r, i), sums[r][i]);
        }
    }
}

/* `begin` is added to the sums of each row, by tiles: zeros for sums of f32. */
ALWAYS_INLINE void panels_multiply(const struct cpu_pairs_product *p, const int depth,
                                   const __m512i begin[2], words_add *add)
{
    const bool two = p->cols > TILE;
    int row = 0;
    for (; row + PANEL_SHORT < p->rows; row += PANEL_STRIP) {
        if (two) {
            rows_multiply(p, row, PANEL_STRIP, 2, depth, begin, add);
        } else {
            rows_multiply(p, row, PANEL_STRIP, 1, depth, begin, add);
        }
    }
    if (row < p->rows && two) {
        rows_multiply(p, row, PANEL_SHORT, 2, depth, begin, add);
    } else if (row < p->rows) {
        rows_multiply(p, row, PANEL_SHORT, 1, depth, begin, add);
    }
}

#endif

/* Products of bf16 matrices by matrix units that add two products at a time: the layout of packed
 * operands and the routines. Filled in by gemm_micro_amx.c, used by gemm_plan.c and gemm_pairs.c.
 *
 * Words are pairs of neighbours along k. A tile is 16 x 16 words: of A 16 rows, each with 16 pairs,
 * of B 16 pairs, each of 16 columns. A panel is 32 rows of A or 32 columns of B: two tiles for each
 * block of 32 elements of k, zero where the matrix ends. */
#ifndef HALYARD_CPU_GEMM_PAIR_KERNELS_H
#define HALYARD_CPU_GEMM_PAIR_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CPU_PAIRS_SIDE = 32,          /* rows or columns of a panel */
    CPU_PAIRS_DEPTH = 32,         /* elements of k in a block */
    CPU_PAIRS_TILE = 16,          /* rows, words of a row */
    CPU_PAIRS_BLOCK_BYTES = 2048, /* of a panel, for one block of k */
    CPU_PAIRS_SUM_BYTES = 4096    /* of the sums of two panels: 2 x 2 tiles of f32 */
};

/* What a panel is packed from: `count` rows of A or columns of B, k elements of each. */
struct cpu_pairs_source {
    const uint16_t *data;
    int64_t ld;
    int count;
    int64_t k;
    bool k_contiguous;
};

/* The product of two panels with `blocks` blocks of k. */
struct cpu_pairs_product {
    float *sums; /* 2 x 2 tiles: added to, but with `first` overwritten */
    const void *a, *b;
    int64_t blocks;
    bool first, two_rows, two_cols; /* tiles that are computed: the second ones if set */
};

typedef void cpu_pairs_multiply(const struct cpu_pairs_product *product);

/* The routines of a matrix unit. */
struct cpu_pairs_kernels {
    /* Packs a panel and returns the least biased exponent of its non-zero elements: 0 where one is
     * denormal, above 255 where all are zero. */
    uint32_t (*pack_a)(void *panel, const struct cpu_pairs_source *source);
    uint32_t (*pack_b)(void *panel, const struct cpu_pairs_source *source);
    /* sums += A B. For each block of k, an element adds its products at even k to each other in
     * order, then those at odd k, and adds the sum of both to the element. `multiply` treats
     * denormal operands as zero and flushes denormal sums to it; `emulate` is IEEE arithmetic. */
    cpu_pairs_multiply *multiply, *emulate;
    /* The calling thread gets the unit's registers before `multiply`, and returns them. */
    void (*begin)(void);
    void (*end)(void);
};

/* The units of AMX; null unless the processor has them and the system lets the process use them. */
const struct cpu_pairs_kernels *cpu_pairs_amx(void);

/* Emulation by AVX-512, with the same bits. */
extern const struct cpu_pairs_kernels cpu_pairs_emulated;

#endif

/* Products of bf16 and of 8-bit matrices by units that add two or four products at a time: the
 * layout of packed operands and the routines. Filled in by gemm/micro_amx.c, gemm/micro_bf16.c and
 * gemm/micro_vnni.c.
 *
 * Words of 32 bits are pairs of neighbours along k, or fours of bytes. A tile is 16 x 16 words: of
 * A 16 rows, each with 16 words, of B 16 words, each of 16 columns. A panel is 32 rows of A or 32
 * columns of B: two tiles for each block of 32 elements of k, or of 64 bytes. Words of B are zero
 * where the matrix ends. */
#ifndef PLUGINS_CPU_GEMM_PAIR_KERNELS_H
#define PLUGINS_CPU_GEMM_PAIR_KERNELS_H

#include "gemm/kernels.h"

enum {
    CPU_PAIRS_SIDE = 32,          /* rows or columns of a panel */
    CPU_PAIRS_TILE = 16,          /* rows, words of a row */
    CPU_PAIRS_BLOCK_BYTES = 2048, /* of a panel, for one block of k */
    CPU_PAIRS_LINE_BYTES = 64,    /* of a row of a tile: the elements of k in a block */
    CPU_PAIRS_SUM_BYTES = 4096    /* of the sums of two panels: 2 x 2 tiles of f32 or i32 */
};

/* What a panel is packed from: `count` rows of A or columns of B, k elements of each. */
struct cpu_pairs_source {
    const void *data;
    int64_t ld; /* in elements */
    int count;
    int64_t k;
    bool k_contiguous;
};

/* The product of two panels. */
struct cpu_pairs_product {
    void *sums; /* 2 x 2 tiles: added to, but with `first` overwritten */
    const void *a, *b;
    int64_t k; /* elements: the last block may have fewer */
    bool first;
    int rows, cols; /* of the panels, up to 32; others may be computed as well */
};

typedef void cpu_pairs_multiply(const struct cpu_pairs_product *product);

/* The routines of a unit. */
struct cpu_pairs_kernels {
    int depth; /* elements of k in a block */
    /* Packs a panel and returns the least biased exponent of its non-zero elements: 0 where one is
     * denormal, above 255 where all are zero, or integers. */
    uint32_t (*pack_a)(void *panel, const struct cpu_pairs_source *source);
    uint32_t (*pack_b)(void *panel, const struct cpu_pairs_source *source);
    /* sums += A B. `multiply` treats denormal operands as zero and flushes denormal sums to it;
     * `emulate` is IEEE arithmetic in the same order. */
    cpu_pairs_multiply *multiply, *emulate;
    /* The calling thread gets the unit's registers before `multiply`, and returns them. */
    void (*begin)(void);
    void (*end)(void);
};

uint32_t cpu_pairs_pack_a(void *panel, const struct cpu_pairs_source *source);
uint32_t cpu_pairs_pack_b(void *panel, const struct cpu_pairs_source *source);

/* The units of AMX; null unless the processor has them and the system lets the process use them.
 * For each block of k, an element adds its products at even k to each other in order, then those at
 * odd k, and adds the sum of both to the element. The emulation by AVX-512 has the same bits. */
const struct cpu_pairs_kernels *cpu_pairs_amx(void);
extern const struct cpu_pairs_kernels cpu_pairs_amx_emulated;

/* The dot products of AVX512_BF16; null unless the processor has them. For each pair along k, an
 * element adds the product at odd k, then that at even k. The emulation has the same bits. */
const struct cpu_pairs_kernels *cpu_pairs_bf16(void);
extern const struct cpu_pairs_kernels cpu_pairs_bf16_emulated;

/* The dot products of AVX512_VNNI, of i8 or of u8; null unless the processor has them. Sums are
 * exact modulo 2^32, and so is what is stored: alpha and beta are whole numbers. */
const struct cpu_pairs_kernels *cpu_pairs_vnni(enum cpu_gemm_type type);
cpu_gemm_store cpu_vnni_store;

/* Stores f32 as bf16 by the conversions of AVX512_BF16, with the bits of cpu_gemm_kernels.store;
 * null unless the processor has them. */
cpu_gemm_store *cpu_bf16_store(void);

/* Whether products by them are faster than by f32 multiply-adds. Those of AMD have the same rate as
 * multiply-adds; a Xeon with AMX takes 1.1 to 1.6 times as long by them. */
bool cpu_pairs_bf16_is_fast(void);

#endif

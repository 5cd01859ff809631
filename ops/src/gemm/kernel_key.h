/* Everything that a portable GEMM kernel depends on, and what one dispatch of it computes. */
#ifndef OPS_SRC_GEMM_KERNEL_KEY_H
#define OPS_SRC_GEMM_KERNEL_KEY_H

#include "separable.h"
#include "tensor/expression.h"
#include "tensor/indexing.h"
#include "tuning/gemm.h"

#include <ops/quantised.h>

#define OPS_GEMM_MAX_INPUTS (OPS_MAX_INPUTS - 4u)

/* Parts of k are multiples of that many steps, so that they start aligned. */
#define OPS_GEMM_DEPTH_STEP 64u

OPS_KEY_STRUCTURES_BEGIN
/* A or B. A line is a row of A or a column of B. */
typedef struct ops_gemm_operand {
    uint8_t k_contiguous; /* neighbours in memory are neighbours in k; else in the line */
    uint8_t width;        /* elements of one access */
    uint8_t any_layout;   /* the strides of lines and of k are scalars; k_contiguous is 0 */
    uint8_t line_digits;  /* of a separable operand (separable.h), which has no strides; else 0 */
    uint8_t k_digits;
    uint8_t reserved[3]; /* 0 */
} ops_gemm_operand;

/* A B of narrow elements with scales, see ops/quantised.h and emit_quantised.c. */
typedef struct ops_gemm_quantisation {
    uint8_t format;     /* an ops_quantised_format; 0: B has the type of A */
    uint8_t by_words;   /* B is read by words of 4 bytes, and bound as such; else by bytes */
    uint8_t is_blocked; /* scales change along k */
    uint8_t has_zeros;  /* a tensor of them */
    uint8_t scales_are_exponents;  /* U8: powers of two */
    uint8_t scale_slot, zero_slot; /* bindings */
    uint8_t has_denormals;         /* the device has them: floats are decoded by a product */
} ops_gemm_quantisation;

typedef struct ops_gemm_kernel_key {
    const ops_expression *epilogue; /* null: none; in the cache key by its hash */
    ops_gemm_tiles tiles;           /* from here on, the bytes are part of the cache key */
    ops_gemm_operand a, b;
    hal_type type_ab, type_c, accumulator;
    uint8_t index64; /* indices have 64 bits */
    uint8_t whole;   /* the matrices are multiples of the tiles: no guards */
    uint8_t fused;   /* multiply and add are one operation; else each rounds */
    uint8_t alpha_is_one;
    uint8_t beta_is_zero;
    uint8_t scale_only; /* k is 0: C = epilogue(beta C), neither A nor B is read */
    uint8_t split_k;    /* `part` is a scalar: batch i takes k steps of k_all from i * part on */
    uint8_t reduce_partials; /* adds k partial sums of each element, which B holds; A is B */
    uint8_t swapped;         /* rows are the caller's columns */
    uint8_t width_c;         /* elements of one access to C: 1 or strip_n */
    uint8_t unit_c;          /* neighbouring columns of C are neighbours in memory */
    uint8_t input_count;     /* further inputs of the epilogue */
    uint8_t slots[3 + OPS_GEMM_MAX_INPUTS]; /* bindings of A, B, C and the further inputs */
    uint8_t row_step[OPS_GEMM_MAX_INPUTS];  /* OPS_INNER_* of the further inputs */
    uint8_t column_step[OPS_GEMM_MAX_INPUTS];
    uint8_t in_loops;    /* a general kernel whose text has loops instead of copies */
    uint8_t c_digits;    /* of the columns of C, in place of their stride; else 0 */
    uint8_t grouped;     /* rows have groups with a B each, see emit_groups.c */
    uint8_t offset_slot; /* binding of the groups' first rows */
    /* Of a quantised B that matrix units multiply: words that a lane reads at once, which lanes
     * exchange or not, and turns that it is ahead; turns of A in shared memory, which are all, and
     * rows of it in a tile, a power of two, of which others are repetitions. */
    uint8_t unit_words, unit_exchanged, unit_ahead, unit_turns, unit_has_all, unit_rows;
    ops_gemm_quantisation quantisation;
} ops_gemm_kernel_key;
OPS_KEY_STRUCTURES_END

/* Element (row, column, batch) of a matrix is at base + row * row_stride + ..., or at base + the
 * places of a separable operand's line and k. */
typedef struct ops_gemm_place {
    int64_t base, row_stride, column_stride, batch_stride;
    const ops_gemm_separable *separable; /* or null */
} ops_gemm_place;

/* The scalars of a kernel with tiles.any_slices, whose group has tiles.lanes_n work-items, at most
 * OPS_GEMM_ANY_ITEMS, of OPS_GEMM_ANY_COLUMNS neighbours of tiles.thread_m rows. A kernel
 * in_loops that stages has `turn`, and whether lanes that copy A and B are neighbours along k. */
#define OPS_GEMM_ANY_ITEMS 256u
#define OPS_GEMM_ANY_COLUMNS 4u
typedef struct ops_gemm_slices {
    uint32_t block_m, block_n; /* of a block */
    uint32_t width;            /* elements of C of a slice of k, apart from thread_m */
    uint32_t steps;            /* of k that a slice takes at once */
    uint32_t stride;           /* that all slices take at once */
    uint32_t turn;             /* that the special kernel takes at once: it adds zeros beyond k */
    uint32_t parts;            /* as in emit_intra_group.c */
    uint32_t first_pairs;      /* logarithm of the slices of a part */
    uint32_t last_pairs;       /* the same of the parts */
    uint32_t a_along_k, b_along_k;
} ops_gemm_slices;

/* Groups of rows: rows offsets[i] to offsets[i + 1] - 1 of A and C are those of group i. */
typedef struct ops_gemm_groups {
    uint32_t count, steps;  /* 2^steps is at least the count */
    uint32_t block;         /* rows of a tile */
    ops_gemm_place offsets; /* by columns */
} ops_gemm_groups;

/* One dispatch of the kernel. */
typedef struct ops_gemm_work {
    double alpha, beta;
    uint32_t m, n, k;
    uint32_t k_all;                  /* k of the whole product, of which split-K computes k */
    uint32_t part;                   /* steps of k from batch to batch: k with split-K, else 0 */
    uint32_t row_first, batch_first; /* with groups: the first tile of rows, 0 */
    ops_gemm_place a, b, c, inputs[OPS_GEMM_MAX_INPUTS];
    ops_gemm_slices slices;
    ops_gemm_place scales, zeros; /* of a quantised B: rows are blocks of k */
    uint32_t block_shift;         /* logarithm of the steps of a block */
    double zero;                  /* of all weights */
    ops_gemm_groups groups;
} ops_gemm_work;

/* A work-item of the kernel of a quantised B takes that many columns, steps of k at once, and rows
 * at most. */
#define OPS_GEMM_QUANTISED_COLUMNS 4u
#define OPS_GEMM_QUANTISED_STEPS 8u
#define OPS_GEMM_QUANTISED_ROWS 8u
#define OPS_GEMM_QUANTISED_AHEAD 4u /* turns, of the kernel for matrix units */

/* The bits of 2^23, whose mantissa has the unit in its last place. */
#define OPS_GEMM_QUANTISED_MAGIC 0x4b000000u

/* Bytes of the narrower of the accesses to A and B. */
static inline uint32_t ops_gemm_access_bytes(const ops_gemm_kernel_key *key)
{
    const uint32_t width = key->a.width < key->b.width ? key->a.width : key->b.width;
    return width * hal_type_size(key->type_ab);
}

static inline uint64_t ops_gemm_blocks(uint64_t length, uint32_t block)
{
    return (length + block - 1) / block;
}

#endif

/* All that a portable kernel of a matrix product depends on, and what one dispatch of it computes.
 * Shared by the choice of tiles and by what emits kernels. */
#ifndef OPS_SRC_GEMM_PLAN_H
#define OPS_SRC_GEMM_PLAN_H

#include "tensor/expression.h"
#include "tensor/indexing.h"

#define OPS_GEMM_MAX_INPUTS (OPS_MAX_INPUTS - 4u)

/* How C is divided. A work-item computes thread_m x thread_n elements, in strips of strip_m x
 * strip_n neighbours; the strips of a work-item lie as far apart as the strips of its warp reach,
 * so that neighbouring work-items touch neighbouring memory. All sizes are powers of two.
 *
 * stages 0: work-items read A and B directly, block_k steps of k at a time: right where all
 * work-items of a group share the rows of A and run along the columns of B in lock-step.
 * Otherwise tiles of A and B, block_k deep, pass through a ring of so many tiles in shared memory:
 * with 2 through registers, with more by asynchronous copies. `slices` parts of the group each sum
 * their share of every tile's steps; they meet in shared memory at the end.
 * `unroll` (with stages 0): slices of k that meet in shared memory, without staging. Each takes
 * block_k steps of k in turn, and has the loads of so many turns in flight at once. */
typedef struct ops_gemm_tiles {
    uint16_t block_m, block_n, block_k;
    uint8_t thread_m, thread_n;
    uint8_t strip_m, strip_n;
    uint8_t lanes_m, lanes_n; /* work-items of a warp along rows and columns; 0: of the group */
    uint8_t stages;
    uint16_t intra_group_split_k;
    uint8_t min_groups_per_unit; /* hint: groups that a compute unit should hold; 0: no wish */
    uint8_t unroll;              /* 0: not sliced alone */
    uint8_t matrix; /* products of matrix units that make one of F32, 3 or 1, or 1 of halves; 0:
                     * multiply-add. Lanes are 8 x 4 and strips 1 x 8, or 1 x 2 where B lies along
                     * k: what a lane holds of the units' tiles (gemm/emit_matrix.c) */
    uint16_t speed; /* relative throughput of a full device; 0: of intra-group split-K */
    uint8_t flush;  /* the units' sums of a tile begin at zero and are added to the lasting ones */
} ops_gemm_tiles;

/* A or B: A counts rows as its lines, B columns. */
typedef struct ops_gemm_operand {
    uint8_t k_contiguous; /* neighbours in memory are neighbours in k; else in the line */
    uint8_t width;        /* elements of one access */
} ops_gemm_operand;

/* All that the kernel depends on. */
typedef struct ops_gemm_plan {
    ops_gemm_tiles tiles;
    ops_gemm_operand a, b;
    hal_type type_ab, type_c, accumulator;
    uint8_t index64; /* 64-bit indices */
    uint8_t whole;   /* the tiles cover the matrices without a rest */
    uint8_t fused;   /* the device's multiply-add is; elsewhere product and sum round one by one */
    uint8_t alpha_is_one;
    uint8_t beta_is_zero;
    uint8_t scale_only; /* k is 0: C = epilogue(beta C), neither A nor B is read */
    uint8_t split_k;    /* batch i takes the i-th k steps of k_all, the last one perhaps fewer */
    /* B holds partial sums of k parts, which are added; A is the same, and its stride that from row
     * to row. */
    uint8_t reduce_partials;
    uint8_t swapped;     /* the caller's rows are the columns here */
    uint8_t width_c;     /* elements of one access to C: 1 or strip_n */
    uint8_t unit_c;      /* neighbouring columns of C are neighbours in memory */
    uint8_t input_count;                    /* further inputs of the epilogue */
    uint8_t slots[3 + OPS_GEMM_MAX_INPUTS]; /* bindings of A, B, C and the further inputs */
    uint8_t row_step[OPS_GEMM_MAX_INPUTS];  /* OPS_INNER_* of the further inputs */
    uint8_t column_step[OPS_GEMM_MAX_INPUTS];
    const ops_expression *epilogue;
} ops_gemm_plan;

/* Where a matrix lies: (row, column, batch) at base + row * row_stride + ... elements. */
typedef struct ops_gemm_place {
    int64_t base, row_stride, column_stride, batch_stride;
} ops_gemm_place;

/* What one dispatch of the kernel computes. */
typedef struct ops_gemm_work {
    double alpha, beta;
    uint32_t m, n, k;
    uint32_t k_all; /* k, but in parts of it */
    uint32_t row_first, batch_first;
    ops_gemm_place a, b, c, inputs[OPS_GEMM_MAX_INPUTS];
} ops_gemm_work;

#endif

/* What the files that emit the portable matrix product share: kernel.c (scalars, places of
 * work-items) and emit_staged.c, emit_matrix.c, emit_intra_group.c and emit_direct.c (the sums). */
#ifndef OPS_SRC_GEMM_EMITTER_H
#define OPS_SRC_GEMM_EMITTER_H

#include "plan.h"

#define OPS_GEMM_MAX_SUMS 256u    /* of a work-item */
#define OPS_GEMM_MAX_FRAGMENT 64u /* rows, columns or steps of k that a work-item holds at once */

/* One of A and B while its loads are emitted. Lines are rows of A, columns of B. */
typedef struct ops_gemm_side {
    const ops_gemm_operand *operand;
    hal_ir_memory_id memory;
    uint32_t block, thread, strip;            /* lines of the group, of a work-item, side by side */
    uint32_t lanes;                           /* work-items of a warp along the lines */
    hal_ir_value base, stride;                /* of the dimension that is not contiguous */
    hal_ir_value limit, origin;               /* lines in all, first of the block */
    hal_ir_value first;                       /* of the work-item's lines, within the block */
    hal_ir_value line[OPS_GEMM_MAX_FRAGMENT]; /* direct, sliced: where the lines begin */
} ops_gemm_side;

typedef struct ops_gemm_emitter {
    hal_ir_builder *b;
    const ops_gemm_plan *plan;
    const ops_gemm_tiles *tiles;
    hal_type type; /* of indices */
    hal_ir_value alpha, beta, m, n, k, batch;
    hal_ir_value item;  /* the work-item's number in its slice */
    hal_ir_value slice; /* of k, which the work-item sums */
    ops_gemm_side a, c; /* A, and B, whose lines are C's columns */
    hal_ir_value c_base, c_row, c_column;
    hal_ir_value input_base[OPS_GEMM_MAX_INPUTS], input_row[OPS_GEMM_MAX_INPUTS],
        input_column[OPS_GEMM_MAX_INPUTS];
    hal_ir_value sums[OPS_GEMM_MAX_SUMS];    /* variables */
    hal_ir_value present[OPS_GEMM_MAX_SUMS]; /* their values inside a loop body */
} ops_gemm_emitter;

/* An element of C on its way: what its result needs in addition to the sum. */
typedef struct ops_gemm_element {
    hal_ir_value row, column, guard; /* none: it is there */
    hal_ir_value place, old;         /* in C, and what stands there where beta is not 0 */
    hal_ir_value inputs[OPS_GEMM_MAX_INPUTS];
} ops_gemm_element;

/* The sums of products, left in `present`, row by row. All but direct: also the result, since
 * slices have to meet first. */
void ops_gemm_emit_direct(ops_gemm_emitter *e);
void ops_gemm_emit_staged(ops_gemm_emitter *e);
void ops_gemm_emit_matrix(ops_gemm_emitter *e);
void ops_gemm_emit_intra_group(ops_gemm_emitter *e);

/* Loads what the result of an element needs, and finishes and stores it, perhaps much later. */
void ops_gemm_fetch_element(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column,
                            hal_ir_value guard, ops_gemm_element *element);
void ops_gemm_store_element(ops_gemm_emitter *e, ops_gemm_element *element, hal_ir_value sum);

/* Stores rows `first` to `last` - 1 of the work-item's, from `present`. */
void ops_gemm_emit_rows(ops_gemm_emitter *e, uint32_t first, uint32_t last);

void ops_gemm_get_sums(ops_gemm_emitter *e);
void ops_gemm_set_sums(ops_gemm_emitter *e);
/* Adds the product to the sum of the work-item's row and column. */
void ops_gemm_multiply(ops_gemm_emitter *e, uint32_t row, uint32_t column, hal_ir_value x,
                       hal_ir_value y);

/* Element (line, k) of A or B. */
hal_ir_value ops_gemm_address(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line,
                              hal_ir_value k);
/* The work-item's line `number` lies so many lines after its first. */
uint32_t ops_gemm_line_offset(const ops_gemm_side *s, uint32_t number);
/* The matrix's line that is the work-item's line `number`. */
hal_ir_value ops_gemm_own_line(ops_gemm_emitter *e, const ops_gemm_side *s, uint32_t number);

hal_ir_value ops_gemm_index(ops_gemm_emitter *e, hal_ir_value x);
hal_ir_value ops_gemm_plus(ops_gemm_emitter *e, hal_ir_value x, uint32_t y);
hal_ir_value ops_gemm_times(ops_gemm_emitter *e, hal_ir_value x, uint32_t y);
/* The quotient and the rest of a division by a power of two. */
hal_ir_value ops_gemm_quotient(ops_gemm_emitter *e, hal_ir_value x, uint32_t power);
hal_ir_value ops_gemm_rest(ops_gemm_emitter *e, hal_ir_value x, uint32_t power);

#endif

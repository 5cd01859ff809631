/* State and helpers of the emitters of the portable GEMM kernel: kernel.c (scalars, positions of
 * work-items) and emit_staged.c, emit_matrix.c, emit_intra_group.c, emit_any_slices.c,
 * emit_direct.c, emit_quantised.c and emit_quantised_units.c (the sums). */
#ifndef OPS_SRC_GEMM_EMITTER_H
#define OPS_SRC_GEMM_EMITTER_H

#include "kernel_key.h"

#define OPS_GEMM_MAX_SUMS 256u    /* of a work-item */
#define OPS_GEMM_MAX_FRAGMENT 64u /* rows, columns or steps of k in a work-item's registers */

/* A or B. Lines are rows of A, columns of B. */
typedef struct ops_gemm_side {
    const ops_gemm_operand *operand;
    hal_ir_memory_id memory;
    uint32_t block, thread, strip;             /* lines of a group, a work-item, a strip */
    uint32_t lanes;                            /* work-items of a warp along the lines */
    hal_ir_value base, stride;                 /* of the dimension that is not contiguous */
    hal_ir_value near;                         /* stride of the other one; NONE: 1 */
    ops_gemm_digit_values line_place, k_place; /* of a separable operand: in place of both */
    hal_ir_value along_k;                      /* whether lanes copy neighbours of k; any layout */
    hal_ir_value limit, origin;                /* lines of the matrix; first line of the block */
    hal_ir_value first;                        /* the work-item's first line within the block */
    hal_ir_value line[OPS_GEMM_MAX_FRAGMENT];  /* direct, intra-group: their first elements */
} ops_gemm_side;

typedef struct ops_gemm_emitter {
    hal_ir_builder *b;
    const ops_gemm_kernel_key *key;
    const ops_gemm_tiles *tiles;
    hal_type type; /* of indices */
    hal_ir_value alpha, beta, m, n, k, batch;
    hal_ir_value item;  /* the work-item's number in its slice */
    hal_ir_value slice; /* of k, that the work-item sums */
    struct {
        hal_ir_value block_m, block_n, width, steps, stride, end, parts, first_pairs, last_pairs;
    } any; /* ops_gemm_slices, with tiles.any_slices; `end` of staged ones in loops */
    struct {
        hal_ir_value steps, rows, strips;
    } loops; /* of key->in_loops: steps of a tile, rows of a work-item, its strips of columns */
    ops_gemm_side a, c; /* A; B, whose lines are the columns of C */
    hal_ir_value c_base, c_row, c_column;
    ops_gemm_digit_values c_place; /* with key->c_digits: of columns */
    hal_ir_value k_first;          /* of separable operands: of the part of k; NONE: 0 */
    hal_ir_value input_base[OPS_GEMM_MAX_INPUTS], input_row[OPS_GEMM_MAX_INPUTS],
        input_column[OPS_GEMM_MAX_INPUTS];
    hal_ir_value sums[OPS_GEMM_MAX_SUMS];    /* variables */
    hal_ir_value present[OPS_GEMM_MAX_SUMS]; /* their values inside a loop body */
} ops_gemm_emitter;

/* An element of C, and what its result needs apart from the sum. */
typedef struct ops_gemm_element {
    hal_ir_value row, column, guard; /* guard NONE: always stored */
    hal_ir_value place, old;         /* index in C; its value where beta is not 0 */
    hal_ir_value inputs[OPS_GEMM_MAX_INPUTS];
} ops_gemm_element;

/* Emit the sums. Direct leaves them in `present`, row by row; the others also store the result,
 * since slices of k are added first. */
void ops_gemm_emit_direct(ops_gemm_emitter *e);
void ops_gemm_emit_staged(ops_gemm_emitter *e);
void ops_gemm_emit_matrix(ops_gemm_emitter *e);
void ops_gemm_emit_intra_group(ops_gemm_emitter *e);
void ops_gemm_emit_any_slices(ops_gemm_emitter *e);
void ops_gemm_emit_quantised(ops_gemm_emitter *e);
void ops_gemm_emit_quantised_units(ops_gemm_emitter *e);

/* The sums of a warp of matrix units, which stores them through shared memory: the type of its
 * elements, and the lane's row and column of a tile. */
typedef struct ops_gemm_exchange {
    ops_gemm_emitter *e;
    hal_ir_memory_id shared;
    hal_type type;
    hal_ir_value g, t;
} ops_gemm_exchange;

/* Whether warps exchange their sums, in `bytes` of shared memory, before they store them; stores
 * them so. */
int ops_gemm_exchanges_sums(const ops_gemm_kernel_key *key, uint32_t bytes);
void ops_gemm_store_exchanged(const ops_gemm_exchange *exchange);

/* Declares the scalars of groups and finds that of the work-group's tile of rows: sets the batch to
 * its number, m to its end, the origin of A to the tile's first row, and k to 0 where there are
 * none. */
void ops_gemm_find_group(ops_gemm_emitter *e, hal_ir_value tile);

/* Declares a matrix's scalars; returns the index of the batch's first element. */
hal_ir_value ops_gemm_declare_matrix(ops_gemm_emitter *e, uint32_t number, hal_ir_value *strides,
                                     uint32_t stride_count);

/* Loads what the result of an element needs; computes the result from the sum and stores it. */
void ops_gemm_fetch_element(ops_gemm_emitter *e, hal_ir_value row, hal_ir_value column,
                            hal_ir_value guard, ops_gemm_element *element);
void ops_gemm_store_element(ops_gemm_emitter *e, ops_gemm_element *element, hal_ir_value sum);

/* Stores the work-item's rows `first` to `last` - 1 from `present`. */
void ops_gemm_emit_rows(ops_gemm_emitter *e, uint32_t first, uint32_t last);
/* Stores all rows from `sums`, which it overwrites, in a loop over strips of width_c columns. */
void ops_gemm_emit_looped_rows(ops_gemm_emitter *e);

void ops_gemm_get_sums(ops_gemm_emitter *e);
void ops_gemm_set_sums(ops_gemm_emitter *e);
/* Adds the product to the sum of the work-item's row and column. */
void ops_gemm_multiply(ops_gemm_emitter *e, uint32_t row, uint32_t column, hal_ir_value x,
                       hal_ir_value y);

/* Numbers of the contiguous dimension as a distance in memory. */
hal_ir_value ops_gemm_near(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value number);
/* Element (line, k) of A or B. */
hal_ir_value ops_gemm_address(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line,
                              hal_ir_value k);
/* The same of a separable operand, in two parts to add: of the line, and of the step of k, which
 * counts from the first one of the part. */
static inline bool ops_gemm_is_separable(const ops_gemm_side *s)
{
    return s->operand->line_digits > 0;
}
hal_ir_value ops_gemm_line_place(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value line);
hal_ir_value ops_gemm_k_place(ops_gemm_emitter *e, const ops_gemm_side *s, hal_ir_value k);
/* Lines from the work-item's first line to its line `number`. */
uint32_t ops_gemm_line_offset(const ops_gemm_side *s, uint32_t number);
/* The line of the matrix that is the work-item's line `number`. */
hal_ir_value ops_gemm_own_line(ops_gemm_emitter *e, const ops_gemm_side *s, uint32_t number);

hal_ir_value ops_gemm_index(ops_gemm_emitter *e, hal_ir_value x);
hal_ir_value ops_gemm_plus(ops_gemm_emitter *e, hal_ir_value x, uint32_t y);
hal_ir_value ops_gemm_times(ops_gemm_emitter *e, hal_ir_value x, uint32_t y);
/* Quotient and remainder of a division by a power of two. */
hal_ir_value ops_gemm_quotient(ops_gemm_emitter *e, hal_ir_value x, uint32_t power);
hal_ir_value ops_gemm_rest(ops_gemm_emitter *e, hal_ir_value x, uint32_t power);

#endif

/* State of the emitters of attention kernels, and what the two units, matrix units and single
 * products, compute for them. A group has a tile of scores, form.rows x form.keys, of which each
 * work-item has some rows and columns; the loop over its columns reads tiles of the tensors of that
 * side from shared memory, and adds to results whose rows are those of the scores. */
#ifndef OPS_SRC_ATTENTION_EMITTER_H
#define OPS_SRC_ATTENTION_EMITTER_H

#include "form.h"

#include "tensor/indexing.h"

#define OPS_ATTENTION_MAX_ROWS 4u     /* of scores, of a work-item */
#define OPS_ATTENTION_MAX_COLUMNS 16u /* of scores */
#define OPS_ATTENTION_MAX_RESULT 64u  /* columns of a result */
#define OPS_ATTENTION_MAX_CHUNKS 8u   /* of 32 columns of a head */

/* A tensor: its matrix of the group. Places are in words where form.vectors is set and the tensor
 * is an input of products, else in elements. */
typedef struct ops_attention_side {
    hal_ir_memory_id memory;
    hal_ir_value base, stride; /* of its rows */
    hal_ir_value rows, width;  /* U32 */
} ops_attention_side;

/* Rows of a tensor in shared memory, in elements of that memory. `width`: with zeros beyond those
 * of the tensor. */
typedef struct ops_attention_tile {
    const ops_attention_side *side;
    uint32_t begin, pitch, rows, width;
    hal_ir_value stage; /* U32: added to `begin`; NONE: nothing */
} ops_attention_tile;

/* The first operand of products: rows of a tensor that stay, in shared memory, or as words. */
typedef struct ops_attention_rows {
    ops_attention_tile tile;
    bool are_kept;
    hal_ir_value words[OPS_ATTENTION_MAX_ROWS][OPS_ATTENTION_MAX_CHUNKS][4];
} ops_attention_rows;

typedef struct ops_attention_scores {
    hal_ir_value of[OPS_ATTENTION_MAX_ROWS][OPS_ATTENTION_MAX_COLUMNS];
} ops_attention_scores;

/* Variables. */
typedef struct ops_attention_result {
    uint32_t width;   /* as of a tile */
    uint32_t columns; /* of a work-item */
    hal_ir_value of[OPS_ATTENTION_MAX_ROWS][OPS_ATTENTION_MAX_RESULT];
} ops_attention_result;

typedef struct ops_attention_emitter {
    hal_ir_builder *b;
    const ops_attention_form *form;
    hal_type index, accumulator;
    hal_ir_memory_id shared;
    hal_ir_value item, lane_row, lane_column, subgroup; /* matrix: of 8 rows and 4 columns */
    uint32_t rows, columns;                             /* of scores, of a work-item */
    uint32_t scores_begin;                              /* plain: where they are shared */
    bool has_signs; /* scores that are multiplied next may be negative or infinite */
    ops_attention_side sides[OPS_ATTENTION_SIDES];
    hal_ir_value queries, keys, d, e; /* U32: lengths */
    hal_ir_value factor, mask_factor; /* of products and of the mask, in the power's unit */
    hal_ir_value shift;               /* I32: of the last key of a query from its number */
    hal_ir_value first_row;           /* U32: of the group */
    hal_ir_value mask_base, mask_row, mask_column;
    hal_ir_value heads, head_batches; /* by keys: queries' matrices of one of keys, see kernel.h */
} ops_attention_emitter;

/* What a kind of unit computes. Rows and columns are counted in the group's tile. */
typedef struct ops_attention_unit {
    void (*begin)(ops_attention_emitter *e);
    hal_ir_value (*row)(const ops_attention_emitter *e, uint32_t i);
    hal_ir_value (*column)(const ops_attention_emitter *e, uint32_t j);
    /* Copies rows of a tensor from `first` on, zeros beyond; done after the wait and a barrier. */
    void (*copy)(ops_attention_emitter *e, const ops_attention_tile *tile, hal_ir_value first);
    void (*keep)(ops_attention_emitter *e, ops_attention_rows *rows, hal_ir_value first);
    /* scores = rows tile^T. */
    void (*multiply)(ops_attention_emitter *e, const ops_attention_rows *rows,
                     const ops_attention_tile *tile, ops_attention_scores *scores);
    /* The combination, by ADD or MAX, over the work-items that share a row. */
    hal_ir_value (*combine)(ops_attention_emitter *e, uint32_t kind, hal_ir_value x);
    /* result += scores tile, with scores rounded to the tensors' type. */
    void (*accumulate)(ops_attention_emitter *e, const ops_attention_scores *scores,
                       const ops_attention_tile *tile, const ops_attention_result *result);
    /* Stores a result, row i multiplied by factors[i]. */
    void (*store)(ops_attention_emitter *e, const ops_attention_result *result,
                  const ops_attention_side *side, const hal_ir_value *factors);
} ops_attention_unit;

extern const ops_attention_unit ops_attention_matrix, ops_attention_plain;

/* Elements of shared memory from row to row of a tile. */
uint32_t ops_attention_matrix_pitch(uint32_t width, bool by_keys);
uint32_t ops_attention_plain_pitch(uint32_t width);

/* Element or word (row, column) of a tensor. */
hal_ir_value ops_attention_place(const ops_attention_emitter *e, const ops_attention_side *side,
                                 hal_ir_value row, hal_ir_value column);

/* Opens the variables of a result, from 0; multiplies row i by factors[i]. */
void ops_attention_result_open(ops_attention_emitter *e, ops_attention_result *result,
                               uint32_t width);
void ops_attention_result_scale(ops_attention_emitter *e, const ops_attention_result *result,
                                const hal_ir_value *factors);

/* A tile after `total` elements of shared memory, which it adds its own to. `by_keys`: its rows are
 * added up, for accumulate, not multiplied with. */
ops_attention_tile ops_attention_tile_reserve(const ops_attention_form *form, uint32_t rows,
                                              uint32_t width, bool by_keys, uint32_t *total);

/* One beyond the last key that the group's queries have. */
hal_ir_value ops_attention_key_end(ops_attention_emitter *e);

/* x y + z, by one operation where the device has it. */
hal_ir_value ops_attention_fma(const ops_attention_emitter *e, hal_ir_value x, hal_ir_value y,
                               hal_ir_value z);

static inline hal_ir_value ops_attention_plus(const ops_attention_emitter *e, hal_ir_value x,
                                              uint32_t y)
{
    return y ? hal_ir_add(e->b, x, hal_ir_u32(e->b, y)) : x;
}

static inline hal_ir_value ops_attention_times(const ops_attention_emitter *e, hal_ir_value x,
                                               uint32_t y)
{
    return y == 1 ? x : hal_ir_mul(e->b, x, hal_ir_u32(e->b, y));
}

/* Where a tile's rows begin, moved by `place`. */
static inline hal_ir_value ops_attention_tile_place(const ops_attention_emitter *e,
                                                    const ops_attention_tile *tile,
                                                    hal_ir_value place)
{
    place = ops_attention_plus(e, place, tile->begin);
    return tile->stage == HAL_IR_NONE ? place : hal_ir_add(e->b, place, tile->stage);
}

#endif

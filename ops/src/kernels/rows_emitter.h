/* State and helpers of the emitters of row programs: rows_batch.c (what is done for some elements),
 * rows_kernel.c (loops over them) and rows_any.c (those of general kernels). */
#ifndef OPS_SRC_KERNELS_ROWS_EMITTER_H
#define OPS_SRC_KERNELS_ROWS_EMITTER_H

#include "rows_pass.h"

#define OPS_ROW_CHAINS 4u

/* A batch: chunks of a work-item that are loaded together. */
typedef struct ops_row_batch {
    uint32_t chunks;
    uint32_t slot;                      /* of the first element in the step of the loop */
    hal_ir_value first;                 /* U32, place of the first element on the axis */
    bool is_ahead;                      /* of the work-item's first element, by `ahead` places */
    hal_ir_value ahead;                 /* U32, the same for all work-items */
    hal_ir_value inside[OPS_ROW_SLOTS]; /* BOOL, of each chunk; HAL_IR_NONE: always */
} ops_row_batch;

struct ops_row_emitter {
    hal_ir_builder *b;
    const ops_row_pass *pass;
    const ops_row_program *program;
    ops_layout_values values;
    hal_ir_value axis_strides[OPS_MAX_VIEWS];
    ops_reduce_lane lane;
    hal_ir_value start, end; /* of the slice, U32 */
    hal_ir_value length;     /* of the row, U32 */
    hal_ir_value slice_offset;
    hal_ir_value divisor[OPS_ROW_VALUES]; /* of means */
    hal_ir_value row[OPS_ROW_VALUES];     /* values of the row; of a reduction its value */
    hal_ir_value place[OPS_ROW_VALUES];   /* of a reduction */
    hal_ir_value element[OPS_ROW_VALUES][OPS_ROW_SLOTS];
    ops_state chain[OPS_ROW_VALUES]
                   [OPS_ROW_CHAINS]; /* values, or variables in a kernel that loops */
    ops_state total[OPS_ROW_VALUES]; /* variables, with blocks */
    ops_fold_memory memory[OPS_ROW_VALUES];
    uint8_t memory_owner[OPS_ROW_VALUES]; /* the first reduction with the same memory */
    uint8_t memory_used[OPS_ROW_VALUES];
    hal_ir_memory_id cache[OPS_MAX_VIEWS]; /* of cached inputs: their elements */
    hal_ir_memory_id stored;               /* with stored_length */
    /* Of general kernels: the work-item's first element, its index and its place on the axis, and
     * how many accumulators take turns, less one. */
    hal_ir_value from[OPS_MAX_VIEWS], from_place, turns;
    struct {
        hal_ir_value along, width, q, p, turn, block, pairs, halves, subgroups;
        hal_ir_value mask,
            jump; /* elements of a chunk less one; from its last element to the next */
    } any;        /* ops_row_any */
};

/* The operands of a step; whether it is a reduction, whether the loop of a phase computes it, its
 * accumulators, and whether these are emptied into a total. */
const uint8_t *ops_row_operands(const ops_row_emitter *e, uint32_t value);
bool ops_row_reduces(const ops_row_emitter *e, uint32_t value);
bool ops_row_is_reduced_in(const ops_row_emitter *e, uint32_t value, uint32_t phase);
uint32_t ops_row_chain_count(const ops_row_emitter *e, uint32_t value);
bool ops_row_is_nested(const ops_row_emitter *e, uint32_t value);

/* Place of element `j` of chunk `c`, relative to the batch's first element. */
uint32_t ops_row_batch_offset(const ops_row_emitter *e, uint32_t c, uint32_t j);

/* Emits a map for an element of a batch, or for the row. */
hal_ir_value ops_row_emit_map(ops_row_emitter *e, uint32_t value, uint32_t slot);

/* Accumulators: values, or variables in a kernel that loops. */
ops_state ops_row_chain_get(ops_row_emitter *e, const ops_state *chain);
void ops_row_chain_set(ops_row_emitter *e, ops_state *chain, ops_state state);
ops_state ops_row_chain_create(ops_row_emitter *e, uint32_t value);

/* The work of a phase for one batch; the folded accumulators of a reduction. */
void ops_row_emit_batch(ops_row_emitter *e, uint32_t phase, const uint8_t *needed,
                        const ops_row_batch *batch);
ops_state ops_row_fold_chains(ops_row_emitter *e, uint32_t value);

/* Whether the loop of a phase computes a reduction. Moves each accumulator of the phase to the
 * place of the one before it, the first one to the end; the same only where chunks take turns. */
bool ops_row_reduces_in(const ops_row_emitter *e, uint32_t phase);
void ops_row_rotate_chains(ops_row_emitter *e, uint32_t phase);
void ops_row_take_turns(ops_row_emitter *e, uint32_t phase);

/* General kernels, whose layout of work-items is scalars: declares these, and finds the work-item;
 * the loop of a phase; combines the states of the work-items of a row. */
void ops_row_any_declare(ops_row_emitter *e);
void ops_row_any_loop(ops_row_emitter *e, uint32_t phase, const uint8_t *needed);
ops_state ops_row_any_fold(ops_row_emitter *e, uint32_t kind, ops_state state,
                           ops_fold_memory shared);

/* Empties the accumulators of a phase's nested sums into their totals. */
void ops_row_flush_chains(ops_row_emitter *e, uint32_t phase);

#endif

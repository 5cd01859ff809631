/* Between two products of an attention kernel: masks, limits and powers of a tile of scores. */
#ifndef OPS_SRC_ATTENTION_SCORES_H
#define OPS_SRC_ATTENTION_SCORES_H

#include "emitter.h"

/* What a row has so far: variables. */
typedef struct ops_attention_state {
    hal_ir_value greatest[OPS_ATTENTION_MAX_ROWS]; /* that powers are relative to */
    hal_ir_value sum[OPS_ATTENTION_MAX_ROWS];      /* of the work-item's columns */
} ops_attention_state;

void ops_attention_state_open(ops_attention_emitter *e, ops_attention_state *state);

/* The power of a score in the form's unit. */
hal_ir_value ops_attention_emit_power(const ops_attention_emitter *e, hal_ir_value x);

/* Whether a mask is added; scores are then scaled with it. */
bool ops_attention_adds_mask(const ops_attention_form *form);

/* Scales scores and adds the mask, or leaves out what a mask of bool does. */
void ops_attention_emit_mask(ops_attention_emitter *e, const ops_attention_unit *unit,
                             hal_ir_value first_column, ops_attention_scores *scores);

/* Leaves out columns beyond the keys and, causal, keys after those of a query, in the tiles that
 * have such. */
void ops_attention_emit_limit(ops_attention_emitter *e, const ops_attention_unit *unit,
                              hal_ir_value first_column, ops_attention_scores *scores);

/* Replaces the scores of a row by powers relative to the greatest one so far. factors[i]: what was
 * added before is multiplied by it. Returns whether any row's is not 1. */
hal_ir_value ops_attention_emit_powers(ops_attention_emitter *e, const ops_attention_unit *unit,
                                       ops_attention_state *state, ops_attention_scores *scores,
                                       hal_ir_value *factors);

#endif

/* The kernels of attention, each for matrix units and for single products: what is emitted once the
 * group has found its place, and how much shared memory it takes, in elements (see kernel.h). */
#ifndef OPS_SRC_ATTENTION_PASSES_H
#define OPS_SRC_ATTENTION_PASSES_H

#include "emitter.h"

uint32_t ops_attention_forward_shared(const ops_attention_form *form);
void ops_attention_emit_forward(ops_attention_emitter *e, const ops_attention_unit *unit);

uint32_t ops_attention_by_queries_shared(const ops_attention_form *form);
void ops_attention_emit_by_queries(ops_attention_emitter *e, const ops_attention_unit *unit);

/* Calls `place` with the number of each matrix of queries of the group's keys. */
uint32_t ops_attention_by_keys_shared(const ops_attention_form *form);
void ops_attention_emit_by_keys(ops_attention_emitter *e, const ops_attention_unit *unit,
                                void (*place)(ops_attention_emitter *e, hal_ir_value head,
                                              void *user),
                                void *user);

#endif

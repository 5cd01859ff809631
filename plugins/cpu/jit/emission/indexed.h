/* Instructions of indices: affine numbers, gathers and scatters. */
#ifndef PLUGINS_CPU_JIT_EMISSION_INDEXED_H
#define PLUGINS_CPU_JIT_EMISSION_INDEXED_H

#include "jit/registers/state.h"

/* Of an unsigned index the highest bit is flipped, which makes it signed, and the pointer is ahead
 * by as many elements. */
#define JIT_FLIPPED (UINT32_C(1) << 31)

void jit_affine_emit(jit_state *jit, const jit_node *node);
void jit_gather_emit(jit_state *jit, const jit_node *node);
void jit_scatter_emit(jit_state *jit, const jit_node *node);

#endif

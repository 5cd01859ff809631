/* Affine indices as numbers, and accesses of single elements. */
#ifndef PLUGINS_CPU_JIT_GATHER_H
#define PLUGINS_CPU_JIT_GATHER_H

#include "jit/registers/state.h"

/* Appends the values of an affine index to the open lane program. False: not of 32 bits. */
bool jit_affine_append(jit_state *jit, const cpu_draft *draft);
/* Whether a load, or a store, accesses elements one by one in the open lane program; appends it. */
bool jit_gather_is_wanted(const jit_state *jit, const cpu_draft *draft);
bool jit_scatter_is_wanted(const jit_state *jit, const cpu_draft *draft);
void jit_gather_append(jit_state *jit, const cpu_draft *draft);
void jit_scatter_append(jit_state *jit, const cpu_draft *draft);

#endif

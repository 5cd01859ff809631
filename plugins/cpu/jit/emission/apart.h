/* Rows that load every second to fourth element of memory, or store every second one. */
#ifndef PLUGINS_CPU_JIT_EMISSION_APART_H
#define PLUGINS_CPU_JIT_EMISSION_APART_H

#include "jit/registers/state.h"

/* Elements of 4 bytes that are `apart` elements from each other, to the lanes of `mask` (0: all);
 * the others become 0. Nothing beyond the last one is read. By JIT_SCRATCH, which `from` may use.
 * With AVX-512. */
void jit_apart_load(jit_state *jit, uint32_t apart, uint32_t d, x86_operand from, uint32_t mask);

/* The lanes of `mask` (0: all) of a register to every second element of 4 bytes; those between stay
 * as they are. By JIT_SCRATCH and JIT_TEMPORARY_A, as above. */
void jit_pairs_store(jit_state *jit, uint32_t a, x86_operand to, uint32_t mask);

#endif

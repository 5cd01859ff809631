/* Loads of rows that take every second to fourth element of memory. */
#ifndef PLUGINS_CPU_JIT_EMISSION_APART_H
#define PLUGINS_CPU_JIT_EMISSION_APART_H

#include "jit/registers/state.h"

/* Elements of 4 bytes that are `apart` elements from each other, to the lanes of `mask` (0: all);
 * the others become 0. Nothing beyond the last one is read. By JIT_SCRATCH, which `from` may use.
 * With AVX-512. */
void jit_apart_load(jit_state *jit, uint32_t apart, uint32_t d, x86_operand from, uint32_t mask);

#endif

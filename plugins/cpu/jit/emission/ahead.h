/* Prefetches. */
#ifndef PLUGINS_CPU_JIT_EMISSION_AHEAD_H
#define PLUGINS_CPU_JIT_EMISSION_AHEAD_H

#include "jit/registers/state.h"

/* Before a loop: how far ahead its loads in rows prefetch. */
void jit_ahead_begin(jit_state *jit, const jit_program *program);
/* After loads at one pointer, the first of which is at `place`: prefetches what comes later. */
void jit_ahead_emit(jit_state *jit, const jit_node *loads, uint32_t count, x86_operand place);

#endif

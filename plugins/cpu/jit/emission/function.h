/* Calls of transcendental functions. */
#ifndef PLUGINS_CPU_JIT_EMISSION_FUNCTION_H
#define PLUGINS_CPU_JIT_EMISSION_FUNCTION_H

#include "jit/registers/state.h"

/* Calls a function; the nodes of the parts are neighbours. */
void jit_function_emit(jit_state *jit, const jit_node *nodes);

#endif

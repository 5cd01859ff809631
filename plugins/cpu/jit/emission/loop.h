/* Loops over the vectors of a group. */
#ifndef PLUGINS_CPU_JIT_EMISSION_LOOP_H
#define PLUGINS_CPU_JIT_EMISSION_LOOP_H

#include "jit/registers/state.h"

void jit_loop_emit(jit_state *jit, jit_program *program, bool is_uniform);

#endif

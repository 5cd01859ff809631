/* Lane programs that are divided into several loops. */
#ifndef PLUGINS_CPU_JIT_EMISSION_SPLIT_H
#define PLUGINS_CPU_JIT_EMISSION_SPLIT_H

#include "jit/registers/state.h"

/* Translates a lane program into several loops, each of which goes through memory in its order.
 * False, without code: one loop is as good, or the program cannot be divided. */
bool jit_split_emit(jit_state *jit, const jit_program *program);

#endif

/* The code of slow paths. */
#ifndef PLUGINS_CPU_JIT_EMISSION_SLOW_EMIT_H
#define PLUGINS_CPU_JIT_EMISSION_SLOW_EMIT_H

#include "jit/registers/state.h"

/* At the end of a section. */
void jit_slow_emit(jit_state *jit);

#endif

/* The code of slow paths. */
#ifndef PLUGINS_CPU_JIT_SLOW_EMIT_H
#define PLUGINS_CPU_JIT_SLOW_EMIT_H

#include "jit/state.h"

/* At the end of a section. */
void jit_slow_emit(jit_state *jit);

#endif

/* Slow paths: code that rarely runs, after the rest of a section. */
#ifndef PLUGINS_CPU_JIT_REGISTERS_SLOW_H
#define PLUGINS_CPU_JIT_REGISTERS_SLOW_H

#include "jit/registers/state.h"

/* Code that is emitted later; null without memory. */
jit_slow *jit_slow_add(jit_state *jit);

#endif

/* Making routines that all kernels call. */
#ifndef PLUGINS_CPU_JIT_EMISSION_ROUTINE_H
#define PLUGINS_CPU_JIT_EMISSION_ROUTINE_H

#include "jit/registers/state.h"

/* Appends the code of a routine that `what` describes. */
typedef void jit_routine_emit(jit_state *jit, const void *what);

/* Makes a routine for the caller's instruction set, which lasts as long as the process; with half
 * as many lanes if `wide`. Null where it cannot be made. */
void *jit_routine_make(const jit_state *caller, bool wide, jit_routine_emit *emit,
                       const void *what);

#endif

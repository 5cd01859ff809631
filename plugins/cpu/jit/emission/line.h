/* Contiguous accesses under a mask. */
#ifndef PLUGINS_CPU_JIT_EMISSION_LINE_H
#define PLUGINS_CPU_JIT_EMISSION_LINE_H

#include "jit/registers/state.h"

/* Before the slow paths of a section: finds what replaces steps of contiguous accesses whose
 * work-items are not all active. */
void jit_lines_find(jit_state *jit);

#endif

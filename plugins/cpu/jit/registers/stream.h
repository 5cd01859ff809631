/* Stores that bypass the caches. */
#ifndef PLUGINS_CPU_JIT_REGISTERS_STREAM_H
#define PLUGINS_CPU_JIT_REGISTERS_STREAM_H

#include "jit/registers/state.h"

/* Before the sections; whether an access stores so. */
void jit_stream_begin(jit_state *jit);
bool jit_stream_takes(const jit_state *jit, const cpu_access *access);
/* After the address of such an access is in memory at `pointer`: where it is not that of a line,
 * the second form leaves the group. */
void jit_stream_check(jit_state *jit, const cpu_access *access, x86_operand pointer);
/* The address of such an access has no check, so the kernel has no second form. */
void jit_stream_give_up(jit_state *jit, const cpu_access *access);
/* A whole vector. */
void jit_stream_store(jit_state *jit, x86_form form, uint32_t a, x86_operand to);
/* After a section. */
void jit_stream_restart_emit(jit_state *jit);

#endif

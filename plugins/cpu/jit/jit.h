/* Compiles the steps of a kernel to machine code: AVX-512 and AVX2 on x86-64. README.md explains
 * how. */
#ifndef PLUGINS_CPU_JIT_JIT_H
#define PLUGINS_CPU_JIT_JIT_H

#include "jit/encoder/code.h"
#include "lower/lower.h"

/* Whether kernels that run on these lanes can be compiled. */
bool cpu_jit_is_possible(const cpu_lanes *lanes);

/* Compiles a lowered kernel. Without memory, or where the system refuses executable memory, the
 * code is empty, and the steps are interpreted. `stream_bytes`: of a dispatch's output, from which
 * stores bypass the caches. */
void cpu_jit_compile(const cpu_lower *lower, uint64_t stream_bytes, cpu_code *code);

#endif

/* Compiles the steps of a kernel to machine code: AVX-512 and AVX2 on x86-64. README.md explains
 * how. */
#ifndef HALYARD_CPU_JIT_H
#define HALYARD_CPU_JIT_H

#include <stdbool.h>

struct cpu_lower;
struct cpu_lanes;

/* Whether kernels that run on these lanes can be compiled. */
bool cpu_jit_is_possible(const struct cpu_lanes *lanes);

/* Fills in the code of a lowered kernel. Without memory, or where the system refuses executable
 * memory, the kernel has none, and its steps are interpreted. */
void cpu_jit_compile(struct cpu_lower *lower);

#endif

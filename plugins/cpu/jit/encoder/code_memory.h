/* Executable memory for compiled kernels. A page is never writable and executable at once: it is
 * written first and then made executable, or written through a second mapping where the system
 * refuses the first way. */
#ifndef PLUGINS_CPU_JIT_ENCODER_CODE_MEMORY_H
#define PLUGINS_CPU_JIT_ENCODER_CODE_MEMORY_H

#include <stddef.h>

/* A copy of code, executable and read-only. Null if the system refuses. Threads: any. */
void *cpu_code_create(const void *code, size_t bytes);
void cpu_code_destroy(void *code, size_t bytes);

#endif

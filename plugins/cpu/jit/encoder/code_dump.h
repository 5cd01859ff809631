/* HAL_DUMP=native: shows compiled kernels. */
#ifndef PLUGINS_CPU_JIT_ENCODER_CODE_DUMP_H
#define PLUGINS_CPU_JIT_ENCODER_CODE_DUMP_H

#include <stddef.h>

/* If the process wants dumps, logs the bytes of a kernel's code, and names the code in
 * /tmp/perf-PID.map, where perf looks for it. Threads: any. */
void cpu_code_dump(const char *kernel, const char *lanes, const void *code, size_t bytes);

#endif

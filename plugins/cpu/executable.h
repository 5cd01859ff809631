/* An executable: a kernel of IR as steps and, where it is compiled, as machine code. */
#ifndef PLUGINS_CPU_EXECUTABLE_H
#define PLUGINS_CPU_EXECUTABLE_H

#include "jit/encoder/code.h"
#include "lanes/check.h"
#include "lower/program.h"

#include <hal/status.h>

typedef struct cpu_executable {
    uint64_t number; /* unique in the process; workers know by it whether their slots fit */
    cpu_program program;
    cpu_code code;    /* empty: the steps are interpreted */
    cpu_check *check; /* null: accesses are not checked */
} cpu_executable;

typedef struct cpu_executable_options {
    const cpu_lanes *lanes;
    bool compiles;         /* to machine code, where the system allows it */
    bool checks;           /* accesses, for hal's validation */
    uint64_t stream_bytes; /* of a dispatch's output, from which stores bypass the caches */
} cpu_executable_options;

/* Lowers verified and legalised IR. Errors: UNSUPPORTED, OUT_OF_MEMORY. */
hal_status cpu_executable_create(const hal_ir_kernel *ir, const cpu_executable_options *options,
                                 cpu_executable **executable);
void cpu_executable_destroy(cpu_executable *executable);

#endif

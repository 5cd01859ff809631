/* Lowers kernels of IR to programs. */
#ifndef PLUGINS_CPU_LOWER_LOWER_H
#define PLUGINS_CPU_LOWER_LOWER_H

#include "lower/program.h"

#include <hal/status.h>

/* The lowering's drafts and names, which the compiler reads. */
typedef struct cpu_lower cpu_lower;

/* Lowers verified and legalised IR. `compiles`: slots are chosen for compiled code; `checks`:
 * accesses are checked. The caller destroys the lowering and releases the program, also after a
 * failure. Errors: UNSUPPORTED, with a message, OUT_OF_MEMORY, without. */
hal_status cpu_lower_kernel(cpu_program *program, const hal_ir_kernel *ir, const cpu_lanes *lanes,
                            bool compiles, bool checks, cpu_lower **lower);
void cpu_lower_destroy(cpu_lower *lower);

#endif

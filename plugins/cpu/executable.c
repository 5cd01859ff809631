/* From IR to an executable: the lowering, then the compiler. */
#include "executable.h"

#include "jit/jit.h"
#include "lower/lower.h"
#include "status.h"

#include <stdatomic.h>
#include <stdlib.h>

static uint64_t number_next(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

static hal_status executable_fill(cpu_executable *made, const hal_ir_kernel *ir,
                                  const cpu_executable_options *options)
{
    const bool compiles = options->compiles && !options->checks;
    if (options->checks) {
        made->check = cpu_check_create(ir);
        if (!made->check) {
            return HAL_ERROR_OUT_OF_MEMORY;
        }
    }
    cpu_lower *lower = NULL;
    const hal_status status =
        cpu_lower_kernel(&made->program, ir, options->lanes, compiles, options->checks, &lower);
    if (status == HAL_OK && compiles) {
        cpu_jit_compile(lower, options->stream_bytes, &made->code);
    }
    cpu_lower_destroy(lower);
    return status;
}

hal_status cpu_executable_create(const hal_ir_kernel *ir, const cpu_executable_options *options,
                                 cpu_executable **executable)
{
    cpu_executable *made = calloc(1, sizeof(*made));
    *executable = NULL;
    const hal_status status = made ? executable_fill(made, ir, options) : HAL_ERROR_OUT_OF_MEMORY;
    if (status != HAL_OK) {
        cpu_executable_destroy(made);
        return status == HAL_ERROR_OUT_OF_MEMORY
                   ? cpu_fail(status, "kernel %s of %u records: no host memory to lower it",
                              ir->names ? ir->names + ir->name : "", ir->record_count)
                   : status;
    }
    made->number = number_next();
    *executable = made;
    return HAL_OK;
}

void cpu_executable_destroy(cpu_executable *executable)
{
    if (executable) {
        cpu_check_destroy(executable->check);
        cpu_code_release(&executable->code);
        cpu_program_release(&executable->program);
        free(executable);
    }
}

/* Making routines that all kernels call. */
#include "jit/emission/routine.h"

#include "jit/encoder/code_memory.h"

#include <stdlib.h>

void *jit_routine_make(const jit_state *caller, bool wide, jit_routine_emit *emit, const void *what)
{
    cpu_lower lower = {.lanes = caller->lower->lanes};
    jit_state *jit = calloc(1, sizeof(*jit));
    void *made = NULL;
    if (!jit) {
        return NULL;
    }
    jit->lower = &lower;
    jit->target = caller->target;
    jit->code.vex = caller->code.vex;
    jit->loop.program = &jit->open.lanes;
    jit->loop.program->wide = wide;
    emit(jit, what);
    if (x86_finish(&jit->code) && !jit->failed && !jit->loop.program->failed) {
        made = cpu_code_create(jit->code.bytes, jit->code.count);
    }
    free(jit->slow_paths);
    jit_program_release(&jit->open.lanes);
    x86_code_release(&jit->code);
    free(jit);
    return made;
}

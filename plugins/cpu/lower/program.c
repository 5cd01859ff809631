/* Programs: release. lower/slots.c writes them. */
#include "lower/program.h"

#include <stdlib.h>

void cpu_program_release(cpu_program *program)
{
    free(program->dispatch);
    free(program->group);
    free(program->accesses);
    free(program->image);
    free(program->slot_offset);
    free(program->shared_offset);
}

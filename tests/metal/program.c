/* Libraries and pipelines as commands name them; lists of commands. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

void standin_library_ref(standin_library *library)
{
    atomic_fetch_add(&library->references, 1);
}

void standin_library_unref(standin_library *library)
{
    if (atomic_fetch_sub(&library->references, 1) == 1) {
        msl_library_free(library->compiled);
        free(library);
    }
}

void standin_program_ref(standin_program *program)
{
    atomic_fetch_add(&program->references, 1);
}

void standin_program_unref(standin_program *program)
{
    if (atomic_fetch_sub(&program->references, 1) == 1) {
        standin_library_unref(program->library);
        free(program);
    }
}

standin_command *standin_commands_add(standin_commands *commands, standin_kind kind)
{
    if (commands->count == commands->capacity) {
        commands->capacity = 2 * commands->capacity + 16;
        commands->list = realloc(commands->list, commands->capacity * sizeof *commands->list);
        if (!commands->list) {
            abort();
        }
    }
    standin_command *command = &commands->list[commands->count++];
    memset(command, 0, sizeof *command);
    command->kind = kind;
    return command;
}

static void clear_place(standin_place *place)
{
    if (place->memory) {
        standin_memory_unref(place->memory);
    }
    free(place->bytes);
}

void standin_commands_clear(standin_commands *commands)
{
    for (uint32_t i = 0; i < commands->count; i++) {
        standin_command *command = &commands->list[i];
        if (command->program) {
            for (uint32_t k = 0; k < command->program->function->parameter_count; k++) {
                clear_place(&command->places[k]);
            }
            standin_program_unref(command->program);
        }
        free(command->places);
        clear_place(&command->from);
        clear_place(&command->to);
    }
    free(commands->list);
    memset(commands, 0, sizeof *commands);
}

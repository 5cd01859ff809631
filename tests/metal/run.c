/* Executes the commands of one encoder. Dispatches of a concurrent encoder run from the last to the
 * first up to the next barrier, so that a missing barrier shows. With METAL_STANDIN_WATCH every
 * access is compared with the accesses before it that no barrier, fence, event or wait orders. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Codes of MTLCommandBufferError. */
enum { PAGE_FAULT = 3, INVALID_RESOURCE = 9 };

typedef struct access_tag {
    uint64_t encoder;
    uint32_t interval, command;
} access_tag;

typedef struct standin_shadow {
    access_tag writer, reader;
    bool atomic_writer;
} standin_shadow;

static bool is_ordered(const standin_run *run, const access_tag *tag)
{
    if (tag->encoder == 0) {
        return true;
    }
    if (tag->encoder == run->encoder) {
        return tag->command == run->command || tag->interval != run->interval;
    }
    return standin_order_has(&run->before, tag->encoder);
}

bool standin_watch(standin_run *run, standin_memory *memory, uint64_t offset, uint64_t size,
                   bool writes, bool is_atomic)
{
    const uint64_t words = (memory->length + 3) / 4;
    if (!memory->shadow) {
        memory->shadow = calloc(words, sizeof *memory->shadow);
    }
    const access_tag tag = {run->encoder, run->interval, run->command};
    for (uint64_t i = offset / 4; i < (offset + size + 3) / 4 && i < words; i++) {
        standin_shadow *shadow = &memory->shadow[i];
        const bool both_atomic = is_atomic && shadow->atomic_writer;
        const bool after_write = !both_atomic && !is_ordered(run, &shadow->writer);
        if (after_write || (writes && !is_ordered(run, &shadow->reader))) {
            standin_violation(run->message,
                              "hazard: byte %llu of an untracked buffer of %zu bytes is %s by "
                              "command %u and %s by a command that nothing orders with it",
                              (unsigned long long)(4 * i), memory->length,
                              writes ? "written" : "read", run->command,
                              after_write ? "written" : "read");
            run->code = INVALID_RESOURCE;
            return false;
        }
        if (writes) {
            shadow->writer = tag;
            shadow->atomic_writer = is_atomic;
        } else {
            shadow->reader = tag;
        }
    }
    return true;
}

typedef struct watched {
    standin_run *run;
    const standin_command *command;
} watched;

static void on_access(void *context, uint64_t address, uint32_t size, int writes, int is_atomic)
{
    watched *w = context;
    const msl_function *function = w->command->program->function;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const standin_place *place = &w->command->places[i];
        const uint64_t start = place->memory ? (uint64_t)(uintptr_t)place->memory->bytes
                                             : (uint64_t)(uintptr_t)place->bytes;
        if (place->memory && address >= start && address + size <= start + place->memory->length) {
            if (w->run->message[0] == 0) {
                standin_watch(w->run, place->memory, address - start, size, writes, is_atomic);
            }
            return;
        }
    }
    if (standin_memory_find(address) && w->run->message[0] == 0) {
        standin_violation(w->run->message,
                          "kernel %s: an access of %u bytes at a buffer that is not bound, or "
                          "beyond its end",
                          function->name, size);
        w->run->code = PAGE_FAULT;
    }
}

static bool check_alive(standin_run *run, const standin_place *place)
{
    if (place->memory && atomic_load(&place->memory->released)) {
        standin_violation(run->message,
                          "use after release: a buffer of %zu bytes was released "
                          "before the command buffer that names it completed",
                          place->memory->length);
        run->code = INVALID_RESOURCE;
        return false;
    }
    return true;
}

/* The groups of an indirect dispatch, as they are when it begins. */
static bool indirect_read(standin_run *run, const standin_command *command, uint32_t groups[3])
{
    enum { BYTES = 12 };
    const standin_place *place = &command->from;
    if (!check_alive(run, place) ||
        (run->watches && !standin_watch(run, place->memory, place->offset, BYTES, false, false))) {
        return false;
    }
    memcpy(groups, place->memory->bytes + place->offset, BYTES);
    return true;
}

static bool dispatch(standin_run *run, const standin_command *command)
{
    const msl_function *function = command->program->function;
    msl_grid grid = {0};
    char error[256];
    uint64_t address = 0;
    memcpy(grid.groups, command->groups, sizeof grid.groups);
    if (command->from.memory && !indirect_read(run, command, grid.groups)) {
        return false;
    }
    memcpy(grid.group_size, command->group_size, sizeof grid.group_size);
    memcpy(grid.threads, command->threads, sizeof grid.threads);
    memcpy(grid.threadgroup_bytes, command->threadgroup_bytes, sizeof grid.threadgroup_bytes);
    if (atomic_load(&command->program->released)) {
        standin_violation(run->message,
                          "use after release: pipeline %s was released before the "
                          "command buffer that names it completed",
                          function->name);
        run->code = INVALID_RESOURCE;
        return false;
    }
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const standin_place *place = &command->places[i];
        if (!check_alive(run, place)) {
            return false;
        }
        if (function->parameters[i].space != MSL_THREADGROUP) {
            unsigned char *start = place->memory ? place->memory->bytes : place->bytes;
            grid.buffers[function->parameters[i].index] =
                (uint64_t)(uintptr_t)(start + place->offset);
        }
    }
    watched context = {run, command};
    if (grid.groups[0] == 0 || grid.groups[1] == 0 || grid.groups[2] == 0) {
        return true;
    }
    if (msl_execute(function, &grid, run->watches ? on_access : NULL, &context, error, &address) !=
        0) {
        standin_violation(run->message, "kernel %s: %s (address 0x%llx)", function->name, error,
                          (unsigned long long)address);
        run->code = PAGE_FAULT;
        return false;
    }
    return run->message[0] == 0;
}

static bool blit(standin_run *run, const standin_command *command)
{
    if (!check_alive(run, &command->to) || !check_alive(run, &command->from)) {
        return false;
    }
    unsigned char *to = command->to.memory->bytes + command->to.offset;
    if (run->watches &&
        ((command->kind == STANDIN_COPY &&
          !standin_watch(run, command->from.memory, command->from.offset, command->size, false,
                         false)) ||
         !standin_watch(run, command->to.memory, command->to.offset, command->size, true, false))) {
        return false;
    }
    if (command->kind == STANDIN_COPY) {
        memmove(to, command->from.memory->bytes + command->from.offset, command->size);
    } else {
        memset(to, (int)command->value, command->size);
    }
    return true;
}

static bool run_command(standin_run *run, const standin_command *command, uint32_t number)
{
    run->command = number;
    switch (command->kind) {
    case STANDIN_DISPATCH:
        return dispatch(run, command);
    case STANDIN_COPY:
    case STANDIN_FILL:
        return blit(run, command);
    default:
        return true;
    }
}

bool standin_run_encoder(standin_run *run, const standin_commands *commands, uint32_t first,
                         uint32_t last)
{
    const standin_command *list = commands->list;
    const bool concurrent = list[first].concurrent;
    run->interval = 1;
    for (uint32_t i = first; i < last;) {
        uint32_t end = i + 1;
        while (concurrent && end < last && list[end].kind != STANDIN_BARRIER) {
            end++;
        }
        for (uint32_t k = end; k-- > i;) {
            if (!run_command(run, &list[k], k)) {
                return false;
            }
        }
        run->interval++;
        i = end;
    }
    return true;
}

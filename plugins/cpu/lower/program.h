/* A program: the steps of a kernel, and the arena that their slots are in. */
#ifndef PLUGINS_CPU_LOWER_PROGRAM_H
#define PLUGINS_CPU_LOWER_PROGRAM_H

#include "lanes/steps.h"

typedef struct cpu_program {
    uint32_t items;    /* work-items of a group */
    uint32_t place[3]; /* extents of their ids */
    uint32_t binding_count;
    uint32_t memory_count; /* bindings, then shared memories */
    uint32_t slot_count;
    uint32_t access_count;
    cpu_step *dispatch; /* steps that run once per dispatch on each worker */
    cpu_step *group;    /* steps that run for each group */
    cpu_access *accesses;
    size_t arena_bytes;
    uint8_t *image; /* the begin of the arena: what never changes */
    size_t image_bytes;
    size_t *slot_offset;   /* in the arena */
    size_t *shared_offset; /* in the arena, of each shared memory */
    uint64_t work;         /* nanoseconds of a group, estimated */
} cpu_program;

void cpu_program_release(cpu_program *program);

#endif

/* What the function of a step does, in terms of the IR. */
#ifndef HALYARD_CPU_STEP_KIND_H
#define HALYARD_CPU_STEP_KIND_H

#include "lanes/steps.h"

typedef enum cpu_step_class {
    CPU_STEP_OTHER, /* the rest: they are called */
    CPU_STEP_OPERATION,
    CPU_STEP_MOVE, /* a value to a slot: spread and copy */
    CPU_STEP_BLEND,
    CPU_STEP_LOAD,
    CPU_STEP_STORE,
    CPU_STEP_BOUND,    /* within and beyond */
    CPU_STEP_EXCHANGE, /* each lane takes a value of another one: SHUFFLE_XOR */
    CPU_STEP_PURE      /* computes slots from slots */
} cpu_step_class;

typedef struct cpu_step_kind {
    cpu_run *run;
    cpu_step_class class;
    uint16_t opcode; /* of an operation; all of these are of the IR */
    hal_type type;   /* of operands; LOAD, STORE, NARROW: in memory */
    hal_type result;
} cpu_step_kind;

enum { CPU_STEP_KINDS = 4096 };

/* The functions of one table of lanes, hashed by address. */
typedef struct cpu_step_kinds {
    const cpu_lanes *lanes;
    cpu_step_kind kinds[CPU_STEP_KINDS];
} cpu_step_kinds;

/* The kinds of a table, which lasts as long as the process; null without memory. Threads: any. */
const cpu_step_kinds *cpu_step_kinds_of(const cpu_lanes *lanes);
/* OTHER for what the table does not describe. */
cpu_step_kind cpu_step_kind_find(const cpu_step_kinds *kinds, cpu_run *run);

#endif

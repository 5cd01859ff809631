/* The walk over the drafts of a kernel. */
#ifndef PLUGINS_CPU_JIT_WALK_H
#define PLUGINS_CPU_JIT_WALK_H

#include "jit/registers/state.h"

typedef struct jit_walk {
    jit_state state;
    const cpu_draft *draft;
    const cpu_step *step; /* of the draft */
    cpu_action action;
    uint32_t section;
    char called[160]; /* what the called steps do */
} jit_walk;

/* Makes code of the draft: collects it in an open program, emits it or calls its step. */
void jit_draft_emit(jit_walk *walk);

#endif

/* Engines of ranks: what a plugin's own library for collectives is (hal/plugin.h, group_engine),
 * and its creation and end. All ranks of a group have an engine, or none. Used by engine.h, which
 * runs collectives there, and by group.c. */
#ifndef HAL_SRC_GROUP_ENGINE_CREATE_H
#define HAL_SRC_GROUP_ENGINE_CREATE_H

#include "group.h"

struct engine_call;

struct hal_engine {
    hal_plugin_group *handle;
    hal_plugin_group_engine is;
    int compares; /* calls of all ranks are compared before data moves */
    /* Guarded by the lock of engine.c. */
    struct engine_call *first, *last; /* collectives in flight; the first one is watched */
    int is_aborted;
    _Atomic uint64_t completed;
    /* Of the thread that records. */
    uint64_t recorded;
};

/* Creates the engines of new ranks, all of the calling thread, where all ranks of their groups
 * offer the same one on different devices; waits for the other ranks. A rank without one is no
 * error; the log says why. Null entries are passed over. Errors: those of the groups, TIMEOUT. */
hal_status hal_engine_create(hal_group *const *groups, uint32_t count, const char *function);

/* Of the last reference to the group, whose collectives have ended. Nothing without an engine. */
void hal_engine_destroy(hal_group *group);

/* "nccl"; null without an engine. */
static inline const char *hal_engine_name(const hal_group *group)
{
    return group->engine ? group->engine->is.name : NULL;
}

/* Collectives that have ended. Threads: any. */
static inline uint64_t hal_engine_completed(const hal_group *group)
{
    return group->engine ? atomic_load(&group->engine->completed) : 0;
}

#endif

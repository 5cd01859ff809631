/* Barriers for devices that are processors: the work-items of a group run as fibers of one thread,
 * and a barrier switches to the next one. A kernel's code needs no splitting at its barriers, which
 * may be inside loops and branches, as long as all work-items reach them.
 *
 * A kernel without barriers needs no fibers: call its code for one work-item after the other. */
#ifndef PLUGINS_KIT_FIBERS_H
#define PLUGINS_KIT_FIBERS_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The fibers of one thread at a time. */
typedef struct kit_fibers kit_fibers;

/* The code of one work-item; `item` is its number in the group. */
typedef void (*kit_fiber_body)(void *user, uint32_t item);

/* Makes fibers for groups of up to `most_items`, each with a stack of `stack_bytes`, of which
 * memory is taken as it is used.
 * Errors, with their sentence given to host->fail: OUT_OF_MEMORY. Threads: any. */
hal_status kit_fibers_create(const hal_host *host, uint32_t most_items, uint64_t stack_bytes,
                             kit_fibers **fibers);
void kit_fibers_destroy(kit_fibers *fibers);

/* Calls `body` for each work-item of a group and returns when all have returned. */
void kit_fibers_run(kit_fibers *fibers, uint32_t items, kit_fiber_body body, void *user);

/* Called by a body: returns when all work-items of the group have called it. */
void kit_fibers_barrier(kit_fibers *fibers);

#ifdef __cplusplus
}
#endif

#endif

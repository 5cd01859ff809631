/* Cycles of waits, which only a time limit ends: between queues, functions of host calls and ranks,
 * also of other processes. Threads that wait look for them when a layer listens; see deferred.c.
 *
 * Processes tell each other by chains in the memory of their groups (hal_fence_peers). The chain of
 * a rank says which wait holds its next step back, and which wait that one waits for. A process
 * that finds its own step at the end of a chain has found a cycle. */
#ifndef HAL_SRC_CORE_WAIT_CYCLE_H
#define HAL_SRC_CORE_WAIT_CYCLE_H

#include <hal/queue.h>
#include <stdbool.h>
#include <stdint.h>

#define HAL_MAX_CYCLE 16u
#define HAL_WAIT_WORDS 160u

/* A queue of a process waits in a step of a group. Does not become true again once it is not. */
typedef struct hal_wait_note {
    uint64_t group[4]; /* id */
    uint64_t process;
    uint64_t step;
    uint32_t rank;    /* of the process in the group */
    uint32_t missing; /* rank that the step waits for */
    bool is_left; /* what waits for it is for a step that this wait's thread did not record yet */
    uint64_t seen_ns; /* when that was so; processes of a host have one monotonic clock */
    char words[HAL_WAIT_WORDS];
} hal_wait_note;

/* Each wait ends after the next one. */
typedef struct hal_wait_chain {
    uint32_t count;
    hal_wait_note notes[HAL_MAX_CYCLE];
} hal_wait_chain;

/* What a thread that waits knows. Begins as {0}. */
typedef struct hal_wait_watch {
    uint64_t begin_ns;     /* of the wait; 0: not yet */
    uint64_t next_ns;      /* of the next look at other processes */
    uint64_t candidate;    /* hash of a cycle through other processes; 0: none */
    uint64_t candidate_ns; /* when it was found */
    bool has_reported;
} hal_wait_watch;

/* Looks for a cycle that a wait for a queue is in, and tells a layer once. `queues`: those with
 * deferred batches. Threads: under the lock of deferred.c. */
void hal_wait_cycle_find(hal_wait_watch *watch, hal_queue *queues, const hal_queue *queue);

#endif

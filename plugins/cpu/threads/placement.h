/* Keeps the pool's threads off the processor of the thread that shares work with them. That thread
 * is busy until they are done, so one that the system wakes on its processor waits for the next
 * tick of the scheduler, 4 or 8 ms. */
#ifndef HALYARD_CPU_PLACEMENT_H
#define HALYARD_CPU_PLACEMENT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { CPU_MAX_THREADS = 256 };

typedef struct cpu_placement {
    cpu_set_t allowed;      /* processors of the process */
    uint32_t limit;         /* threads that can be placed; 0: placement is off */
    _Atomic int avoided;    /* processor that the threads keep off; -1: none */
    _Atomic uint32_t count; /* threads that have entered */
    _Atomic uint64_t next_ns; /* the threads are not moved again before this time */
    _Atomic pid_t threads[CPU_MAX_THREADS]; /* 0: is about to enter */
} cpu_placement;

/* Placement is off unless the process may use as many processors as there are `threads`. */
void cpu_placement_init(cpu_placement *placement, uint32_t threads);

/* Called by each thread of the pool once. */
void cpu_placement_enter(cpu_placement *placement);

/* Moves the pool's threads off the calling thread's processor. Failures are ignored: the threads
 * then run where the system puts them. */
void cpu_placement_avoid_caller(cpu_placement *placement);

#endif

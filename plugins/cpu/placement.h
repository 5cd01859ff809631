/* Where the pool's threads run: anywhere but on the processor of the thread that shares work with
 * them. That thread spins until they are done, so one that the system wakes beside it would wait
 * for the next tick of its clock, 4 or 8 ms. Used by device.c and queue.c. */
#ifndef HALYARD_CPU_PLACEMENT_H
#define HALYARD_CPU_PLACEMENT_H

#include <pthreadpool.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { CPU_MAX_THREADS = 256 };

typedef struct cpu_placement {
    cpu_set_t allowed;     /* processors of the process */
    _Atomic int kept;      /* the processor that the threads keep clear of; -1: none */
    _Atomic uint32_t count;
    pid_t threads[CPU_MAX_THREADS];
} cpu_placement;

/* Learns which threads the pool has. */
void cpu_placement_learn(cpu_placement *placement, pthreadpool_t pool);

/* Sends the pool's threads off the calling thread's processor, where they are not yet. */
void cpu_placement_keep_clear(cpu_placement *placement);

#endif

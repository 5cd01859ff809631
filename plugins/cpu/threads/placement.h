/* Keeps the pool's threads off the processor of the thread that shares work with them. That thread
 * is busy until they are done, so one that the system wakes on its processor waits for the next
 * tick of the scheduler, 4 or 8 ms. */
#ifndef PLUGINS_CPU_THREADS_PLACEMENT_H
#define PLUGINS_CPU_THREADS_PLACEMENT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { CPU_MAX_THREADS = 256 };

typedef struct cpu_placement {
    size_t bytes;                           /* of each set */
    cpu_set_t *allowed;                     /* processors of the process */
    cpu_set_t *own;                         /* buffer: those of a thread */
    cpu_set_t *others;                      /* buffer: those that a thread has or gets */
    uint32_t limit;                         /* threads that can be placed; 0: placement is off */
    _Atomic int avoided;                    /* processor that the threads keep off; -1: none */
    _Atomic uint32_t count;                 /* threads that have entered */
    _Atomic uint64_t next_ns;               /* the threads are not moved again before this time */
    _Atomic pid_t threads[CPU_MAX_THREADS]; /* 0: is about to enter, or is left alone */
    int kept_off[CPU_MAX_THREADS];          /* the processor that each thread lacks; -1: none */
} cpu_placement;

/* Placement is off unless the process may use as many processors as there are `threads`. */
void cpu_placement_init(cpu_placement *placement, uint32_t threads);
void cpu_placement_release(cpu_placement *placement);

/* Each thread of the pool calls it once. */
void cpu_placement_enter(cpu_placement *placement);

/* Moves the pool's threads off the calling thread's processor. A thread whose processors someone
 * else has chosen is left alone from then on. Failures are ignored: the threads then run where the
 * system puts them. Threads: one at a time. */
void cpu_placement_avoid_caller(cpu_placement *placement);

#endif

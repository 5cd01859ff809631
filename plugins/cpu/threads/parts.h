/* Work that several threads take in chunks. Each thread has a part, the same in every call
 * with equal sizes, so that its caches keep what it used before; when its part is done it takes
 * from the others. A thread that never comes delays nothing. */
#ifndef PLUGINS_CPU_THREADS_PARTS_H
#define PLUGINS_CPU_THREADS_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CPU_PARTS_MAX = 64 }; /* more threads share parts */

/* Stages of work, numbered from 0, each with its units. A stage begins when all units of
 * the one before are done. */
typedef struct cpu_parts {
    uint32_t count;
    struct {
        _Alignas(
            64) _Atomic uint64_t taken; /* number of a stage + 1, units of it before the next */
    } parts[CPU_PARTS_MAX];
} cpu_parts;

/* For up to `threads` threads. */
void cpu_parts_init(cpu_parts *parts, uint32_t threads);

/* Takes up to `chunk` of the `units` (below 2^40) of a stage for a thread; false if all are taken.
 * All threads pass the same units for a stage. */
bool cpu_parts_take(cpu_parts *parts, uint32_t thread, uint64_t stage, uint64_t units,
                    uint64_t chunk, uint64_t *first, uint64_t *count);

#endif

/* A worker: one thread's arena and slots for running the groups of an executable. */
#ifndef PLUGINS_CPU_WORKER_H
#define PLUGINS_CPU_WORKER_H

#include "executable.h"

/* Allocates for executables up to these sizes. False without host memory; the worker stays as it
 * was. */
bool cpu_worker_reserve(cpu_worker *worker, size_t arena_bytes, uint32_t slot_count,
                        uint32_t memory_count);
void cpu_worker_release(cpu_worker *worker);

/* Prepares a dispatch: `bindings` has the addresses, in the executable's order, `bytes` their
 * lengths, null where nothing reads them; scalars stay valid until the last group has run. */
void cpu_worker_begin(cpu_worker *worker, const cpu_executable *executable, void *const *bindings,
                      const uint64_t *bytes, const uint8_t *scalars, const uint32_t grid[3]);

/* Runs `count` groups from number `first` on, counted along x, then y, then z. */
void cpu_worker_groups(cpu_worker *worker, const cpu_executable *executable, uint64_t first,
                       uint64_t count);

#endif

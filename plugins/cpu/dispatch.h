/* Dispatches: on the calling thread, and runs of them that threads go through together. */
#ifndef PLUGINS_CPU_DISPATCH_H
#define PLUGINS_CPU_DISPATCH_H

#include "worker.h"

#include <hal/plugin.h>

/* What dispatches of a queue need besides its workers: too large for the stack of a caller. Null
 * without host memory; freed by free(). */
typedef struct cpu_dispatch_memory cpu_dispatch_memory;
cpu_dispatch_memory *cpu_dispatch_memory_create(void);

/* Workers and memory of the queue whose dispatches run. */
typedef struct cpu_dispatch_state {
    cpu_worker *workers; /* one per thread of the device */
    cpu_dispatch_memory *memory;
} cpu_dispatch_state;

/* Runs a dispatch on the first worker; a product may share its work with the device's threads. */
hal_status cpu_dispatch_run(hal_plugin_device *device, const cpu_dispatch_state *state,
                            const hal_batch *batch, const hal_command *command);

/* Counts the commands from `first` on that can be one run: dispatches of executables, each of which
 * is work enough to be shared. */
uint32_t cpu_dispatch_count_shared(const hal_plugin_device *device, const hal_batch *batch,
                                   uint32_t first);

/* Runs commands first to first + count - 1, in their order. */
void cpu_dispatch_run_shared(hal_plugin_device *device, const cpu_dispatch_state *state,
                             const hal_batch *batch, uint32_t first, uint32_t count);

#endif

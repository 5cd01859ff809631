/* Dispatches: on the calling thread, and runs of them that threads go through together. */
#ifndef PLUGINS_CPU_DISPATCH_H
#define PLUGINS_CPU_DISPATCH_H

#include "worker.h"

#include <hal/plugin.h>

/* Runs a dispatch on a worker; a product may share its work with the device's threads. */
hal_status cpu_dispatch_run(hal_plugin_device *device, cpu_worker *worker, const hal_batch *batch,
                            const hal_command *command);

/* Counts the commands from `first` on that can be one run: dispatches of executables, each of which
 * is work enough to be shared. */
uint32_t cpu_dispatch_count_shared(const hal_plugin_device *device, const hal_batch *batch,
                                   uint32_t first);

/* Runs commands first to first + count - 1, in their order; `workers`: one per thread. */
void cpu_dispatch_run_shared(hal_plugin_device *device, cpu_worker *workers, const hal_batch *batch,
                             uint32_t first, uint32_t count);

#endif

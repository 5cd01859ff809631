/* Work that the calling thread shares with the pool's: whether it is worth it, and runs of
 * dispatches that all threads go through together. Called by queue.c. */
#ifndef HALYARD_CPU_SHARE_H
#define HALYARD_CPU_SHARE_H

#include "cpu.h"

/* The most dispatches of one run. */
enum { CPU_SHARE_MOST = 64 };

/* How many of the commands from `first` on can be one run: dispatches of steps, each of which is
 * work enough to be shared. `work` becomes the nanoseconds that one thread would need. */
uint32_t cpu_share_count(const hal_plugin_device *device, const hal_batch *batch, uint32_t first,
                         uint64_t *work);

/* Whether sharing work of so many nanoseconds gains more than waiting for the other threads has
 * cost lately; if so the others are sent where they can run. */
bool cpu_share_is_worth(hal_plugin_device *device, uint64_t work);

/* Runs commands first to first + count - 1, in their order, with all threads. */
void cpu_share_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first, uint32_t count);

/* Keeps in mind what sharing has cost: nanoseconds that were waited for others. */
void cpu_share_note(hal_plugin_device *device, uint64_t waited);

#endif

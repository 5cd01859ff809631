/* Batches that run after their submit has returned: with HAL_CPU_BACKGROUND a batch that takes
 * longer passes its rest to a thread of its queue, and later batches follow it there. */
#ifndef PLUGINS_CPU_BACKGROUND_H
#define PLUGINS_CPU_BACKGROUND_H

#include <hal/plugin.h>
#include <pthread.h>
#include <stdbool.h>

typedef struct cpu_late_batch cpu_late_batch;

typedef struct cpu_background {
    pthread_mutex_t lock;
    cpu_late_batch *first, *last; /* guarded by the lock, as `is_running` */
    bool is_running;              /* the thread takes batches */
    bool is_joinable;             /* of the queue's thread: there is a thread that was not joined */
    pthread_t thread;
} cpu_background;

/* Runs the commands of a batch from one on, after its waits, and reaches its value. */
typedef void cpu_late_run(hal_plugin_queue *queue, const hal_batch *batch, uint32_t first,
                          const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

void cpu_background_init(cpu_background *background);

/* All batches have ended. */
void cpu_background_deinit(cpu_background *background);

/* Passes a batch whose commands before `first` have run to the thread. With `only_behind` it does
 * so only if the thread has batches. Returns whether it did: it does not where the host has no
 * memory or no thread. Threads: that of `submit`. */
bool cpu_background_take(cpu_background *background, hal_plugin_queue *queue, cpu_late_run *run,
                         bool only_behind, const hal_batch *batch, uint32_t first,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

#endif

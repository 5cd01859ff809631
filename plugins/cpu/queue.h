/* Queues: a batch runs inside submit, or on a thread of the queue (background.h). Entries of the
 * plugin's table. */
#ifndef PLUGINS_CPU_QUEUE_H
#define PLUGINS_CPU_QUEUE_H

#include "background.h"
#include "dispatch.h"

#include <hal/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

enum { CPU_TIMES = 4096 }; /* points of a queue whose times are kept */

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    cpu_dispatch_state dispatches;
    size_t arena_bytes; /* of each worker, as the counts below */
    uint32_t slot_count, memory_count;
    _Atomic uint64_t reached;
    _Atomic uint32_t waiters;
    cpu_background background;
    bool fails_next; /* the next batch fails, see cpu_queue_fail_next */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t *times; /* when value v was reached, at v modulo CPU_TIMES, in nanoseconds */
};

hal_status cpu_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void cpu_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status cpu_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                            const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status cpu_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status cpu_clocks_read(hal_plugin_device *device, hal_clocks *clocks);
hal_status cpu_queue_time(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns);
hal_status cpu_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                             uint64_t *nanoseconds);
void cpu_queue_fail_next(hal_plugin_queue *queue);
void cpu_host_copy(hal_plugin_device *device, void *target, const void *source, uint64_t bytes);

#endif

/* The objects of the cpu plugin and the entries of its table, by the file that has them. */
#ifndef HALYARD_CPU_CPU_H
#define HALYARD_CPU_CPU_H

#include "kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

struct hal_plugin_device {
    const cpu_lanes *lanes;
    cpu_thread_pool *pool; /* null with one thread, as `share` */
    struct cpu_share *share;
    uint32_t threads;
    pid_t owner; /* a child after fork has no workers */
    /* The most that any kernel so far wants of a worker. */
    _Atomic size_t arena_bytes;
    _Atomic uint32_t slot_count;
    _Atomic uint32_t memory_count;
};

struct hal_plugin_memory {
    uint8_t *address;
    uint64_t bytes;
    uint8_t mapped; /* by mmap rather than from the heap */
};

enum { CPU_TIMES = 4096 }; /* ends of batches that a queue remembers */

struct hal_plugin_queue {
    hal_plugin_device *device;
    cpu_worker *workers; /* one for each thread of the device */
    size_t arena_bytes;  /* what the workers have room for */
    uint32_t slot_count, memory_count;
    _Atomic uint64_t reached;
    _Atomic uint32_t waiters;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t *times; /* when value v was reached, at v modulo CPU_TIMES, in nanoseconds */
};

/* status.c: keeps the host's services; fails with a sentence; logs one. */
void cpu_set_host(const hal_host *host);
const hal_host *cpu_host(void);
hal_status cpu_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

/* device.c */
hal_status cpu_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status cpu_device_open(uint32_t index, hal_plugin_device **device);
void cpu_device_close(hal_plugin_device *device);

/* memory.c */
hal_status cpu_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
uint64_t cpu_memory_total(void);
hal_status cpu_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                               hal_plugin_memory **memory);
void cpu_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status cpu_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* queue.c */
hal_status cpu_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void cpu_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status cpu_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                            const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status cpu_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status cpu_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                             uint64_t *nanoseconds);
/* Of a dispatch: its groups; the nanoseconds that one thread is expected to need; begins it on a
 * worker; runs all of it on a worker. */
uint64_t cpu_dispatch_groups(const hal_command *command);
uint64_t cpu_dispatch_work(const hal_command *command);
void cpu_dispatch_begin(cpu_worker *worker, const hal_batch *batch, const hal_command *command);
void cpu_dispatch_run(cpu_worker *worker, const hal_batch *batch, const hal_command *command);

/* gemm/native.c */
hal_status cpu_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                    hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

/* worker.c: a thread's room for running groups. */
bool cpu_worker_reserve(cpu_worker *worker, size_t arena_bytes, uint32_t slot_count,
                        uint32_t memory_count);
void cpu_worker_release(cpu_worker *worker);
void cpu_worker_begin(cpu_worker *worker, const cpu_kernel *kernel, void *const *bindings,
                      const uint64_t *bytes, const uint8_t *scalars, const uint32_t grid[3]);
void cpu_worker_groups(cpu_worker *worker, const cpu_kernel *kernel, uint64_t first,
                       uint64_t count);

#endif

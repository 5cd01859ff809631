/* The objects of the cpu plugin, and the functions that its files offer each other, by file. */
#ifndef HALYARD_CPU_CPU_PLUGIN_H
#define HALYARD_CPU_CPU_PLUGIN_H

#include "gemm/types.h"
#include "lanes/steps.h"
#include "jit/stream.h"
#include "threads/pool.h"

#include <hal/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

struct hal_plugin_device {
    const cpu_lanes *lanes;
    enum cpu_gemm_isa gemm_isa;
    bool compiles;         /* kernels to machine code */
    uint64_t stream_bytes; /* of a dispatch's output, from which its stores bypass the caches */
    cpu_thread_pool *pool; /* null with one thread, as `share` */
    struct cpu_share *share;
    uint32_t threads;
    uint32_t generation; /* of the process that opened it, see threads/process.h */
    /* Maxima over the kernels so far, which workers allocate. */
    _Atomic size_t arena_bytes;
    _Atomic uint32_t slot_count;
    _Atomic uint32_t memory_count;
};

struct hal_plugin_memory {
    uint8_t *address;
    uint64_t bytes;
    uint8_t mapped; /* 1: by mmap, 0: from the heap */
};

typedef struct hal_plugin_kernel cpu_kernel;

/* A call of a native kernel: the addresses of the bindings (null where the length is 0), and the
 * pool with the number of threads to use, null for the calling thread alone. */
typedef struct cpu_native_call {
    hal_plugin_device *device;
    cpu_thread_pool *pool;
    uint32_t threads;
    void *const *memory;
    uint32_t memory_count;
    const uint8_t *scalars;
} cpu_native_call;

struct hal_plugin_kernel {
    uint64_t number; /* unique in the process */
    uint32_t items;  /* of a group */
    uint32_t place[3];
    uint32_t binding_count;
    uint32_t memory_count;
    uint32_t slot_count;
    uint32_t step_count[2];
    uint32_t access_count;
    size_t arena_bytes;
    size_t shared_bytes;
    _Atomic uint64_t work; /* nanoseconds of one group: estimated, then measured */
    cpu_step *dispatch;    /* steps that run once per dispatch on each worker */
    cpu_step *group;       /* steps that run for each group */
    cpu_access *accesses;
    uint32_t *lane_ids; /* of compiled kernels that need them, see jit/gather.c; else null */
    uint8_t *image;     /* the begin of the arena: what never changes */
    size_t image_bytes;
    size_t *slot_offset;     /* in the arena */
    size_t *shared_offset;   /* in the arena, of each shared memory */
    struct cpu_check *check; /* check.h; null: accesses are not checked */
    bool compile;            /* to machine code, where possible */
    void *code;              /* compiled steps, jit/code_memory.h; null: steps are interpreted */
    size_t code_bytes;
    void (*dispatch_code)(cpu_worker *worker); /* in `code`, of `dispatch` and `group` */
    void (*group_code)(cpu_worker *worker);
    cpu_stream stream; /* the form of group_code for large outputs */
    /* Of a native kernel, which has no steps: one call per dispatch, and its state. */
    hal_status (*native)(const cpu_kernel *kernel, const cpu_native_call *call);
    void (*native_release)(void *state);
    void *native_state;
    bool native_alone; /* never uses more than one thread */
};

enum { CPU_TIMES = 4096 }; /* points of a queue whose times are kept */

struct hal_plugin_queue {
    hal_plugin_device *device;
    cpu_worker *workers; /* one per thread of the device */
    size_t arena_bytes;  /* of each worker, as the counts below */
    uint32_t slot_count, memory_count;
    _Atomic uint64_t reached;
    _Atomic uint32_t waiters;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t *times; /* when value v was reached, at v modulo CPU_TIMES, in nanoseconds */
};

/* status.c: the services of the host; failures with a message. */
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
void cpu_host_copy(hal_plugin_device *device, void *target, const void *source, uint64_t bytes);
hal_status cpu_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                             uint64_t *nanoseconds);
/* Of a dispatch: its groups; the nanoseconds that one thread is expected to need; begins it on a
 * worker; runs all of it on a worker. */
uint64_t cpu_dispatch_groups(const hal_command *command);
uint64_t cpu_dispatch_work(const hal_command *command);
void cpu_dispatch_begin(cpu_worker *worker, const hal_batch *batch, const hal_command *command);
void cpu_dispatch_run(cpu_worker *worker, const hal_batch *batch, const hal_command *command);

/* lower/lower.c: lowers verified and legalised IR into an empty kernel. */
hal_status cpu_lower_kernel(cpu_kernel *kernel, const hal_ir_kernel *ir, const cpu_lanes *lanes);

/* kernel.c */
hal_status cpu_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                             hal_plugin_kernel **kernel);
void cpu_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* The number of a new kernel. Threads: any. */
uint64_t cpu_kernel_number(void);

/* gemm/native.c */
hal_status cpu_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                    hal_plugin_kernel **kernel, uint64_t *workspace_bytes);

/* worker.c: the memory of a thread that runs groups. */
bool cpu_worker_reserve(cpu_worker *worker, size_t arena_bytes, uint32_t slot_count,
                        uint32_t memory_count);
void cpu_worker_release(cpu_worker *worker);
void cpu_worker_begin(cpu_worker *worker, const cpu_kernel *kernel, void *const *bindings,
                      const uint64_t *bytes, const uint8_t *scalars, const uint32_t grid[3]);
void cpu_worker_groups(cpu_worker *worker, const cpu_kernel *kernel, uint64_t first,
                       uint64_t count);

#endif

/* The objects of the cuda plugin, and the functions that its files offer each other, by file. */
#ifndef HALYARD_CUDA_CUDA_PLUGIN_H
#define HALYARD_CUDA_CUDA_PLUGIN_H

#include "driver.h"

#include <kit/text.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { CUDA_MAX_DEVICES = 256 };
enum { CUDA_EVENTS = 1024 }; /* batches of a queue whose events are kept */

/* A tile of matrix products that HAL_CUDA_GEMM names, see gemm/tile/key.h; 0 columns: none. Of
 * strict F32 its number, see gemm/tile/fma.h; 0: none. */
typedef struct cuda_gemm_tile {
    uint16_t columns;
    uint8_t split, in_memory, swapped, shared, alternates;
    uint8_t strict;
} cuda_gemm_tile;

struct hal_plugin_device {
    cuda_device ordinal;
    cuda_context context;       /* the primary context, retained */
    uint32_t capability;        /* compute capability, 10 * major + minor: 90 for 9.0 */
    uint32_t quirks;            /* CUDA_QUIRK_*, see quirks.h */
    bool stream_writes;         /* streams can write a counter that the host reads */
    uint32_t chain_min;         /* dispatches in a row from which they are submitted as a chain */
    uint32_t dedicate_after;    /* equal runs after which one gets a dedicated chain */
    uint32_t early_start_min;   /* dispatches of a chain from which they may start early */
    bool launches_early;        /* so may the dispatches after the first one of a short run */
    char id[64];                /* the UUID */
    _Atomic uint64_t kernels;   /* created so far: the last serial number */
    pthread_rwlock_t unloading; /* held for writing while a module is unloaded, for reading while a
                                 * chain is launched */
    uint64_t unloads;           /* kernels destroyed so far; under `unloading` */
    _Atomic uint64_t frees;     /* memories freed so far */
    uint32_t units;             /* multiprocessors */
    cuda_gemm_tile gemm_tile;
    uint8_t gemm_wait;         /* seconds, see gemm/tile/key.h */
    pthread_mutex_t gemm_lock; /* of gemm_modules */
    struct cuda_gemm_module *gemm_modules;
    _Atomic bool needs_parts; /* there is a kernel that uses those of a queue */
    hal_plugin_wait last_collective; /* that began; under the lock of collectives/group.c */
    /* By ordinal: the context of the peer whose memory this device may access, or null. */
    _Atomic(cuda_context) peers[CUDA_MAX_DEVICES];
};

struct hal_plugin_memory {
    const hal_plugin_device *device;
    cuda_address address;
    void *pointer; /* in the host's address space; null for device memory */
    uint64_t bytes;
};

struct hal_plugin_kernel {
    cuda_module module;
    cuda_function function;
    uint64_t serial; /* unique in the device; the address of a function may be reused */
    uint32_t group[3];
    uint32_t binding_count;
    uint32_t scalar_bytes;         /* of the parameter block, after the addresses */
    uint32_t parameter_bytes;      /* of the whole parameter block */
    uint32_t dynamic_shared;       /* bytes */
    bool waits_itself;             /* for the kernel before it, so it may start early in a chain */
    bool in_clusters;              /* its groups run in clusters, see chain/chain.h */
    struct cuda_gemm_launch *gemm; /* of a matrix product, whose module others share; or null */
};

/* The largest parameter block: of a matrix product (gemm/tile/key.h), or addresses and scalars. */
#define CUDA_MAX_PARAMETERS 1024u
_Static_assert(8u * HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SCALAR_BYTES <= CUDA_MAX_PARAMETERS,
               "bindings and scalars fit");

typedef struct cuda_chain cuda_chain; /* chain/chain.c */
enum { CUDA_ANCHORS = 4, CUDA_SEEN_RUNS = 2048 };

/* Hashes of the dispatches at which the loops seen last were cut, as a ring. */
typedef struct cuda_loop_anchors {
    uint64_t hashes[CUDA_ANCHORS];
    uint32_t next;
} cuda_loop_anchors;

/* The chains of a queue, and how often runs were repeated. */
typedef struct cuda_chain_cache {
    cuda_chain *chains; /* a list */
    cuda_chain *last;   /* the one launched last, or null */
    uint64_t launches;
    uint64_t seen[CUDA_SEEN_RUNS]; /* hashes of runs; a newer run replaces an older one */
    uint32_t seen_again[CUDA_SEEN_RUNS];
} cuda_chain_cache;

/* The event of a batch. One without a time takes device and host a microsecond less each. */
typedef struct cuda_batch_event {
    cuda_event kinds[2]; /* untimed, timed; created when needed */
    _Atomic bool is_timed;
} cuda_batch_event;

struct hal_plugin_queue {
    hal_plugin_device *device;
    cuda_stream stream;
    cuda_address parts; /* of matrix products, see gemm/end/partial.h; 0 until a batch needs them */
    cuda_address flags; /* of strict F32 products, see gemm/fma.h; 0 where the device has none */
    volatile uint64_t *counter; /* the stream writes the reached value there; null: events only */
    cuda_address counter_address;
    _Atomic uint64_t reached;   /* a value that is known to be reached */
    _Atomic uint64_t submitted; /* the last value */
    _Atomic uint64_t counted;   /* the last value that the stream writes to the counter */
    _Atomic uint64_t deferred;  /* of a collective that has not begun and has no point; or 0 */
    _Atomic bool awaited;       /* the last batch was waited for, or there is none */
    pthread_mutex_t point_lock; /* of the counter's writes and `submitted` */
    cuda_batch_event events[CUDA_EVENTS]; /* of value v at v modulo CUDA_EVENTS */
    cuda_chain_cache chains;
    cuda_loop_anchors anchors;
};

/* ---- status.c: the services of the host; failures with a message ---- */

void cuda_set_host(const hal_host *host);
const hal_host *cuda_host(void);
hal_status cuda_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* OK for a result of 0; else fails with "cuda: <attempt>: " and the driver's name and text. */
hal_status cuda_check(cuda_result result, const char *attempt, ...) HAL_PRINTF(2, 3);

/* ---- context.c: the device's primary context ---- */

/* The context stays retained by the process after its first device is opened: creating one takes
 * the driver a tenth of a second. */
hal_status cuda_context_retain(hal_plugin_device *device);
/* Releases a broken context, so that the device can be opened again. */
void cuda_context_give_up(hal_plugin_device *device);
/* Between push and pop the device's context is the current one of the thread; pop restores the one
 * before it. */
hal_status cuda_context_push(const hal_plugin_device *device);
void cuda_context_pop(void);

/* ---- describe.c: what devices are ---- */

/* An attribute, CUDA_DEVICE_*; 0 where the driver does not know it. */
uint32_t cuda_describe_attribute(cuda_device device, int attribute);
uint32_t cuda_describe_capability(cuda_device device);
/* The device's UUID, as text. */
hal_status cuda_describe_id(cuda_device device, char *id, size_t bytes);
hal_status cuda_describe(cuda_device device, hal_device_info *info);

/* ---- device.c ---- */

hal_status cuda_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status cuda_device_open(uint32_t index, hal_plugin_device **device);
void cuda_device_close(hal_plugin_device *device);
uint32_t cuda_device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other);

/* ---- memory.c ---- */

hal_status cuda_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
hal_status cuda_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory);
void cuda_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status cuda_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* ---- kernel.c ---- */

hal_status cuda_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel);
hal_status cuda_kernel_create_native(hal_plugin_device *device, const char *format,
                                     const void *code, uint64_t bytes, const char *entry,
                                     const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
void cuda_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
/* The parameters of a launch, as the driver takes them: one of the lists is null. */
typedef struct cuda_arguments {
    uint8_t block[CUDA_MAX_PARAMETERS];
    size_t bytes;
    void *list[5];
    void **parameters, **extra;
} cuda_arguments;
/* Writes the parameter block of a dispatch to a queue: addresses, then scalars. */
void cuda_kernel_arguments(const hal_plugin_queue *queue, const hal_batch *batch,
                           const hal_command *command, cuda_arguments *arguments);
/* The grid of a dispatch: a native matrix product has its own. */
void cuda_kernel_grid(const hal_command *command, uint32_t grid[3]);

/* What machine code is made of. */
typedef struct cuda_kernel_source {
    const char *name; /* of dumps */
    hal_status (*write)(const void *what, const hal_plugin_device *device, kit_text *text);
    const void *what;
    uint64_t key[2]; /* of the compile cache */
} cuda_kernel_source;
/* Loads machine code from the compile cache, or writes PTX and assembles it. Sets the kernel's
 * module and function. The context is current. */
hal_status cuda_kernel_compile(hal_plugin_device *device, const cuda_kernel_source *source,
                               hal_plugin_kernel *kernel);
/* Adds bytes to a hash of 128 bits. */
void cuda_hash_add(uint64_t key[2], const void *data, uint64_t bytes);
/* The hash of all of the IR but its names. */
void cuda_kernel_hash(const hal_ir_kernel *ir, uint64_t key[2]);

/* ---- stream.c: streams stay with the process, as the first copies on a new one are slow ---- */

hal_status cuda_stream_acquire(const hal_plugin_device *device, cuda_stream *stream);
void cuda_stream_release(const hal_plugin_device *device, cuda_stream stream);
/* Forgets the idle streams of a context that is given up. */
void cuda_stream_forget(const hal_plugin_device *device);

/* ---- queue.c ---- */

hal_status cuda_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void cuda_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status cuda_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

/* ---- collectives/group.c: collectives through NCCL, see collectives/nccl.h ---- */

hal_status cuda_group_id(hal_plugin_group_id *id);
hal_status cuda_group_create(hal_plugin_device *device, const hal_plugin_group_id *id,
                             uint32_t rank, uint32_t count, hal_plugin_group **group);
hal_status cuda_group_poll(hal_plugin_group *group);
void cuda_group_abort(hal_plugin_group *group);
void cuda_group_destroy(hal_plugin_group *group);
/* Submits a batch that is a collective. Its point is recorded when the collective begins, which may
 * be in a later call for the group. The context is current. */
hal_status cuda_group_submit(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value);
/* The queue is about to be destroyed. */
void cuda_group_forget_queue(hal_plugin_queue *queue);

/* ---- commands.c: the commands of a batch as calls of the driver ---- */

hal_status cuda_commands_submit(hal_plugin_queue *queue, const hal_batch *batch);

/* ---- point.c: the values that a queue reaches ---- */

hal_status cuda_point_create(hal_plugin_queue *queue);
void cuda_point_destroy(hal_plugin_queue *queue);
/* Creates what the point of a batch needs, before its first command is submitted. */
hal_status cuda_point_prepare(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value);
/* Submits the point. Errors: DEVICE_LOST. */
hal_status cuda_point_submit(hal_plugin_queue *queue, uint64_t value);
/* Makes the queue's stream wait for points of other queues. */
hal_status cuda_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                             uint32_t wait_count);
hal_status cuda_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status cuda_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                              uint64_t *nanoseconds);

#endif

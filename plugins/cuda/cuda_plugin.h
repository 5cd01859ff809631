/* The objects of the cuda plugin and the entries of its table, by the file that has them. */
#ifndef HALYARD_CUDA_CUDA_PLUGIN_H
#define HALYARD_CUDA_CUDA_PLUGIN_H

#include "driver.h"
#include "lower.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Devices that are counted, and ends of batches that a queue remembers. */
enum { CUDA_MOST_DEVICES = 256, CUDA_EVENTS = 1024 };

struct hal_plugin_device {
    cuda_device device;
    cuda_context context; /* the primary one, retained */
    uint32_t sm;          /* compute capability: 90 stands for 9.0 */
    bool stream_writes;   /* a stream can write a counter that the host reads */
    uint32_t chain_from;  /* dispatches in a row that are submitted as a graph */
    uint32_t keep_after;  /* equal runs after which one gets a graph of its own */
    uint32_t early_after; /* dispatches in a row that may start early; UINT32_MAX: none may */
    char id[64];
    _Atomic uint64_t kernels;   /* made so far, for their serial numbers */
    pthread_rwlock_t unloading; /* written while a module goes, read while a chain is launched */
    uint64_t unloads;           /* kernels that are gone */
    _Atomic uint64_t frees;     /* memories that are gone */
    /* The contexts, by their devices, whose memory this one's copies have been let into. */
    _Atomic(cuda_context) peers[CUDA_MOST_DEVICES];
};

struct hal_plugin_memory {
    const hal_plugin_device *device;
    cuda_address address;
    void *pointer; /* of the host; null for memory of the device */
    uint64_t bytes;
};

struct hal_plugin_kernel {
    cuda_module module;
    cuda_function function;
    uint64_t serial; /* of the device's kernels; a function's address may come again */
    uint32_t group[3];
    uint32_t binding_count;
    uint32_t scalar_bytes;    /* of the parameter block, behind the addresses */
    uint32_t parameter_bytes; /* of the whole block */
    uint32_t dynamic_shared;
    uint32_t waits; /* for the kernel in front of it by itself, and so may start early */
};

/* The largest block of parameters: addresses, then scalars. */
#define CUDA_MAX_PARAMETERS (8u * HAL_IR_MAX_BINDINGS + HAL_IR_MAX_SCALAR_BYTES)

typedef struct cuda_chain cuda_chain; /* chain.h */
enum { CUDA_ANCHORS = 4, /* places in loops where runs are cut */
       CUDA_MARKS = 256 };

struct hal_plugin_queue {
    hal_plugin_device *device;
    cuda_stream stream;
    volatile uint64_t *counter; /* what the stream has reached; null: events tell */
    cuda_address counter_address;
    _Atomic uint64_t reached;
    _Atomic uint64_t submitted;     /* the last value */
    cuda_event events[CUDA_EVENTS]; /* after batch v, at v modulo CUDA_EVENTS; made when needed */
    cuda_chain *chains;
    cuda_chain *last_chain; /* the last that ran */
    uint64_t anchors[CUDA_ANCHORS]; /* marks of the dispatches that loops begin with */
    uint32_t next_anchor;
    uint64_t chain_uses;
    uint64_t marks[CUDA_MARKS]; /* of runs, and how often they came again */
    uint32_t mark_counts[CUDA_MARKS];
};

/* status.c: the host's services and the driver's functions; failing with a sentence. cuda_failed
 * translates a result of the driver, with its name and the words for what was tried. */
void cuda_set_host(const hal_host *host);
const hal_host *cuda_host(void);
const cuda_driver *cuda_functions(void);
hal_status cuda_load_driver(void);
hal_status cuda_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
hal_status cuda_failed(cuda_result result, const char *format, ...) HAL_PRINTF(2, 3);

/* device.c. Between enter and leave the device's context is the thread's current one; what was
 * current before is so again afterwards. */
hal_status cuda_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status cuda_device_open(uint32_t index, hal_plugin_device **device);
void cuda_device_close(hal_plugin_device *device);
uint32_t cuda_device_reaches(hal_plugin_device *device, hal_plugin_device *other);
hal_status cuda_enter(const hal_plugin_device *device);
void cuda_leave(void);

/* memory.c */
hal_status cuda_memory_info(hal_plugin_device *device, uint64_t *free_bytes, uint64_t *total_bytes);
hal_status cuda_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                hal_plugin_memory **memory);
void cuda_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status cuda_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* kernel.c */
hal_status cuda_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                              hal_plugin_kernel **kernel);
hal_status cuda_kernel_create_native(hal_plugin_device *device, const char *format,
                                     const void *code, uint64_t bytes, const char *entry,
                                     const hal_ir_kernel *signature, hal_plugin_kernel **kernel);
void cuda_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* queue.c. The streams of a context that is given up are forgotten. */
void cuda_forget_streams(const hal_plugin_device *device);
hal_status cuda_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void cuda_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status cuda_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

/* point.c. What can fail for want of memory is prepared before a batch is begun. */
hal_status cuda_point_begin(hal_plugin_queue *queue);
void cuda_point_end(hal_plugin_queue *queue);
hal_status cuda_point_prepare(hal_plugin_queue *queue, uint64_t value);
hal_status cuda_point_make(hal_plugin_queue *queue, uint64_t value);
hal_status cuda_point_await(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                            uint32_t wait_count);
hal_status cuda_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status cuda_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                              uint64_t *nanoseconds);

#endif

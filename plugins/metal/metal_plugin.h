/* The objects of the metal plugin, and the functions that its files offer each other, by file. */
#ifndef HALYARD_METAL_PLUGIN_H
#define HALYARD_METAL_PLUGIN_H

#include "driver.h"

#include <hal/plugin.h>
#include <kit/text.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { METAL_SUBGROUP_WIDTH = 32 }; /* lanes of a simdgroup on GPUs by Apple */

/* A device as enumerate found it. Never freed. */
typedef struct metal_card {
    metal_gpu *gpu;
    metal_facts facts;
    hal_device_info info;
    uint32_t quirks;       /* METAL_QUIRK_*, see quirks.h */
    bool private_memory;   /* device memory is not mapped */
    uint64_t memory_limit; /* bytes that the process may allocate */
} metal_card;

/* Kernels for fills and copies that blit encoders do not take: bytes, and words of 4 bytes. */
typedef enum metal_transfer {
    METAL_FILL_BYTES = 0,
    METAL_FILL_WORDS = 1,
    METAL_COPY_BYTES = 2,
    METAL_COPY_WORDS = 3,
    METAL_TRANSFER_COUNT = 4
} metal_transfer;

struct hal_plugin_device {
    const metal_card *card;
    pid_t owner;          /* a child of fork cannot use Metal */
    metal_buffer *unused; /* what bindings of no bytes are set to */
    pthread_mutex_t lock; /* of the list of queues, and of creating transfers */
    hal_plugin_queue *queues;
    _Atomic(metal_pipeline *) transfers[METAL_TRANSFER_COUNT];
    _Atomic bool lost;
};

struct hal_plugin_memory {
    metal_buffer *buffer;
    uint8_t *host; /* null for private memory */
    uint64_t bytes;
};

struct hal_plugin_kernel {
    metal_pipeline *pipeline;
    char name[HAL_IR_MAX_NAME + 1];
    uint32_t group[3];
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint32_t argument_bytes; /* of the scalars, padded as the kernel's structure; 0: none */
};

enum {
    METAL_IN_FLIGHT = 64, /* command buffers of a queue */
    METAL_POINTS = 1024   /* points of a queue whose times are kept */
};

/* The batch of a value, until its result was read. */
typedef struct metal_slot {
    uint64_t value;
    metal_commands *commands;
} metal_slot;

typedef struct metal_time {
    uint64_t value;
    double end; /* seconds on the device's clock */
} metal_time;

struct hal_plugin_queue {
    hal_plugin_device *device;
    hal_plugin_queue *previous, *next; /* of the device */
    metal_stream *stream;
    metal_event *event; /* its value is that of the last batch that ended */
    metal_fence *fence; /* updated by each encoder, waited for by the next */
    bool fence_updated;
    _Atomic uint64_t submitted; /* value */
    _Atomic uint64_t ended;     /* of the last batch whose result was read */
    _Atomic uint64_t reached;   /* the same while no batch of the device has failed */
    pthread_mutex_t lock;       /* of slots and times */
    metal_slot slots[METAL_IN_FLIGHT];
    metal_time times[METAL_POINTS];
};

/* status.c: the services of the host; failures with a message. */
void metal_set_host(const hal_host *host);
const hal_host *metal_host(void);
hal_status metal_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* The failure of commands that ended with an error: DEVICE_LOST with its name. */
hal_status metal_fail_commands(const char *device, const metal_error *error);

/* device.c */
hal_status metal_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status metal_device_open(uint32_t index, hal_plugin_device **device);
void metal_device_close(hal_plugin_device *device);
/* INVALID_STATE in a child of fork; DEVICE_LOST after commands have failed. */
hal_status metal_device_check(const hal_plugin_device *device);
bool metal_device_is_after_fork(const hal_plugin_device *device);

/* describe.c: describes a device whose gpu and quirks are set. False, with the reason, for an
 * unusable one. */
bool metal_describe(metal_card *card, char reason[160]);

/* memory.c */
hal_status metal_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                             uint64_t *total_bytes);
hal_status metal_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                 hal_plugin_memory **memory);
void metal_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status metal_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* lower/lower.c: the source of a kernel, whose name in it is hal_ and the kernel's. */
hal_status metal_lower(const hal_ir_kernel *ir, uint32_t quirks, kit_text *text);
/* Bytes of the structure of scalars. */
uint32_t metal_argument_bytes(const hal_ir_kernel *ir);
/* HAL_TYPE_BIT of the types that the language has a spelling for in memory. */
uint32_t metal_lower_storage_types(void);
/* Such kernels have groups of one dimension, and need simdgroups of METAL_SUBGROUP_WIDTH lanes. */
bool metal_uses_subgroups(const hal_ir_kernel *ir);

/* lower/functions.c: the functions for what a kernel uses, bits. */
enum {
    METAL_WIDE_VECTORS = 1,
    METAL_BF16_VECTORS = 2,
    METAL_MULTIPLY_HIGH = 4,
    METAL_REMAINDER = 8,
    METAL_EXCHANGE_EQUAL = 16,
    METAL_SUBGROUPS = 32,
    METAL_MATRICES = 64
};
void metal_lower_functions(uint32_t used, bool has_slow_half, kit_text *text);
void metal_lower_slow_half(kit_text *text);

/* archive.c: a pipeline of a text, from the binary in hal's cache where there is one. */
hal_status metal_pipeline_create(const metal_card *card, const char *name,
                                 const metal_pipeline_request *request, metal_pipeline_facts *facts,
                                 metal_pipeline **pipeline);

/* kernel.c */
hal_status metal_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel);
hal_status metal_kernel_create_native(hal_plugin_device *device, const char *format,
                                      const void *code, uint64_t bytes, const char *entry,
                                      const hal_ir_kernel *signature, hal_plugin_kernel **kernel);
void metal_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* transfer.c: the kernel of a fill or copy, with groups of METAL_TRANSFER_ITEMS; null after a
 * failure, whose message the host has. */
enum { METAL_TRANSFER_ITEMS = 256 };
metal_pipeline *metal_transfer_pipeline(hal_plugin_device *device, metal_transfer which);

/* queue.c */
hal_status metal_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void metal_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status metal_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

/* point.c: makes room for a batch, waiting for the oldest one in flight. */
hal_status metal_point_reserve(hal_plugin_queue *queue, uint64_t value);
/* Keeps committed commands as the point of their value. Takes the reference. */
void metal_point_add(hal_plugin_queue *queue, uint64_t value, metal_commands *commands);
void metal_point_destroy_all(hal_plugin_queue *queue);
hal_status metal_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status metal_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                               uint64_t *nanoseconds);

/* commands.c: encodes a batch into a command buffer that is not committed yet. `fence_updated`:
 * what that of the queue becomes by committing it. */
hal_status metal_batch_encode(hal_plugin_queue *queue, const hal_batch *batch,
                              metal_commands *commands, bool *fence_updated);

#endif

/* The objects of the opencl plugin, and the functions that its files offer each other, by file. */
#ifndef HALYARD_OPENCL_OPENCL_PLUGIN_H
#define HALYARD_OPENCL_OPENCL_PLUGIN_H

#include "driver.h"

#include <hal/plugin.h>
#include <kit/c_text.h>
#include <kit/text.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    OPENCL_SUBGROUP_WIDTH = 16, /* lanes, where a kernel can require a width */
    OPENCL_WARP_WIDTH = 32      /* with OPENCL_QUIRK_WARPS */
};

/* A device of a platform, as enumerate found it. Never freed. */
typedef struct opencl_card {
    cl_platform_id platform;
    cl_device_id device;
    hal_device_info info;
    uint32_t quirks;  /* OPENCL_QUIRK_*, see quirks.h */
    bool unified;     /* host and device share their memory */
    bool fine_shared; /* and fine-grained buffers, which need no mapping */
    bool correct_divide;
    bool profiling;
    size_t max_parameters; /* bytes of a kernel's arguments */
} opencl_card;

struct hal_plugin_device {
    const opencl_card *card;
    cl_context context;
    cl_command_queue transfers; /* for mapping and writing new memory */
    pid_t owner;                /* a child of fork cannot use the driver */
    pthread_mutex_t
        lock; /* of the list of kernels, and of creating the buffers of shadowed memory */
    hal_plugin_kernel *kernels;
    atomic_bool lost;        /* a command failed while it ran, or a submit after its first one */
    _Atomic uint64_t serial; /* the last one given to a memory or queue */
};

/* Of shadowed memory `host` is valid, and `buffer` is a copy, created when a kernel first needs
 * it. */
struct hal_plugin_memory {
    cl_mem buffer;
    uint8_t *host; /* null for device memory that is not mapped */
    void *shared;  /* from clSVMAlloc */
    cl_mem pinned; /* the buffer that is mapped at `host` */
    uint64_t bytes;
    uint64_t serial;
    bool shadowed;
};

/* Offsets of the bindings, 8 bytes each, then the scalars. */
enum { OPENCL_ARGUMENT_BYTES = HAL_IR_MAX_BINDINGS * 8 + HAL_IR_MAX_SCALAR_BYTES };

/* A kernel object of one queue, since setting arguments is not thread-safe, with its arguments. */
typedef struct opencl_clone {
    struct opencl_clone *next;
    cl_kernel kernel;
    _Atomic uint64_t queue;                 /* serial; 0: free for another queue */
    uint64_t memories[HAL_IR_MAX_BINDINGS]; /* serials; UINT64_MAX: not set */
    bool has_block;
    uint8_t block[OPENCL_ARGUMENT_BYTES];
} opencl_clone;

struct hal_plugin_kernel {
    hal_plugin_device *device;
    hal_plugin_kernel *previous, *next; /* of the device */
    cl_program program;
    char entry[HAL_IR_MAX_NAME + 8];
    char name[HAL_IR_MAX_NAME + 1];
    size_t group[3];
    uint32_t binding_count, scalar_bytes;
    uint32_t argument_bytes; /* of the block, in the layout of the device's compiler; 0: none */
    bool in_buffer;          /* the block is in a buffer */
    _Atomic(opencl_clone *) clones;
};

enum { OPENCL_MARKS = 1024 }; /* of a queue that are kept */

/* The end of a batch, and with it of those before: the event of its last command, or a marker. */
typedef struct opencl_mark {
    uint64_t value;
    uint64_t number; /* of all marks of the queue, from 1 on */
    cl_event event;
} opencl_mark;

struct hal_plugin_queue {
    hal_plugin_device *device;
    cl_command_queue commands;
    uint64_t serial;
    _Atomic uint64_t submitted, reached; /* values */
    pthread_mutex_t lock;                /* of the marks */
    opencl_mark marks[OPENCL_MARKS];     /* a ring; values grow */
    uint32_t mark_first, mark_count;
    _Atomic uint64_t marks_made, marks_flushed; /* numbers of the last ones */
    atomic_bool marks_all; /* each batch is a mark, as waits are by event or inside the queue */
    bool has_run;          /* the driver has taken a command of the batch */
    bool unmarked_copies;  /* of the last batch */
    uint32_t unmarked;     /* commands since the last batch with an event */
    cl_mem arguments;      /* the blocks of a batch that are in a buffer */
    uint64_t argument_capacity;
};

/* status.c: the services of the host; failures with a message; failures with an error of OpenCL. */
void opencl_set_host(const hal_host *host);
const hal_host *opencl_host(void);
hal_status opencl_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
hal_status opencl_fail_result(cl_int error, const char *format, ...) HAL_PRINTF(2, 3);
const char *opencl_error_name(cl_int error);

/* device.c */
hal_status opencl_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status opencl_device_open(uint32_t index, hal_plugin_device **device);
void opencl_device_close(hal_plugin_device *device);
/* INVALID_STATE in a child of fork. */
hal_status opencl_device_check(const hal_plugin_device *device);
/* DEVICE_LOST once the device is. */
hal_status opencl_device_check_lost(const hal_plugin_device *device);

/* describe.c: describes a device whose handles and quirks are set. False, with the reason, for an
 * unusable one. */
bool opencl_describe(opencl_card *card, const char *platform, char reason[160]);

/* memory.c */
hal_status opencl_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void opencl_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status opencl_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);
/* The buffer; that of shadowed memory is created by the first call. */
hal_status opencl_memory_buffer(hal_plugin_device *device, hal_plugin_memory *memory,
                                cl_mem *buffer);

/* kernel.c */
hal_status opencl_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
hal_status opencl_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
void opencl_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
/* The kernel object of a queue; null after a failure, whose message the host has. */
opencl_clone *opencl_kernel_clone(hal_plugin_kernel *kernel, const hal_plugin_queue *queue);
/* Writes the block of offsets and scalars of a dispatch. Returns its bytes. */
uint32_t opencl_kernel_arguments(const hal_batch *batch, const hal_command *command,
                                 uint8_t block[OPENCL_ARGUMENT_BYTES]);
/* Frees the clones of a queue for other queues. */
void opencl_kernel_release_clones(hal_plugin_device *device, uint64_t queue);

/* lower/lower.c: the size of the group as the driver gets it: kernels that use subgroups have
 * groups of one dimension. */
void opencl_group_size(const hal_ir_kernel *ir, size_t group[3]);
/* The source of a kernel. `in_buffer` as in hal_plugin_kernel. */
hal_status opencl_lower(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                        kit_text *text);
/* lower/warp.c, for OPENCL_QUIRK_WARPS: the words of a kernel with subgroups, whose functions are
 * appended to the text; the variables of a work-item that they use. */
void opencl_lower_warps(const hal_ir_kernel *ir, kit_c_dialect *words, kit_text *text);
/* The same of a kernel with asynchronous copies. */
void opencl_lower_copies(kit_c_dialect *words, kit_text *text);
void opencl_lower_lanes(const hal_ir_kernel *ir, kit_text *text);
/* Bytes of the block of offsets and scalars in the layout of the device. */
uint32_t opencl_argument_bytes(const hal_ir_kernel *ir);

/* lower/narrow.c: functions for narrow floats, which are appended to the text, and their words. */
void opencl_lower_narrow(const opencl_card *card, const hal_ir_kernel *ir, kit_c_dialect *words,
                         kit_text *text);

/* lower/declare.c: declares the functions that kernels call. */
void opencl_lower_declarations(kit_text *text);

/* HAL_TYPE_BIT of the types that OpenCL C has a spelling for in memory. */
uint32_t opencl_lower_storage_types(void);

/* queue.c */
hal_status opencl_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status opencl_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);

/* point.c. Makes the queue wait for points of other queues. */
hal_status opencl_point_follow(hal_plugin_queue *queue, const hal_plugin_wait *waits,
                               uint32_t wait_count);
/* Marks the end of what was submitted, unless it is reached or marked. */
hal_status opencl_point_mark(hal_plugin_queue *queue);
/* Flushes the queue. */
void opencl_point_flush(hal_plugin_queue *queue);
/* Says that a batch was submitted, and keeps its event, if it has one. */
hal_status opencl_point_add(hal_plugin_queue *queue, uint64_t value, cl_event event);
void opencl_point_destroy_all(hal_plugin_queue *queue);
hal_status opencl_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status opencl_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

/* commands.c: submits one command to the driver's queue, and sets has_run. `event`, if not null, is
 * set to that of the last call. */
hal_status opencl_command_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_command *command, uint64_t argument_offset,
                                 cl_event *event);

#endif

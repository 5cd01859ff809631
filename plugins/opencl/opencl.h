/* The objects of the OpenCL plugin and the entries of its table, by the file that has them. */
#ifndef HALYARD_OPENCL_OPENCL_H
#define HALYARD_OPENCL_OPENCL_H

#include "api.h"
#include "quirks.h"

#include <hal/plugin.h>
#include <kit/text.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { OPENCL_SUBGROUP_WIDTH = 16 }; /* lanes, where a kernel can ask for a width */

/* A device of a platform, as enumerate found it. Lives as long as the process. */
typedef struct opencl_card {
    cl_platform_id platform;
    cl_device_id device;
    hal_device_info info;
    uint32_t quirks;
    bool unified;     /* host and device have the same memory */
    bool fine_shared; /* ... and buffers of it need no mapping */
    bool correct_divide;
    bool profiling;
    size_t max_parameters; /* bytes of a kernel's arguments */
} opencl_card;

struct hal_plugin_device {
    const opencl_card *card;
    cl_context context;
    cl_command_queue transfers; /* for mapping and touching memory */
    pid_t owner;                /* the driver does not survive fork */
    pthread_mutex_t lock;       /* of the list of kernels, and of late buffers of shadows */
    hal_plugin_kernel *kernels;
    _Atomic uint64_t serial; /* the last number given to a memory or queue */
};

/* Where `host` is set and `shadowed` too, the host's memory holds the truth and `buffer`, made when
 * a kernel first needs it, is a copy. */
struct hal_plugin_memory {
    cl_mem buffer;
    uint8_t *host; /* null for memory that cannot be mapped */
    void *shared;  /* from clSVMAlloc */
    cl_mem pinned; /* what `host` is a view of */
    uint64_t bytes;
    uint64_t serial;
    bool shadowed;
};

/* Offsets of the bindings, 8 bytes each, then the scalars. */
enum { OPENCL_ARGUMENT_BYTES = HAL_IR_MAX_BINDINGS * 8 + HAL_IR_MAX_SCALAR_BYTES };

/* A kernel object of one queue, as setting arguments is not thread-safe, and what is set. */
typedef struct opencl_clone {
    struct opencl_clone *next;
    cl_kernel kernel;
    _Atomic uint64_t queue;                 /* its serial; 0: free for another queue */
    uint64_t memories[HAL_IR_MAX_BINDINGS]; /* serials; UINT64_MAX: nothing is set */
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
    uint32_t argument_bytes; /* of the block, as the device's compiler lays it out; 0: none */
    bool in_buffer;          /* the block goes through a buffer */
    _Atomic(opencl_clone *) clones;
};

enum { OPENCL_POINTS = 1024 }; /* ends of batches that a queue remembers */

typedef struct opencl_point {
    uint64_t value;
    cl_event event;
} opencl_point;

struct hal_plugin_queue {
    hal_plugin_device *device;
    cl_command_queue commands;
    uint64_t serial;
    _Atomic uint64_t submitted, reached; /* values */
    pthread_mutex_t lock;                /* of the points */
    opencl_point points[OPENCL_POINTS];
    /* The events up to this value were let go before their places were needed. */
    uint64_t forgotten;
    cl_mem arguments; /* blocks of a batch, for kernels that take them from a buffer */
    uint64_t argument_capacity;
};

/* status.c: keeps the host's services; fails with a sentence; fails for an error of OpenCL. */
void opencl_set_host(const hal_host *host);
const hal_host *opencl_host(void);
hal_status opencl_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
hal_status opencl_fail_call(cl_int error, const char *format, ...) HAL_PRINTF(2, 3);
const char *opencl_error_name(cl_int error);

/* device.c */
hal_status opencl_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status opencl_device_open(uint32_t index, hal_plugin_device **device);
void opencl_device_close(hal_plugin_device *device);
/* INVALID_STATE in a child after fork. */
hal_status opencl_device_check(const hal_plugin_device *device);

/* describe.c: what a device is, or in `reason` what it lacks; `quirks` and ids are set already. */
bool opencl_describe(opencl_card *card, const char *platform, char reason[160]);

/* memory.c */
hal_status opencl_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void opencl_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status opencl_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);
/* The device's copy of shadowed memory is made when it is first asked for. */
hal_status opencl_memory_buffer(hal_plugin_device *device, hal_plugin_memory *memory,
                                cl_mem *buffer);

/* kernel.c */
hal_status opencl_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
hal_status opencl_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_plugin_kernel **kernel);
void opencl_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
/* The queue's own kernel object; null after a failure that has been told. */
opencl_clone *opencl_kernel_clone(hal_plugin_kernel *kernel, const hal_plugin_queue *queue);
/* Takes the clones of a queue that ends. */
void opencl_kernel_leave(hal_plugin_device *device, uint64_t queue);

/* lower_text.c: the group as the driver gets it; those of kernels that use subgroups have one
 * dimension. */
void opencl_group_size(const hal_ir_kernel *ir, size_t group[3]);
/* The source of a kernel. `in_buffer` as in hal_plugin_kernel. */
hal_status opencl_lower(const opencl_card *card, const hal_ir_kernel *ir, bool in_buffer,
                        kit_text *text);
/* Bytes of the block of offsets and scalars in the device's layout. */
uint32_t opencl_argument_bytes(const hal_ir_kernel *ir);

/* lower_declare.c: declares what the source of any kernel calls. */
void opencl_declare(kit_text *text);

/* queue.c */
hal_status opencl_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void opencl_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status opencl_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status opencl_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status opencl_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

/* commands.c: puts one command into the driver's queue. `*event`, when asked for, is that of the
 * last thing enqueued. */
hal_status opencl_run_command(hal_plugin_queue *queue, const hal_batch *batch,
                              const hal_command *command, uint64_t argument_offset,
                              cl_event *event);
/* Writes the block of offsets and scalars of a dispatch; gives its bytes. */
uint32_t opencl_fill_block(const hal_batch *batch, const hal_command *command,
                           uint8_t block[OPENCL_ARGUMENT_BYTES]);

#endif

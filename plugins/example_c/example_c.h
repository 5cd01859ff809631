/* The objects of the C example, and the functions that its files offer each other, by file. */
#ifndef PLUGINS_EXAMPLE_C_EXAMPLE_C_H
#define PLUGINS_EXAMPLE_C_EXAMPLE_C_H

#include <hal/plugin.h>
#include <kit/host.h>
#include <kit/fibers.h>
#include <kit/text.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { EXAMPLE_MAX_ITEMS = 256 };
#define EXAMPLE_MEMORY_BYTES (UINT64_C(1) << 30)

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    _Atomic uint64_t used;  /* bytes allocated */
    pthread_mutex_t lock;   /* of all queues of the device */
    pthread_cond_t changed; /* a value is reached, or a job was submitted */
    const char *lost;       /* why a batch failed, after which memory is in an unknown state */
};

struct hal_plugin_memory {
    uint64_t bytes;
    uint8_t *address;
};

/* What the generated code exports: runs work-items `first` to `end` - 1 of a group. */
typedef void (*example_code)(void *const *bindings, const uint8_t *scalars, const uint32_t grid[3],
                             const uint32_t group[3], uint32_t first, uint32_t end,
                             void (*barrier)(kit_fibers *fibers), kit_fibers *fibers);

struct hal_plugin_kernel {
    void *library;
    example_code run;
    uint32_t items; /* of a group */
    bool has_barriers;
};

/* A batch that was submitted, with its arrays after it. */
typedef struct example_job {
    struct example_job *next;
    uint64_t value;
    uint32_t wait_count;
    int fails; /* for a test */
    hal_plugin_wait *waits;
    hal_batch batch;
} example_job;

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    pthread_t thread;
    example_job *first, *last; /* under the device's lock */
    uint64_t reached;
    int ends;
    int fails_next; /* of queue_fail_next */
    kit_fibers *fibers; /* of the thread */
};

/* status.c */
hal_status example_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* Zeroed host memory for an object; null after a failure with OUT_OF_MEMORY. */
void *example_new(uint64_t bytes, const char *what);
void example_release(void *memory);

/* device.c */
hal_status example_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status example_device_open(uint32_t index, hal_plugin_device **device);
void example_device_close(hal_plugin_device *device);

/* memory.c */
hal_status example_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                   hal_plugin_memory **memory);
void example_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status example_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* lower.c: the C text of a kernel. */
hal_status example_lower(const hal_ir_kernel *ir, kit_text *text);

/* compile.c: a loaded library of C text, and its function hal_run. */
hal_status example_compile(const kit_text *text, const char *name, void **library,
                           example_code *run);

/* kernel.c */
hal_status example_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel);
void example_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
void example_kernel_run(const hal_plugin_kernel *kernel, const uint32_t grid[3],
                        void *const *bindings, const uint8_t *scalars, kit_fibers *fibers);

/* queue.c */
hal_status example_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void example_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status example_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
void example_queue_fail_next(hal_plugin_queue *queue);
hal_status example_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

#endif

/* The objects of the template plugin, and the functions that its files offer each other, by
 * file. To write a plugin, copy the folder and replace "template" by your name; see README.md
 * here and docs/write-a-plugin.md. */
#ifndef PLUGINS_TEMPLATE_TEMPLATE_PLUGIN_H
#define PLUGINS_TEMPLATE_TEMPLATE_PLUGIN_H

#include <hal/plugin.h>
#include <kit/host.h>
#include <kit/interpret.h>
#include <stdatomic.h>
#include <stddef.h>

enum { TEMPLATE_SUBGROUP = 32 };
#define TEMPLATE_MEMORY_BYTES (UINT64_C(1) << 30)

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    _Atomic uint64_t used; /* bytes allocated */
    _Atomic int lost;      /* a batch failed: memory is in an unknown state */
};

struct hal_plugin_memory {
    uint64_t bytes;
    uint8_t *address;
};

struct hal_plugin_kernel {
    hal_ir_kernel *ir; /* replace by your chip's machine code */
};

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
    hal_plugin_device *device;
    _Atomic uint64_t reached;
    int fails_next; /* of queue_fail_next */
};

/* status.c */
hal_status template_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* Zeroed host memory for an object; null after a failure with OUT_OF_MEMORY. */
void *template_new(uint64_t bytes, const char *what);
void template_release(void *memory);

/* device.c */
hal_status template_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status template_device_open(uint32_t index, hal_plugin_device **device);
void template_device_close(hal_plugin_device *device);

/* memory.c */
hal_status template_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                    hal_plugin_memory **memory);
void template_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status template_memory_map(hal_plugin_device *device, hal_plugin_memory *memory,
                               void **pointer);

/* kernel.c */
hal_status template_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel);
void template_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);
hal_status template_kernel_run(const hal_plugin_kernel *kernel, const uint32_t grid[3],
                               const kit_span *bindings, const void *scalars);

/* queue.c */
hal_status template_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void template_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status template_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
void template_queue_fail_next(hal_plugin_queue *queue);
hal_status template_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);

#endif

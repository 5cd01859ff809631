/* The objects of the vulkan plugin and the entries of its table, by the file that has them. */
#ifndef HALYARD_VULKAN_PLUGIN_H
#define HALYARD_VULKAN_PLUGIN_H

#define VK_NO_PROTOTYPES
#include "lower.h"
#include "quirks.h"

#include <hal/plugin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <vulkan/vulkan_core.h>

enum { VULKAN_MAX_DEVICES = 32, VULKAN_MAX_PUSH = 256 };

/* Functions of the instance, and of a device. */
typedef struct vulkan_instance {
    VkInstance handle;
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#include "symbols.inl"
#undef GLOBAL
#undef INSTANCE
} vulkan_instance;

typedef struct vulkan_functions {
#define DEVICE(name) PFN_##name name;
#include "symbols.inl"
#undef DEVICE
} vulkan_functions;

/* What a physical device is, as far as the plugin cares; by describe.c. */
typedef struct vulkan_description {
    VkPhysicalDevice handle;
    hal_device_info info;
    spirv_target target;
    const vulkan_quirks *quirks;
    uint32_t family, queue_count;
    uint32_t is_null;            /* 1: it has no hardware, see quirks.c */
    uint32_t full_subgroups;     /* 1: pipelines with subgroups ask for the width and full ones */
    uint32_t subgroups_of_group; /* the most of a group, where the width is asked for */
    uint32_t has_memory_budget;
    uint32_t has_subgroup_control;
    uint32_t has_host_reset; /* 1: the host can reset queries */
    uint32_t timestamp_bits;
    double timestamp_period; /* nanoseconds of a tick */
    VkPhysicalDeviceMemoryProperties memory;
    char unusable[160]; /* why it cannot be used; empty when it can */
} vulkan_description;

/* One of the device's queues; several of hal's may share it, one at a time. */
typedef struct vulkan_lane {
    VkQueue handle;
    pthread_mutex_t lock;
} vulkan_lane;

enum { VULKAN_MAX_LANES = 16 };

struct hal_plugin_device {
    vulkan_description is;
    const vulkan_instance *instance;
    VkDevice handle;
    vulkan_functions vk;
    VkPipelineLayout layout; /* one for all kernels: push constants */
    uint32_t push_bytes;     /* of the layout */
    vulkan_lane lanes[VULKAN_MAX_LANES];
    uint32_t lane_count;
    _Atomic uint32_t next_lane;
    _Atomic int lost;
    _Atomic uint64_t allocated[VK_MAX_MEMORY_HEAPS]; /* bytes, where the driver keeps no count */
};

/* Memory is a buffer with memory of its own. It begins `shift` bytes into both, so that its address
 * is aligned. */
struct hal_plugin_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address; /* of its first byte */
    uint8_t *mapped;         /* its first byte; null where the host cannot see it */
    uint64_t bytes, shift, taken;
    uint32_t heap;
};

struct hal_plugin_kernel {
    VkPipeline pipeline;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint32_t argument_bytes;
};

/* What a batch is recorded in; used again when the queue has reached its value. */
typedef struct vulkan_slot {
    struct vulkan_slot *next;
    VkCommandPool pool;
    VkCommandBuffer commands;
    hal_plugin_memory *arguments; /* null until a batch needs some */
    uint64_t value;
} vulkan_slot;

enum { VULKAN_TIMES = 1024 }; /* ends of batches that a queue remembers */

struct hal_plugin_queue {
    hal_plugin_device *device;
    vulkan_lane *lane;
    VkSemaphore timeline;
    VkQueryPool times; /* null where the device counts no time */
    vulkan_slot *oldest, *newest;
    _Atomic uint64_t reached; /* a value that it is known to have reached */
    uint64_t submitted;
    _Atomic uint32_t dependents; /* a bit for each lane with batches that waited for the timeline */
};

/* status.c: the host's services; failing with a sentence; results of Vulkan as statuses. */
void vulkan_set_host(const hal_host *host);
const hal_host *vulkan_host(void);
hal_status vulkan_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
const char *vulkan_result_name(VkResult result);
/* Fails with "what: name of the result". A lost device stays lost. `device` may be null. */
hal_status vulkan_failed(hal_plugin_device *device, VkResult result, const char *format, ...)
    HAL_PRINTF(3, 4);
/* DEVICE_LOST once the device was lost. */
hal_status vulkan_check(const hal_plugin_device *device);
/* The same, and UNSUPPORTED where the driver runs nothing. */
hal_status vulkan_check_runs(const hal_plugin_device *device);

/* instance.c: opens the loader and makes the one instance. */
hal_status vulkan_instance_get(const vulkan_instance **instance);

/* describe.c */
void vulkan_describe(const vulkan_instance *instance, VkPhysicalDevice handle,
                     vulkan_description *description);

/* device.c */
hal_status vulkan_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status vulkan_device_open(uint32_t index, hal_plugin_device **device);
void vulkan_device_close(hal_plugin_device *device);

/* memory.c */
hal_status vulkan_memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes);
hal_status vulkan_memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory);
void vulkan_memory_free(hal_plugin_device *device, hal_plugin_memory *memory);
hal_status vulkan_memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer);

/* kernel.c */
extern const char vulkan_kernel_formats[];
hal_status vulkan_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel);
hal_status vulkan_kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_plugin_kernel **kernel);
void vulkan_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* queue.c */
hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status vulkan_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);
/* Runs a kernel with no groups at all and waits: see quirks.c. Threads: any. */
hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* slot.c: command buffers and argument memory of batches. */
hal_status vulkan_slot_take(hal_plugin_queue *queue, vulkan_slot **slot);
void vulkan_slot_give_back(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t value);
hal_status vulkan_slot_arguments(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t bytes);
void vulkan_slot_release_all(hal_plugin_queue *queue);

/* record.c: writes a batch into a slot. */
hal_status vulkan_record(hal_plugin_queue *queue, vulkan_slot *slot, const hal_batch *batch,
                         uint64_t value);

#endif

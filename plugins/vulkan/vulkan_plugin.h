/* The objects of the vulkan plugin, and the functions that its files offer each other, by file. */
#ifndef HALYARD_VULKAN_PLUGIN_H
#define HALYARD_VULKAN_PLUGIN_H

#define VK_NO_PROTOTYPES
#include "newer.h"
#include "lower/target.h"

#include <hal/plugin.h>
#include <pthread.h>
#include <stdatomic.h>

enum { VULKAN_MAX_DEVICES = 32, VULKAN_MAX_PUSH = 256 };

/* Functions of the instance, and of a device. */
typedef struct vulkan_instance {
    VkInstance handle;
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#define EXTENSION(name) PFN_##name name;
#include "symbols.inl"
#undef GLOBAL
#undef INSTANCE
#undef EXTENSION
} vulkan_instance;

typedef struct vulkan_functions {
#define DEVICE(name) PFN_##name name;
#include "symbols.inl"
#undef DEVICE
} vulkan_functions;

/* What a physical device is: set by describe.c. */
typedef struct vulkan_description {
    VkPhysicalDevice handle;
    hal_device_info info;
    spirv_target target;
    uint32_t quirks;              /* VULKAN_QUIRK_*, see quirks.h */
    const char *quirks_variable;  /* that gave the driver a quirk, or null */
    uint32_t family, queue_count; /* of the queues that compute */
    uint32_t full_subgroups; /* 1: pipelines with subgroups require their width and full ones */
    uint32_t has_memory_budget;
    uint32_t has_subgroup_control;
    uint32_t has_host_reset; /* 1: the host resets queries */
    uint32_t timestamp_bits;
    double timestamp_period; /* nanoseconds of a tick */
    VkPhysicalDeviceMemoryProperties memory;
    char unusable[160]; /* why it cannot be used; empty: it can */
} vulkan_description;

/* A queue of the device. Queues of hal share it; submissions are made under the lock. */
typedef struct vulkan_device_queue {
    VkQueue handle;
    pthread_mutex_t lock;
} vulkan_device_queue;

enum { VULKAN_MAX_DEVICE_QUEUES = 16 };

/* How a device was lost: the driver said so, or it refused batches that had been accepted. In the
 * second case the driver still runs what was sent. */
enum { VULKAN_LOST = 1, VULKAN_GIVEN_UP };

struct hal_plugin_device {
    vulkan_description physical;
    const vulkan_instance *instance;
    VkDevice handle;
    vulkan_functions vk;
    VkPipelineLayout layout; /* of all kernels: push constants */
    uint32_t push_bytes;     /* of the layout */
    vulkan_device_queue device_queues[VULKAN_MAX_DEVICE_QUEUES];
    uint32_t device_queue_count;
    _Atomic uint32_t next_device_queue;
    _Atomic int lost;                                /* 0, or VULKAN_LOST or VULKAN_GIVEN_UP */
    _Atomic uint64_t allocated[VK_MAX_MEMORY_HEAPS]; /* bytes, by heap */
};

/* A buffer that is bound to a VkDeviceMemory. The usable bytes start `shift` bytes into both, so
 * that their address is aligned. */
struct hal_plugin_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address;      /* of its first byte */
    uint8_t *mapped;              /* its first byte; null where it is not mapped */
    uint64_t bytes, shift, taken; /* usable; before them; of the heap */
    uint32_t heap;
};

struct hal_plugin_kernel {
    VkPipeline pipeline;
    uint32_t binding_count;
    uint32_t scalar_bytes;
    uint32_t argument_bytes;
};

/* What the batches of one submission are recorded into; reused after the queue has reached `value`,
 * that of the last one. */
typedef struct vulkan_slot {
    struct vulkan_slot *next;
    VkCommandPool pool;
    VkCommandBuffer commands;
    hal_plugin_memory *arguments; /* null until a batch needs some */
    uint64_t argument_bytes;      /* in use */
    uint64_t value;
    VkPipeline bound;
    uint32_t mapped_writes;          /* 1: mapped memory is written */
    uint32_t is_transfer;            /* 1: has a long copy between host and device */
    VkPipelineStageFlags recent;     /* stages of the commands since the last HAL_COMMAND_BARRIER */
    VkPipelineStageFlags pending[2]; /* stages that kernels, and copies, still have to wait for */
} vulkan_slot;

enum { VULKAN_TIMES = 1024 }; /* points of a queue whose times are kept */

/* A thread that sends what a queue holds. It exists once something was held. */
typedef struct vulkan_helper {
    pthread_t thread;
    pthread_cond_t wakes;
    int exists, sleeps, stops;
} vulkan_helper;

struct hal_plugin_queue {
    hal_plugin_device *device;
    vulkan_device_queue *device_queue;
    VkSemaphore timeline;
    VkQueryPool times;            /* null: the device has no timestamps */
    uint64_t timed[VULKAN_TIMES]; /* the value whose time each query has */
    vulkan_slot *oldest, *newest;
    uint32_t slot_count;
    _Atomic uint64_t reached;  /* a value that is known to be reached */
    _Atomic uint64_t sent;     /* the last value that the driver got */
    uint64_t sent_before;      /* that of the submission before */
    _Atomic uint64_t recorded; /* the last value */
    uint64_t accepted;         /* the last value that submit has answered OK for */
    /* The last value of the newest submission with several batches; 0: none, or one_by_one. */
    _Atomic uint64_t grouped;
    /* Guards the slots, and recording and sending. */
    pthread_mutex_t lock;
    vulkan_slot *open;      /* being recorded; may be null */
    uint32_t held_batches;  /* in it */
    uint32_t held_commands; /* in it, each batch counted as one more */
    uint32_t commands_since_wait;
    /* 1: each batch is sent alone, as a wait took longer because its batch was sent together with
     * later ones. */
    int one_by_one;
    vulkan_helper helper;
    /* A bit for each of the device's queues with batches that waited for the timeline. */
    _Atomic uint32_t dependents;
};

/* status.c: the services of the host; failures with a message; results of Vulkan as statuses. */
void vulkan_set_host(const hal_host *host);
const hal_host *vulkan_host(void);
hal_status vulkan_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
const char *vulkan_result_name(VkResult result);
/* Fails with "<device>: <attempt>: <name of the result>". A lost device stays lost. `device` may be
 * null. */
hal_status vulkan_fail_result(hal_plugin_device *device, VkResult result, const char *format, ...)
    HAL_PRINTF(3, 4);
/* DEVICE_LOST after the device was lost. */
hal_status vulkan_device_check(const hal_plugin_device *device);
/* DEVICE_LOST, as accepted batches cannot run: the device is lost from now on. */
hal_status vulkan_device_give_up(hal_plugin_device *device);
/* vulkan_device_check, and UNSUPPORTED for a device without hardware. */
hal_status vulkan_device_check_hardware(const hal_plugin_device *device);

/* driver.c: opens the loader and creates the instance. Threads: any. */
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
                                       const hal_ir_kernel *interface, hal_plugin_kernel **kernel);
void vulkan_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* queue.c */
hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);
hal_status vulkan_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value);
hal_status vulkan_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
/* Dispatches a kernel with no groups and waits, so that the driver compiles it. Threads: any. */
hal_status vulkan_queue_warm(hal_plugin_device *device, hal_plugin_kernel *kernel);

/* point.c: the timeline of a queue, and the times of its points. */
VkResult vulkan_point_create(hal_plugin_queue *queue);
void vulkan_point_destroy(hal_plugin_queue *queue);
/* Whether the end of a batch gets a time. */
int vulkan_batch_is_timed(const hal_plugin_queue *queue, const hal_batch *batch);
/* Waits until the point that had the query of this one is reached. */
hal_status vulkan_point_await_time(hal_plugin_queue *queue, uint64_t value);
/* Prepares the time of a point by the host, which costs the device nothing, after
 * vulkan_point_await_time. Where the host cannot, commands.c does it. */
void vulkan_point_reset_time(hal_plugin_queue *queue, uint64_t value);
/* Waits for a value that was sent; on a device that was given up, too. */
hal_status vulkan_point_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns);
hal_status vulkan_queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds);

/* slot.c: command buffers and argument memory. A slot is released with the value of its batch, or
 * with 0 where nothing was submitted. Acquiring one releases the caller's lock while it waits. */
hal_status vulkan_slot_acquire(hal_plugin_queue *queue, vulkan_slot **slot);
void vulkan_slot_release(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t value);
hal_status vulkan_slot_arguments(hal_plugin_queue *queue, vulkan_slot *slot, uint64_t bytes);
/* The value that the submission with the batch of `value` signals. The timeline goes from one such
 * value to the next; the validation layer (1.3.239) misunderstands waits for those between. */
uint64_t vulkan_slot_end(const hal_plugin_queue *queue, uint64_t value);
void vulkan_slot_destroy_all(hal_plugin_queue *queue);

/* commands.c: records batches into a slot. */
hal_status vulkan_commands_begin(hal_plugin_device *device, vulkan_slot *slot);
/* Whether the slot has room for the arguments of a batch. */
int vulkan_commands_fit(const hal_plugin_device *device, const vulkan_slot *slot,
                        const hal_batch *batch);
/* What fails has appended nothing. */
hal_status vulkan_commands_append(hal_plugin_queue *queue, vulkan_slot *slot,
                                  const hal_batch *batch, uint64_t value);
hal_status vulkan_commands_end(hal_plugin_device *device, vulkan_slot *slot);

/* send.c: when recorded batches go to the driver. */
enum { VULKAN_MAX_WAITS = 64 }; /* of a submission */
/* Sends what the queue holds. Its batches wait for at most VULKAN_MAX_WAITS `waits`, whose values
 * were sent. A failure rejects the batch of a submit in progress if no other is held; otherwise
 * the device is lost. On a lost device what is held is dropped. The caller has the lock. */
hal_status vulkan_send(hal_plugin_queue *queue, const hal_plugin_wait *waits, uint32_t wait_count);
/* The same if the device needs it soon, or enough is held. The caller has the lock. */
hal_status vulkan_send_due(hal_plugin_queue *queue);
/* The same after a batch was recorded: a long program lets the device wait for a few batches. */
hal_status vulkan_send_recorded(hal_plugin_queue *queue);
/* Leaves what is held to the helper. The caller has the lock. */
hal_status vulkan_send_later(hal_plugin_queue *queue);
/* After somebody waited for a batch of the submission that ends with `end`, but not for its last:
 * unless that is reached, the queue sends its batches one by one from now on. The caller has the
 * lock. */
void vulkan_send_one_by_one(hal_plugin_queue *queue, uint64_t end);
/* For another queue that waits for `value`: sends what is held unless it was sent. Takes the lock
 * unless the value was sent after all groups. */
hal_status vulkan_send_up_to(hal_plugin_queue *queue, uint64_t value);
/* Of a queue's life: the first and, when all is sent, the last call. */
void vulkan_send_start(hal_plugin_queue *queue);
void vulkan_send_stop(hal_plugin_queue *queue);

#endif

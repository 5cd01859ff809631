/* Queues: the object, its creation and end. */
#ifndef PLUGINS_VULKAN_QUEUE_H
#define PLUGINS_VULKAN_QUEUE_H

#include "memory.h"

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
    bool mapped_writes;              /* mapped memory is written */
    bool is_transfer;                /* has a long copy between host and device */
    VkPipelineStageFlags recent;     /* stages of the commands since the last HAL_COMMAND_BARRIER */
    VkPipelineStageFlags pending[2]; /* stages that kernels, and copies, still have to wait for */
} vulkan_slot;

enum { VULKAN_TIMES = 1024 }; /* points of a queue whose times are kept */

/* A thread that sends what a queue holds. It exists once something was held. */
typedef struct vulkan_helper {
    pthread_t thread;
    pthread_cond_t wakes;
    bool exists, sleeps, stops;
} vulkan_helper;

struct hal_plugin_queue {
    const hal_host *host; /* of the instance; set by the kit */
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
    /* Each batch is sent alone, as a wait took longer because its batch was sent together with
     * later ones. */
    bool one_by_one;
    bool fails_next; /* the next batch does, as hal.faults asks */
    bool fails;      /* what is held */
    vulkan_helper helper;
    /* A bit for each of the device's queues with batches that waited for the timeline. */
    _Atomic uint32_t dependents;
};

hal_status vulkan_queue_create(hal_plugin_device *device, hal_plugin_queue **queue);
/* Frees a queue that has ended, see vulkan_send_stop, and has no slots. */
void vulkan_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue);

#endif

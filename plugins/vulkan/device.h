/* Devices: the object, its loss, and the entries that list, open and close devices. */
#ifndef PLUGINS_VULKAN_DEVICE_H
#define PLUGINS_VULKAN_DEVICE_H

#include "describe.h"
#include "status.h"

#include <pthread.h>
#include <stdatomic.h>

/* A queue of the device. Queues of hal share it; submissions are made under the lock. */
typedef struct vulkan_device_queue {
    VkQueue handle;
    pthread_mutex_t lock;
} vulkan_device_queue;

/* How a device was lost: the driver said so, or it refused batches that had been accepted. In the
 * second case the driver still runs what was sent. */
enum { VULKAN_LOST = 1, VULKAN_GIVEN_UP };

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
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

hal_status vulkan_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status vulkan_device_open(uint32_t index, hal_plugin_device **device);
void vulkan_device_close(hal_plugin_device *device);
hal_status vulkan_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk);

/* Fails with "<device>: <attempt>: <name of the result>". A lost device stays lost. */
hal_status vulkan_fail_result(hal_plugin_device *device, VkResult result, const char *format, ...)
    HAL_PRINTF(3, 4);
/* DEVICE_LOST after the device was lost. */
hal_status vulkan_device_check(const hal_plugin_device *device);
/* DEVICE_LOST, as accepted batches cannot run: the device is lost from now on. */
hal_status vulkan_device_give_up(hal_plugin_device *device);
/* vulkan_device_check, and UNSUPPORTED for a device without hardware. */
hal_status vulkan_device_check_hardware(const hal_plugin_device *device);

#endif

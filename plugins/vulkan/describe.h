/* What a physical device is. */
#ifndef PLUGINS_VULKAN_DESCRIBE_H
#define PLUGINS_VULKAN_DESCRIBE_H

#include "driver.h"
#include "lower/target.h"
#include "quirks.h"

#include <stdbool.h>

enum { VULKAN_MAX_DEVICE_QUEUES = 16, VULKAN_MAX_PUSH = 256 };

/* What a physical device is. */
typedef struct vulkan_description {
    VkPhysicalDevice handle;
    hal_device_info info;
    spirv_target target;
    uint32_t quirks;                               /* VULKAN_QUIRK_*, see quirks.h */
    const char *quirk_reasons[VULKAN_QUIRK_COUNT]; /* null where it has none */
    const char *quirks_variable;                   /* that gave the driver a quirk, or null */
    uint32_t family, queue_count;                  /* of the queues that compute */
    bool full_subgroups; /* pipelines with subgroups require their width and full ones */
    bool has_memory_budget;
    bool has_descriptors, has_dma_buf; /* of memory */
    bool has_semaphore_fd;             /* descriptors of timeline semaphores */
    bool has_clocks;                   /* of device and host are read together */
    uint32_t host_alignment;           /* of imports from the host; 0: there are none */
    bool has_subgroup_control;
    bool has_host_reset; /* the host resets queries */
    uint32_t timestamp_bits;
    double timestamp_period; /* nanoseconds of a tick */
    VkPhysicalDeviceMemoryProperties memory;
    char unusable[160]; /* why it cannot be used; empty: it can */
} vulkan_description;

void vulkan_describe(const vulkan_instance *instance, VkPhysicalDevice handle,
                     vulkan_description *description);

#endif

/* A Vulkan loader that stands in front of the real one and makes one thing go wrong, as the
 * variable VULKAN_FAULT says. test_vulkan_plugin puts it where the plugin finds it first. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char *name);

/* How many submissions the test's loader got. */
__attribute__((visibility("default"))) unsigned vulkan_fault_submits(void);

static PFN_vkGetInstanceProcAddr real_instance;
static PFN_vkGetDeviceProcAddr real_device;
static PFN_vkGetPhysicalDeviceFeatures2 real_features;
static PFN_vkGetPhysicalDeviceProperties real_properties;

static PFN_vkQueueSubmit real_submit;
static PFN_vkQueueWaitIdle real_wait_idle;
static PFN_vkDestroySemaphore real_destroy;

static int fault(const char *name)
{
    const char *wanted = getenv("VULKAN_FAULT");
    return wanted && strcmp(wanted, name) == 0;
}

/* One of several situations with a common beginning of their names. */
static int fault_begins(const char *name)
{
    const char *wanted = getenv("VULKAN_FAULT");
    return wanted && strncmp(wanted, name, strlen(name)) == 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL old_version(uint32_t *version)
{
    *version = VK_API_VERSION_1_1;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL no_devices(VkInstance instance, uint32_t *count,
                                                 VkPhysicalDevice *devices)
{
    *count = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL no_addresses(VkPhysicalDevice device,
                                               VkPhysicalDeviceFeatures2 *features)
{
    real_features(device, features);
    for (VkBaseOutStructure *at = (VkBaseOutStructure *)features; at != NULL; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            ((VkPhysicalDeviceVulkan12Features *)at)->bufferDeviceAddress = VK_FALSE;
        }
    }
}

static VKAPI_ATTR void VKAPI_CALL version_1_1(VkPhysicalDevice device,
                                              VkPhysicalDeviceProperties *properties)
{
    real_properties(device, properties);
    properties->apiVersion = VK_API_VERSION_1_1;
}

static VKAPI_ATTR VkResult VKAPI_CALL no_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                const VkAllocationCallbacks *callbacks,
                                                VkDeviceMemory *memory)
{
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VKAPI_ATTR VkResult VKAPI_CALL lost(VkQueue queue, uint32_t count, const VkSubmitInfo *infos,
                                           VkFence fence)
{
    return VK_ERROR_DEVICE_LOST;
}

/* Some drivers look at what a submission waited for after it has signalled: this one does until its
 * queue is asked to be idle. One such semaphore is enough. */
static VkSemaphore looked_at;

static VKAPI_ATTR VkResult VKAPI_CALL late_submit(VkQueue queue, uint32_t count,
                                                  const VkSubmitInfo *infos, VkFence fence)
{
    for (uint32_t i = 0; i < count; i++) {
        looked_at = infos[i].waitSemaphoreCount > 0 ? infos[i].pWaitSemaphores[0] : looked_at;
    }
    return real_submit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL late_wait_idle(VkQueue queue)
{
    looked_at = VK_NULL_HANDLE;
    return real_wait_idle(queue);
}

static VKAPI_ATTR void VKAPI_CALL late_destroy(VkDevice device, VkSemaphore semaphore,
                                               const VkAllocationCallbacks *callbacks)
{
    if (semaphore != VK_NULL_HANDLE && semaphore == looked_at) {
        fputs("a semaphore is destroyed that the driver still looks at\n", stderr);
        _Exit(3);
    }
    real_destroy(device, semaphore, callbacks);
}

/* The device's queue is not asked to be idle where the driver ends its use of a timeline with the
 * batches. Since the driver of the test does not, nothing is destroyed. */
static VKAPI_ATTR VkResult VKAPI_CALL no_wait_idle(VkQueue queue)
{
    fputs("a queue that is destroyed waits for the work of others\n", stderr);
    _Exit(7);
}

/* A checker of leaks finds what is kept. */
static VKAPI_ATTR void VKAPI_CALL no_destroy(VkDevice device, VkSemaphore semaphore,
                                             const VkAllocationCallbacks *callbacks)
{
    static VkSemaphore volatile kept[8];
    static uint32_t count;
    kept[count++ % (sizeof kept / sizeof kept[0])] = semaphore;
}

static PFN_vkGetPhysicalDeviceProperties2 real_properties2;

static VKAPI_ATTR void VKAPI_CALL other_driver(VkPhysicalDevice device,
                                               VkPhysicalDeviceProperties2 *properties)
{
    real_properties2(device, properties);
    for (VkBaseOutStructure *at = (VkBaseOutStructure *)properties; at != NULL; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES) {
            ((VkPhysicalDeviceDriverProperties *)at)->driverID = VK_DRIVER_ID_MOLTENVK;
        } else if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES) {
            ((VkPhysicalDeviceVulkan12Properties *)at)->driverID = VK_DRIVER_ID_MOLTENVK;
        }
    }
}

/* A timeline that is never seen to move; who looks at it three times is not asleep. */
static VKAPI_ATTR VkResult VKAPI_CALL no_move(VkDevice device, VkSemaphore semaphore,
                                              uint64_t *value)
{
    static int looks;
    *value = 0;
    if (++looks == 3) {
        fputs("a wait keeps looking on a device that is the processor\n", stderr);
        _Exit(4);
    }
    return VK_SUCCESS;
}

/* A timeline that moves only for those who wait; who does not, gets no end of command pools. */
static PFN_vkCreateCommandPool real_create_pool;

static VKAPI_ATTR VkResult VKAPI_CALL not_yet(VkDevice device, VkSemaphore semaphore,
                                              uint64_t *value)
{
    *value = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL few_pools(VkDevice device,
                                                const VkCommandPoolCreateInfo *info,
                                                const VkAllocationCallbacks *callbacks,
                                                VkCommandPool *pool)
{
    static int pools;
    if (++pools > 70) {
        fputs("a queue that is ahead of its device makes command pools without end\n", stderr);
        _Exit(5);
    }
    return real_create_pool(device, info, callbacks, pool);
}

/* A timeline that is seen to move from the third look on, to hold a batch back for a moment. */
static PFN_vkGetSemaphoreCounterValue real_value;

static VKAPI_ATTR VkResult VKAPI_CALL soon(VkDevice device, VkSemaphore semaphore, uint64_t *value)
{
    static int looks;
    *value = 0;
    return ++looks > 2 ? real_value(device, semaphore, value) : VK_SUCCESS;
}

/* Waits without a limit end only after a wait with one was made meanwhile. */
static PFN_vkWaitSemaphores real_wait;
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_made = PTHREAD_COND_INITIALIZER;
static unsigned waits_made;

static VKAPI_ATTR VkResult VKAPI_CALL two_waits(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                uint64_t timeout)
{
    pthread_mutex_lock(&wait_lock);
    if (timeout < UINT64_MAX / 2) {
        waits_made++;
        pthread_cond_broadcast(&wait_made);
        pthread_mutex_unlock(&wait_lock);
        return VK_TIMEOUT;
    }
    const unsigned made = waits_made;
    while (waits_made == made) {
        pthread_cond_wait(&wait_made, &wait_lock);
    }
    pthread_mutex_unlock(&wait_lock);
    return real_wait(device, info, timeout);
}

static _Atomic unsigned submits_counted;

unsigned vulkan_fault_submits(void)
{
    return atomic_load(&submits_counted);
}

static VKAPI_ATTR VkResult VKAPI_CALL counted(VkQueue queue, uint32_t count,
                                              const VkSubmitInfo *infos, VkFence fence)
{
    atomic_fetch_add(&submits_counted, 1);
    return real_submit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL few_submits(VkQueue queue, uint32_t count,
                                                  const VkSubmitInfo *infos, VkFence fence)
{
    static int submits;
    if (++submits > 4) {
        fputs("batches are submitted one by one while the device is busy\n", stderr);
        _Exit(6);
    }
    return real_submit(queue, count, infos, fence);
}

/* Accepts every other submission. */
static VKAPI_ATTR VkResult VKAPI_CALL every_other(VkQueue queue, uint32_t count,
                                                  const VkSubmitInfo *infos, VkFence fence)
{
    static int submits;
    return submits++ % 2 == 1 ? VK_ERROR_OUT_OF_HOST_MEMORY
                              : real_submit(queue, count, infos, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL rejected(VkDevice device, VkPipelineCache cache,
                                               uint32_t count,
                                               const VkComputePipelineCreateInfo *infos,
                                               const VkAllocationCallbacks *callbacks,
                                               VkPipeline *pipelines)
{
    pipelines[0] = VK_NULL_HANDLE;
    return VK_ERROR_UNKNOWN;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
    if (fault("no_memory") && strcmp(name, "vkAllocateMemory") == 0) {
        return (PFN_vkVoidFunction)no_memory;
    }
    if (fault("lost") && strcmp(name, "vkQueueSubmit") == 0) {
        return (PFN_vkVoidFunction)lost;
    }
    if (fault("rejected") && strcmp(name, "vkCreateComputePipelines") == 0) {
        return (PFN_vkVoidFunction)rejected;
    }
    if (fault("no_function") && strcmp(name, "vkWaitSemaphores") == 0) {
        return NULL;
    }
    if (fault("software") && strcmp(name, "vkGetSemaphoreCounterValue") == 0) {
        return (PFN_vkVoidFunction)no_move;
    }
    const int soon_moves = fault("helped") || fault("refused_helper");
    if ((fault("ahead") || fault("together") || fault_begins("refused") || fault("transfer") ||
         fault("full") || fault("awaited")) &&
        !soon_moves && strcmp(name, "vkGetSemaphoreCounterValue") == 0) {
        return (PFN_vkVoidFunction)not_yet;
    }
    PFN_vkVoidFunction real = real_device(device, name);
    if (soon_moves && strcmp(name, "vkGetSemaphoreCounterValue") == 0) {
        real_value = (PFN_vkGetSemaphoreCounterValue)real;
        return (PFN_vkVoidFunction)soon;
    }
    if ((fault("together") || fault_begins("refused") || fault("awaited")) &&
        strcmp(name, "vkQueueSubmit") == 0) {
        real_submit = (PFN_vkQueueSubmit)real;
        return (PFN_vkVoidFunction)(fault("together")  ? few_submits
                                    : fault("awaited") ? counted
                                                       : every_other);
    }
    if (fault("full") && strcmp(name, "vkWaitSemaphores") == 0) {
        real_wait = (PFN_vkWaitSemaphores)real;
        return (PFN_vkVoidFunction)two_waits;
    }
    if (fault("other_driver") && strcmp(name, "vkQueueWaitIdle") == 0) {
        return (PFN_vkVoidFunction)no_wait_idle;
    }
    if (fault("other_driver") && strcmp(name, "vkDestroySemaphore") == 0) {
        return (PFN_vkVoidFunction)no_destroy;
    }
    if (fault("ahead") && strcmp(name, "vkCreateCommandPool") == 0) {
        real_create_pool = (PFN_vkCreateCommandPool)real;
        return (PFN_vkVoidFunction)few_pools;
    }
    if (fault("late") && strcmp(name, "vkQueueSubmit") == 0) {
        real_submit = (PFN_vkQueueSubmit)real;
        return (PFN_vkVoidFunction)late_submit;
    }
    if (fault("late") && strcmp(name, "vkQueueWaitIdle") == 0) {
        real_wait_idle = (PFN_vkQueueWaitIdle)real;
        return (PFN_vkVoidFunction)late_wait_idle;
    }
    if (fault("late") && strcmp(name, "vkDestroySemaphore") == 0) {
        real_destroy = (PFN_vkDestroySemaphore)real;
        return (PFN_vkVoidFunction)late_destroy;
    }
    return real;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    if (!real_instance) {
        void *library = dlopen(REAL_VULKAN_LOADER, RTLD_NOW | RTLD_LOCAL);
        void *function = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        if (!function) {
            return NULL;
        }
        memcpy(&real_instance, &function, sizeof function);
    }
    PFN_vkVoidFunction real = real_instance(instance, name);
    if (fault("old_loader") && strcmp(name, "vkEnumerateInstanceVersion") == 0) {
        return (PFN_vkVoidFunction)old_version;
    }
    if (fault("no_device") && strcmp(name, "vkEnumeratePhysicalDevices") == 0) {
        return (PFN_vkVoidFunction)no_devices;
    }
    if (fault("no_addresses") && strcmp(name, "vkGetPhysicalDeviceFeatures2") == 0) {
        real_features = (PFN_vkGetPhysicalDeviceFeatures2)real;
        return (PFN_vkVoidFunction)no_addresses;
    }
    if (fault("old_device") && strcmp(name, "vkGetPhysicalDeviceProperties") == 0) {
        real_properties = (PFN_vkGetPhysicalDeviceProperties)real;
        return (PFN_vkVoidFunction)version_1_1;
    }
    if (fault("other_driver") && strcmp(name, "vkGetPhysicalDeviceProperties2") == 0) {
        real_properties2 = (PFN_vkGetPhysicalDeviceProperties2)real;
        return (PFN_vkVoidFunction)other_driver;
    }
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        real_device = (PFN_vkGetDeviceProcAddr)real;
        return (PFN_vkVoidFunction)device_function;
    }
    return real;
}

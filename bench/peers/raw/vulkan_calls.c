/* Vulkan without hal. */
#include "peers/raw/vulkan_calls.h"

#include <stdio.h>
#include <string.h>

#include "peers/library.h"

enum { MOST = 16 };

void vulkan_close(vulkan_calls *vk)
{
    if (vk->device && vk->vkDestroyDevice) {
        vk->vkDestroyDevice(vk->device, NULL);
    }
    if (vk->instance && vk->vkDestroyInstance) {
        vk->vkDestroyInstance(vk->instance, NULL);
    }
    vk->device = NULL;
    vk->instance = NULL;
}

static bool make_instance(vulkan_calls *vk, char *message, size_t bytes)
{
    PFN_vkGetInstanceProcAddr find = NULL;
    if (!library_open("libvulkan.so.1", &(library_symbol){&find, "vkGetInstanceProcAddr"}, 1,
                      message, bytes)) {
        return false;
    }
    const VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                       .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo what = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &program};
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)find(NULL, "vkCreateInstance");
    if (!create || create(&what, NULL, &vk->instance) != VK_SUCCESS) {
        snprintf(message, bytes, "Vulkan gives no instance of version 1.2");
        return false;
    }
#define VULKAN_LOAD(name) vk->name = (PFN_##name)find(vk->instance, #name);
    VULKAN_INSTANCE_CALLS(VULKAN_LOAD)
#undef VULKAN_LOAD
    return true;
}

static bool find_device(vulkan_calls *vk, const char *wanted)
{
    VkPhysicalDevice devices[MOST];
    uint32_t count = MOST;
    vk->vkEnumeratePhysicalDevices(vk->instance, &count, devices);
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties properties;
        vk->vkGetPhysicalDeviceProperties(devices[i], &properties);
        /* hal's name holds 127 bytes. */
        if (strncmp(wanted, properties.deviceName, 127) == 0) {
            vk->physical = devices[i];
            return true;
        }
    }
    return false;
}

static bool find_family(vulkan_calls *vk)
{
    VkQueueFamilyProperties families[MOST];
    uint32_t count = MOST;
    vk->vkGetPhysicalDeviceQueueFamilyProperties(vk->physical, &count, families);
    for (vk->family = 0; vk->family < count; vk->family++) {
        if ((families[vk->family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
            return true;
        }
    }
    return false;
}

static bool make_device(vulkan_calls *vk)
{
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = vk->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo what = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    if (vk->vkCreateDevice(vk->physical, &what, NULL, &vk->device) != VK_SUCCESS) {
        vk->device = NULL;
        return false;
    }
#define VULKAN_LOAD(name) vk->name = (PFN_##name)vk->vkGetDeviceProcAddr(vk->device, #name);
    VULKAN_DEVICE_CALLS(VULKAN_LOAD)
#undef VULKAN_LOAD
    vk->vkGetDeviceQueue(vk->device, vk->family, 0, &vk->queue);
    return true;
}

bool vulkan_open(vulkan_calls *vk, const hal_device_info *info, char *message, size_t bytes)
{
    *vk = (vulkan_calls){0};
    if (!make_instance(vk, message, bytes)) {
        return false;
    }
    if (!find_device(vk, info->name) || !find_family(vk) || !make_device(vk)) {
        snprintf(message, bytes, "Vulkan has no device called %s that computes", info->name);
        vulkan_close(vk);
        return false;
    }
    return true;
}

void vulkan_buffer_free(const vulkan_calls *vk, vulkan_buffer *buffer)
{
    vk->vkDestroyBuffer(vk->device, buffer->buffer, NULL);
    vk->vkFreeMemory(vk->device, buffer->memory, NULL);
    *buffer = (vulkan_buffer){0};
}

VkResult vulkan_buffer_make(const vulkan_calls *vk, uint64_t bytes,
                            VkMemoryPropertyFlags properties, vulkan_buffer *made)
{
    const VkBufferCreateInfo what = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkPhysicalDeviceMemoryProperties memory;
    VkMemoryRequirements needs;
    *made = (vulkan_buffer){0};
    VkResult result = vk->vkCreateBuffer(vk->device, &what, NULL, &made->buffer);
    if (result != VK_SUCCESS) {
        return result;
    }
    vk->vkGetBufferMemoryRequirements(vk->device, made->buffer, &needs);
    vk->vkGetPhysicalDeviceMemoryProperties(vk->physical, &memory);
    uint32_t type = 0;
    while (type < memory.memoryTypeCount &&
           ((needs.memoryTypeBits >> type & 1) == 0 ||
            (memory.memoryTypes[type].propertyFlags & properties) != properties)) {
        type++;
    }
    const VkMemoryAllocateInfo size = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = type};
    result = type == memory.memoryTypeCount
                 ? VK_ERROR_FEATURE_NOT_PRESENT
                 : vk->vkAllocateMemory(vk->device, &size, NULL, &made->memory);
    if (result == VK_SUCCESS) {
        result = vk->vkBindBufferMemory(vk->device, made->buffer, made->memory, 0);
    }
    if (result != VK_SUCCESS) {
        vulkan_buffer_free(vk, made);
    }
    return result;
}

/* Vulkan without hal: the loader, opened at run time, and the device that hal's plugin drives, with
 * one queue that computes. */
#ifndef BENCH_PEERS_RAW_VULKAN_CALLS_H
#define BENCH_PEERS_RAW_VULKAN_CALLS_H

#define VK_NO_PROTOTYPES
#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <vulkan/vulkan.h>

#define VULKAN_INSTANCE_CALLS(call)                                                                \
    call(vkDestroyInstance) call(vkEnumeratePhysicalDevices) call(vkGetPhysicalDeviceProperties)   \
    call(vkGetPhysicalDeviceQueueFamilyProperties) call(vkGetPhysicalDeviceMemoryProperties)       \
    call(vkCreateDevice) call(vkGetDeviceProcAddr)

#define VULKAN_DEVICE_CALLS(call)                                                                  \
    call(vkDestroyDevice) call(vkDeviceWaitIdle) call(vkGetDeviceQueue) call(vkQueueSubmit)        \
    call(vkCreateCommandPool) call(vkDestroyCommandPool) call(vkAllocateCommandBuffers)            \
    call(vkBeginCommandBuffer) call(vkEndCommandBuffer) call(vkCreateFence) call(vkDestroyFence)   \
    call(vkWaitForFences) call(vkResetFences) call(vkCreateShaderModule)                           \
    call(vkDestroyShaderModule) call(vkCreateDescriptorSetLayout)                                  \
    call(vkDestroyDescriptorSetLayout) call(vkCreatePipelineLayout)                                \
    call(vkDestroyPipelineLayout) call(vkCreateComputePipelines) call(vkDestroyPipeline)           \
    call(vkCreateDescriptorPool) call(vkDestroyDescriptorPool) call(vkAllocateDescriptorSets)      \
    call(vkUpdateDescriptorSets) call(vkCreateBuffer) call(vkDestroyBuffer)                        \
    call(vkGetBufferMemoryRequirements) call(vkAllocateMemory) call(vkFreeMemory)                  \
    call(vkBindBufferMemory) call(vkMapMemory) call(vkCmdBindPipeline)                             \
    call(vkCmdBindDescriptorSets) call(vkCmdDispatch) call(vkCmdPipelineBarrier)                   \
    call(vkCmdCopyBuffer) call(vkCmdFillBuffer)

typedef struct vulkan_calls {
#define VULKAN_MEMBER(name) PFN_##name name;
    VULKAN_INSTANCE_CALLS(VULKAN_MEMBER)
    VULKAN_DEVICE_CALLS(VULKAN_MEMBER)
#undef VULKAN_MEMBER
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t family;
} vulkan_calls;

/* Fills in all of it for the device that `info` describes. False with a message. */
bool vulkan_open(vulkan_calls *vk, const hal_device_info *info, char *message, size_t bytes);
void vulkan_close(vulkan_calls *vk);

/* A buffer with dedicated memory that has `properties`. */
typedef struct vulkan_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
} vulkan_buffer;
VkResult vulkan_buffer_make(const vulkan_calls *vk, uint64_t bytes,
                            VkMemoryPropertyFlags properties, vulkan_buffer *made);
void vulkan_buffer_free(const vulkan_calls *vk, vulkan_buffer *buffer);

#endif

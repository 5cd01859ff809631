/* What the plugin calls of Vulkan, by where it comes from: LOADER from the loader library itself,
 * GLOBAL and INSTANCE from vkGetInstanceProcAddr, DEVICE from vkGetDeviceProcAddr. The names of the
 * floor's versions (1.2) only. A list that the includer does not want is left undefined. */
#ifdef LOADER
LOADER(vkGetInstanceProcAddr)
#endif

#ifdef GLOBAL
GLOBAL(vkEnumerateInstanceVersion)
GLOBAL(vkCreateInstance)
#endif

#ifdef INSTANCE
INSTANCE(vkDestroyInstance)
INSTANCE(vkEnumeratePhysicalDevices)
INSTANCE(vkEnumerateDeviceExtensionProperties)
INSTANCE(vkGetPhysicalDeviceProperties)
INSTANCE(vkGetPhysicalDeviceProperties2)
INSTANCE(vkGetPhysicalDeviceFeatures2)
INSTANCE(vkGetPhysicalDeviceMemoryProperties2)
INSTANCE(vkGetPhysicalDeviceQueueFamilyProperties)
INSTANCE(vkCreateDevice)
INSTANCE(vkGetDeviceProcAddr)
#endif

#ifdef DEVICE
DEVICE(vkDestroyDevice)
DEVICE(vkGetDeviceQueue)
DEVICE(vkCreateBuffer)
DEVICE(vkDestroyBuffer)
DEVICE(vkGetBufferMemoryRequirements)
DEVICE(vkGetBufferDeviceAddress)
DEVICE(vkAllocateMemory)
DEVICE(vkFreeMemory)
DEVICE(vkBindBufferMemory)
DEVICE(vkMapMemory)
DEVICE(vkCreateShaderModule)
DEVICE(vkDestroyShaderModule)
DEVICE(vkCreatePipelineLayout)
DEVICE(vkDestroyPipelineLayout)
DEVICE(vkCreatePipelineCache)
DEVICE(vkDestroyPipelineCache)
DEVICE(vkGetPipelineCacheData)
DEVICE(vkCreateComputePipelines)
DEVICE(vkDestroyPipeline)
DEVICE(vkCreateSemaphore)
DEVICE(vkDestroySemaphore)
DEVICE(vkGetSemaphoreCounterValue)
DEVICE(vkWaitSemaphores)
DEVICE(vkCreateCommandPool)
DEVICE(vkDestroyCommandPool)
DEVICE(vkResetCommandPool)
DEVICE(vkAllocateCommandBuffers)
DEVICE(vkBeginCommandBuffer)
DEVICE(vkEndCommandBuffer)
DEVICE(vkCmdBindPipeline)
DEVICE(vkCmdPushConstants)
DEVICE(vkCmdDispatch)
DEVICE(vkCmdPipelineBarrier)
DEVICE(vkCmdCopyBuffer)
DEVICE(vkCmdFillBuffer)
DEVICE(vkCmdResetQueryPool)
DEVICE(vkCmdWriteTimestamp)
DEVICE(vkCreateQueryPool)
DEVICE(vkResetQueryPool)
DEVICE(vkDestroyQueryPool)
DEVICE(vkGetQueryPoolResults)
DEVICE(vkQueueSubmit)
DEVICE(vkQueueWaitIdle)
#endif

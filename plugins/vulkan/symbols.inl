/* The Vulkan functions that the plugin calls, by their source: LOADER from the loader library,
 * GLOBAL, INSTANCE and EXTENSION from vkGetInstanceProcAddr, DEVICE and DEVICE_EXTENSION from
 * vkGetDeviceProcAddr. Names
 * of the least version (1.2); those of extensions may be null. The includer defines the macros of
 * the lists that it wants. */
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
INSTANCE(vkGetPhysicalDeviceExternalSemaphoreProperties)
INSTANCE(vkCreateDevice)
INSTANCE(vkGetDeviceProcAddr)
#endif

#ifdef EXTENSION
EXTENSION(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)
EXTENSION(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT)
#endif

#ifdef DEVICE_EXTENSION
DEVICE_EXTENSION(vkGetMemoryHostPointerPropertiesEXT)
DEVICE_EXTENSION(vkGetMemoryFdKHR)
DEVICE_EXTENSION(vkGetMemoryFdPropertiesKHR)
DEVICE_EXTENSION(vkGetSemaphoreFdKHR)
DEVICE_EXTENSION(vkGetCalibratedTimestampsEXT)
DEVICE_EXTENSION(vkImportSemaphoreFdKHR)
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
DEVICE(vkCmdDispatchIndirect)
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

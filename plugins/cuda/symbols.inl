/* The functions of the CUDA driver that the plugin calls: SYMBOL(name, types of the parameters) is
 * required, OPTIONAL is not. Names are those that the library exports, with the version of each
 * entry. All return a cuda_result. */
SYMBOL(cuInit, (unsigned flags))
SYMBOL(cuDriverGetVersion, (int *version))
SYMBOL(cuGetErrorName, (cuda_result result, const char **name))
SYMBOL(cuGetErrorString, (cuda_result result, const char **text))

SYMBOL(cuDeviceGetCount, (int *count))
SYMBOL(cuDeviceGet, (cuda_device *device, int ordinal))
SYMBOL(cuDeviceGetName, (char *name, int bytes, cuda_device device))
SYMBOL(cuDeviceGetUuid, (cuda_uuid *uuid, cuda_device device))
SYMBOL(cuDeviceTotalMem_v2, (size_t *bytes, cuda_device device))
SYMBOL(cuDeviceGetAttribute, (int *value, int attribute, cuda_device device))
SYMBOL(cuDeviceCanAccessPeer, (int *can, cuda_device device, cuda_device peer))

SYMBOL(cuDevicePrimaryCtxRetain, (cuda_context *context, cuda_device device))
SYMBOL(cuDevicePrimaryCtxRelease_v2, (cuda_device device))
SYMBOL(cuCtxPushCurrent_v2, (cuda_context context))
SYMBOL(cuCtxPopCurrent_v2, (cuda_context * context))
SYMBOL(cuCtxEnablePeerAccess, (cuda_context peer, unsigned flags))

SYMBOL(cuMemGetInfo_v2, (size_t *free, size_t *total))
SYMBOL(cuMemAlloc_v2, (cuda_address * address, size_t bytes))
SYMBOL(cuMemFree_v2, (cuda_address address))
SYMBOL(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags))
SYMBOL(cuMemFreeHost, (void *pointer))
OPTIONAL(cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned flags))
OPTIONAL(cuMemHostUnregister, (void *pointer))
OPTIONAL(cuImportExternalMemory, (cuda_shared_memory *memory, const cuda_shared_handle *handle))
OPTIONAL(cuExternalMemoryGetMappedBuffer,
         (cuda_address * address, cuda_shared_memory memory, const cuda_shared_range *range))
OPTIONAL(cuDestroyExternalMemory, (cuda_shared_memory memory))
OPTIONAL(cuMemGetAllocationGranularity,
         (size_t *bytes, const cuda_physical_kind *kind, int recommended))
OPTIONAL(cuMemAddressReserve, (cuda_address * address, size_t bytes, size_t alignment,
                               cuda_address wanted, unsigned long long flags))
OPTIONAL(cuMemAddressFree, (cuda_address address, size_t bytes))
OPTIONAL(cuMemCreate, (cuda_physical * memory, size_t bytes, const cuda_physical_kind *kind,
                       unsigned long long flags))
OPTIONAL(cuMemRelease, (cuda_physical memory))
OPTIONAL(cuMemMap, (cuda_address address, size_t bytes, size_t offset, cuda_physical memory,
                    unsigned long long flags))
OPTIONAL(cuMemUnmap, (cuda_address address, size_t bytes))
OPTIONAL(cuMemSetAccess,
         (cuda_address address, size_t bytes, const cuda_access *accesses, size_t count))
OPTIONAL(cuImportExternalSemaphore,
         (cuda_semaphore *semaphore, const cuda_semaphore_handle *handle))
OPTIONAL(cuDestroyExternalSemaphore, (cuda_semaphore semaphore))
OPTIONAL(cuWaitExternalSemaphoresAsync, (const cuda_semaphore *semaphores,
                                         const cuda_semaphore_value *values, unsigned count,
                                         cuda_stream stream))
OPTIONAL(cuSignalExternalSemaphoresAsync, (const cuda_semaphore *semaphores,
                                           const cuda_semaphore_value *values, unsigned count,
                                           cuda_stream stream))
SYMBOL(cuMemHostGetDevicePointer_v2, (cuda_address * address, void *pointer, unsigned flags))
SYMBOL(cuMemcpyAsync, (cuda_address to, cuda_address from, size_t bytes, cuda_stream stream))
SYMBOL(cuMemcpyPeerAsync, (cuda_address to, cuda_context to_context, cuda_address from,
                           cuda_context from_context, size_t bytes, cuda_stream stream))
SYMBOL(cuMemcpy2DAsync_v2, (const cuda_rows *rows, cuda_stream stream))
SYMBOL(cuMemsetD8Async, (cuda_address to, unsigned char value, size_t count, cuda_stream stream))
SYMBOL(cuMemsetD32Async, (cuda_address to, unsigned value, size_t count, cuda_stream stream))
SYMBOL(cuMemsetD2D32Async, (cuda_address to, size_t pitch, unsigned value, size_t width,
                            size_t height, cuda_stream stream))

SYMBOL(cuStreamCreate, (cuda_stream * stream, unsigned flags))
SYMBOL(cuStreamDestroy_v2, (cuda_stream stream))
SYMBOL(cuStreamQuery, (cuda_stream stream))
SYMBOL(cuStreamSynchronize, (cuda_stream stream))
SYMBOL(cuStreamWaitEvent, (cuda_stream stream, cuda_event event, unsigned flags))
OPTIONAL(cuStreamWriteValue64_v2,
         (cuda_stream stream, cuda_address address, uint64_t value, unsigned flags))
SYMBOL(cuEventCreate, (cuda_event * event, unsigned flags))
SYMBOL(cuEventDestroy_v2, (cuda_event event))
SYMBOL(cuEventRecord, (cuda_event event, cuda_stream stream))
SYMBOL(cuEventQuery, (cuda_event event))
SYMBOL(cuEventSynchronize, (cuda_event event))
SYMBOL(cuEventElapsedTime, (float *milliseconds, cuda_event first, cuda_event second))

SYMBOL(cuLinkCreate_v2,
       (unsigned count, const int *options, void **values, cuda_linker *linker))
SYMBOL(cuLinkAddData_v2, (cuda_linker linker, int kind, void *data, size_t bytes, const char *name,
                          unsigned count, const int *options, void **values))
SYMBOL(cuLinkComplete, (cuda_linker linker, void **cubin, size_t *bytes))
SYMBOL(cuLinkDestroy, (cuda_linker linker))
SYMBOL(cuModuleLoadDataEx, (cuda_module * module, const void *image, unsigned count,
                            const int *options, void **values))
SYMBOL(cuModuleUnload, (cuda_module module))
SYMBOL(cuModuleGetFunction, (cuda_function * function, cuda_module module, const char *name))
SYMBOL(cuFuncGetAttribute, (int *value, int attribute, cuda_function function))
SYMBOL(cuFuncSetAttribute, (cuda_function function, int attribute, int value))
SYMBOL(cuLaunchKernel,
       (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned group_x,
        unsigned group_y, unsigned group_z, unsigned shared, cuda_stream stream, void **parameters,
        void **extra))

OPTIONAL(cuLaunchKernelEx, (const cuda_launch_config *config, cuda_function function,
                            void **parameters, void **extra))

OPTIONAL(cuTensorMapEncodeTiled,
         (void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
          const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
          int swizzle, int promotion, int fill))
OPTIONAL(cuTensorMapReplaceAddress, (void *map, void *address))
/* Clusters: since 11.8. */
OPTIONAL(cuOccupancyMaxActiveClusters,
         (int *count, cuda_function function, const cuda_launch_config *config))

SYMBOL(cuGraphCreate, (cuda_graph * graph, unsigned flags))
SYMBOL(cuGraphDestroy, (cuda_graph graph))
SYMBOL(cuGraphAddKernelNode, (cuda_node * node, cuda_graph graph, const cuda_node *after,
                              size_t after_count, const cuda_node_launch *launch))
OPTIONAL(cuGraphAddDependencies_v2, (cuda_graph graph, const cuda_node *from, const cuda_node *to,
                                     const cuda_edge *edges, size_t count))
SYMBOL(cuGraphInstantiateWithFlags,
       (cuda_executable * executable, cuda_graph graph, unsigned long long flags))
SYMBOL(cuGraphExecKernelNodeSetParams,
       (cuda_executable executable, cuda_node node, const cuda_node_launch *launch))
SYMBOL(cuGraphNodeSetEnabled, (cuda_executable executable, cuda_node node, unsigned enabled))
SYMBOL(cuGraphLaunch, (cuda_executable executable, cuda_stream stream))
SYMBOL(cuGraphExecDestroy, (cuda_executable executable))

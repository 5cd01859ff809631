/* The CUDA driver without hal: the library, loaded at run time, and the primary context of hal's
 * device. The types repeat the documented interface, so that the build needs no toolkit. */
#ifndef BENCH_PEERS_RAW_CUDA_CALLS_H
#define BENCH_PEERS_RAW_CUDA_CALLS_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Member, symbol, parameters; all return a CUresult. host_allocate gives page-locked memory. */
/* clang-format off */
#define CUDA_CALLS(call)                                                                           \
    call(init, "cuInit", (unsigned flags))                                                         \
    call(device_count, "cuDeviceGetCount", (int *count))                                           \
    call(device_get, "cuDeviceGet", (int *device, int ordinal))                                    \
    call(device_name, "cuDeviceGetName", (char *name, int bytes, int device))                      \
    call(device_uuid, "cuDeviceGetUuid", (uint8_t uuid[16], int device))                           \
    call(primary_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                 \
    call(primary_release, "cuDevicePrimaryCtxRelease_v2", (int device))                            \
    call(context_set, "cuCtxSetCurrent", (void *context))                                          \
    call(module_load, "cuModuleLoadData", (void **module, const void *image))                      \
    call(module_unload, "cuModuleUnload", (void * module))                                         \
    call(module_function, "cuModuleGetFunction", (void **function, void *module, const char        \
         *name))                                                                                   \
    call(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                         \
    call(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                     \
    call(stream_wait, "cuStreamSynchronize", (void *stream))                                       \
    call(launch, "cuLaunchKernel", (void *function, unsigned grid_x, unsigned grid_y, unsigned     \
         grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void       \
         *stream, void * *arguments, void ** extra))                                               \
    call(allocate, "cuMemAlloc_v2", (uint64_t * memory, size_t bytes))                             \
    call(release, "cuMemFree_v2", (uint64_t memory))                                               \
    call(allocate_ordered, "cuMemAllocAsync", (uint64_t * memory, size_t bytes, void * stream))    \
    call(release_ordered, "cuMemFreeAsync", (uint64_t memory, void *stream))                       \
    call(copy, "cuMemcpyDtoDAsync_v2", (uint64_t target, uint64_t source, size_t bytes, void       \
         *stream))                                                                                 \
    call(copy_peer, "cuMemcpyPeerAsync", (uint64_t target, void *target_context, uint64_t          \
         source, void *source_context, size_t bytes, void *stream))                                \
    call(peer_enable, "cuCtxEnablePeerAccess", (void *context, unsigned flags))                    \
    call(to_device, "cuMemcpyHtoD_v2", (uint64_t target, const void *source, size_t bytes))        \
    call(to_device_ordered, "cuMemcpyHtoDAsync_v2", (uint64_t target, const void *source, size_t   \
         bytes, void *stream))                                                                     \
    call(to_host, "cuMemcpyDtoH_v2", (void *target, uint64_t source, size_t bytes))                \
    call(to_host_ordered, "cuMemcpyDtoHAsync_v2", (void *target, uint64_t source, size_t bytes,    \
         void *stream))                                                                            \
    call(host_allocate, "cuMemAllocHost_v2", (void **memory, size_t bytes))                        \
    call(host_release, "cuMemFreeHost", (void *memory))                                            \
    call(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                       \
    call(capture_end, "cuStreamEndCapture", (void *stream, void **graph))                          \
    call(graph_instantiate, "cuGraphInstantiateWithFlags", (void **executable, void *graph,        \
         uint64_t flags))                                                                          \
    call(graph_launch, "cuGraphLaunch", (void *executable, void *stream))                          \
    call(graph_destroy, "cuGraphDestroy", (void *graph))                                           \
    call(executable_destroy, "cuGraphExecDestroy", (void *executable))
/* clang-format on */

typedef struct cuda_calls {
#define CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
    CUDA_CALLS(CUDA_MEMBER)
#undef CUDA_MEMBER
    int device;
    void *context, *stream;
} cuda_calls;

/* Loads the driver and opens the device that `info` describes; its context becomes current. False
 * with a message. */
bool cuda_open(cuda_calls *cuda, const hal_device_info *info, char *message, size_t bytes);
void cuda_close(cuda_calls *cuda);

#endif

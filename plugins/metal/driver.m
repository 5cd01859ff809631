/* The calls of Metal: the only file of the plugin in Objective-C. References are counted by hand,
 * there are no blocks, and each call that makes temporary objects has its own pool. Functions that
 * newer systems lack are looked for at run time; the deployment target is macOS 13. */
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include "driver.h"

#include <stdio.h>
#include <string.h>

static id<MTLDevice> gpu_of(metal_gpu *gpu)
{
    return (id<MTLDevice>)gpu;
}

static id<MTLCommandBuffer> commands_of(metal_commands *commands)
{
    return (id<MTLCommandBuffer>)commands;
}

static id<MTLComputeCommandEncoder> compute_of(metal_compute *compute)
{
    return (id<MTLComputeCommandEncoder>)compute;
}

static id<MTLBlitCommandEncoder> blit_of(metal_blit *blit)
{
    return (id<MTLBlitCommandEncoder>)blit;
}

static id<MTLFence> fence_of(metal_fence *fence)
{
    return (id<MTLFence>)fence;
}

static void copy_text(char *to, size_t size, NSString *from)
{
    const char *text = from != nil ? [from UTF8String] : NULL;
    snprintf(to, size, "%s", text ? text : "");
}

static void error_set(metal_error *error, NSError *from, const char *otherwise)
{
    error->code = from != nil ? (long)[from code] : 0;
    if (from != nil) {
        copy_text(error->message, sizeof error->message, [from localizedDescription]);
    } else {
        snprintf(error->message, sizeof error->message, "%s", otherwise);
    }
}

void metal_shim_retain(void *object)
{
    [(id)object retain];
}

void metal_shim_release(void *object)
{
    [(id)object release];
}

/* ---- Devices ---- */

uint32_t metal_shim_devices(metal_gpu **gpus, uint32_t capacity)
{
    uint32_t count = 0;
    @autoreleasepool {
#if defined TARGET_OS_IPHONE && TARGET_OS_IPHONE
        id<MTLDevice> only = MTLCreateSystemDefaultDevice();
        if (only != nil && capacity > 0) {
            gpus[count++] = (metal_gpu *)only;
        }
#else
        NSArray *all = MTLCopyAllDevices();
        for (NSUInteger i = 0; i < [all count] && count < capacity; i++) {
            gpus[count++] = (metal_gpu *)[[all objectAtIndex:i] retain];
        }
        [all release];
#endif
    }
    return count;
}

static uint32_t apple_family(id<MTLDevice> device)
{
    static const struct {
        MTLGPUFamily family;
        uint32_t number;
    } known[] = {
        {MTLGPUFamilyApple9, 9},
        {MTLGPUFamilyApple8, 8},
        {MTLGPUFamilyApple7, 7},
        {MTLGPUFamilyApple6, 6},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if ([device supportsFamily:known[i].family]) {
            return known[i].number;
        }
    }
    return 0;
}

void metal_shim_describe(metal_gpu *gpu, metal_facts *facts)
{
    @autoreleasepool {
        id<MTLDevice> device = gpu_of(gpu);
        const MTLSize threads = [device maxThreadsPerThreadgroup];
        memset(facts, 0, sizeof *facts);
        copy_text(facts->name, sizeof facts->name, [device name]);
        if ([device respondsToSelector:@selector(architecture)]) { /* since macOS 14 */
            id architecture = [(NSObject *)device
                valueForKey:[NSString stringWithUTF8String:"architecture"]];
            copy_text(facts->architecture, sizeof facts->architecture,
                      [architecture valueForKey:[NSString stringWithUTF8String:"name"]]);
        }
        copy_text(facts->system, sizeof facts->system,
                  [[NSProcessInfo processInfo] operatingSystemVersionString]);
        facts->registry_id = [device registryID];
        facts->working_set = [device recommendedMaxWorkingSetSize];
        facts->max_buffer = [device maxBufferLength];
        facts->max_threads[0] = threads.width;
        facts->max_threads[1] = threads.height;
        facts->max_threads[2] = threads.depth;
        facts->shared_bytes = [device maxThreadgroupMemoryLength];
        facts->apple_family = apple_family(device);
        facts->mac2 = [device supportsFamily:MTLGPUFamilyMac2];
        facts->unified = [device hasUnifiedMemory];
#if !(defined TARGET_OS_IPHONE && TARGET_OS_IPHONE)
        facts->low_power = [device isLowPower];
#endif
    }
}

uint64_t metal_shim_allocated(metal_gpu *gpu)
{
    return [gpu_of(gpu) currentAllocatedSize];
}

metal_buffer *metal_shim_buffer(metal_gpu *gpu, uint64_t bytes, bool is_private, void **host)
{
    id<MTLBuffer> made = nil;
    @autoreleasepool {
        const MTLResourceOptions storage =
            is_private ? MTLResourceStorageModePrivate : MTLResourceStorageModeShared;
        made = [gpu_of(gpu) newBufferWithLength:bytes
                                        options:storage | MTLResourceHazardTrackingModeUntracked];
        *host = made != nil && !is_private ? [made contents] : NULL;
    }
    return (metal_buffer *)made;
}

metal_buffer *metal_shim_buffer_of_host(metal_gpu *gpu, void *pages, uint64_t bytes)
{
    id<MTLBuffer> made = nil;
    @autoreleasepool {
        made = [gpu_of(gpu) newBufferWithBytesNoCopy:pages
                                              length:bytes
                                             options:MTLResourceStorageModeShared |
                                                     MTLResourceHazardTrackingModeUntracked
                                         deallocator:NULL];
    }
    return (metal_buffer *)made;
}

uint64_t metal_shim_buffer_length(metal_buffer *buffer)
{
    return [(id<MTLBuffer>)buffer length];
}

metal_stream *metal_shim_stream(metal_gpu *gpu, uint32_t commands_in_flight)
{
    id<MTLCommandQueue> made = nil;
    @autoreleasepool {
        made = [gpu_of(gpu) newCommandQueueWithMaxCommandBufferCount:commands_in_flight];
    }
    return (metal_stream *)made;
}

metal_fence *metal_shim_fence(metal_gpu *gpu)
{
    return (metal_fence *)[gpu_of(gpu) newFence];
}

metal_event *metal_shim_event(metal_gpu *gpu)
{
    return (metal_event *)[gpu_of(gpu) newSharedEvent];
}

uint64_t metal_shim_event_value(metal_event *event)
{
    return [(id<MTLSharedEvent>)event signaledValue];
}

void metal_shim_event_set(metal_event *event, uint64_t value)
{
    [(id<MTLSharedEvent>)event setSignaledValue:value];
}

bool metal_shim_event_wait(metal_event *event, uint64_t value, uint64_t milliseconds)
{
    bool reached = false;
    @autoreleasepool {
        reached = [(id<MTLSharedEvent>)event waitUntilSignaledValue:value timeoutMS:milliseconds];
    }
    return reached;
}

/* ---- Kernels ---- */

/* mathMode replaces fastMathEnabled since macOS 15; older systems lack the names. */
static void options_set_number(MTLCompileOptions *options, SEL setter, const char *key, int value)
{
    if ([options respondsToSelector:setter]) {
        [options setValue:[NSNumber numberWithInt:value]
                   forKey:[NSString stringWithUTF8String:key]];
    }
}

void *metal_shim_library(metal_gpu *gpu, const char *source, metal_error *error)
{
    enum { MATH_MODE_SAFE = 0, FUNCTIONS_PRECISE = 1 };
    id<MTLLibrary> made = nil;
    @autoreleasepool {
        MTLCompileOptions *options = [[MTLCompileOptions alloc] init];
        NSError *problem = nil;
        [options setLanguageVersion:MTLLanguageVersion3_0];
        [options setFastMathEnabled:NO];
        options_set_number(options, @selector(setMathMode:), "mathMode", MATH_MODE_SAFE);
        options_set_number(options, @selector(setMathFloatingPointFunctions:),
                           "mathFloatingPointFunctions", FUNCTIONS_PRECISE);
        made = [gpu_of(gpu) newLibraryWithSource:[NSString stringWithUTF8String:source]
                                         options:options
                                           error:&problem];
        [options release];
        if (made == nil) {
            error_set(error, problem, "the compiler gave no reason");
        }
    }
    return (void *)made;
}

/* With a reference, or nil where the library lacks the function. */
static MTLComputePipelineDescriptor *descriptor_create(void *library,
                                                       const metal_pipeline_request *request,
                                                       metal_error *error)
{
    NSString *name = [NSString stringWithUTF8String:request->entry];
    id<MTLFunction> function = [(id<MTLLibrary>)library newFunctionWithName:name];
    if (function == nil) {
        snprintf(error->message, sizeof error->message, "there is no kernel %.200s",
                 request->entry);
        return nil;
    }
    MTLComputePipelineDescriptor *made = [[MTLComputePipelineDescriptor alloc] init];
    [made setLabel:name];
    [made setComputeFunction:function];
    [made setMaxTotalThreadsPerThreadgroup:request->group_items];
    [made setThreadGroupSizeIsMultipleOfThreadExecutionWidth:request->full_subgroups];
    if (request->archive) {
        [made setBinaryArchives:[NSArray arrayWithObject:(id)request->archive]];
    }
    [function release];
    return made;
}

metal_pipeline *metal_shim_pipeline(metal_gpu *gpu, void *library,
                                    const metal_pipeline_request *request,
                                    metal_pipeline_facts *facts, metal_error *error)
{
    id<MTLComputePipelineState> made = nil;
    @autoreleasepool {
        NSError *problem = nil;
        MTLComputePipelineDescriptor *descriptor = descriptor_create(library, request, error);
        if (descriptor != nil) {
            const MTLPipelineOption options = request->only_archive
                                                  ? MTLPipelineOptionFailOnBinaryArchiveMiss
                                                  : MTLPipelineOptionNone;
            made = [gpu_of(gpu) newComputePipelineStateWithDescriptor:descriptor
                                                              options:options
                                                           reflection:NULL
                                                                error:&problem];
            if (made == nil) {
                error_set(error, problem, "the compiler gave no reason");
            } else {
                facts->max_group_items = [made maxTotalThreadsPerThreadgroup];
                facts->subgroup_width = [made threadExecutionWidth];
                facts->shared_bytes = [made staticThreadgroupMemoryLength];
            }
            [descriptor release];
        }
    }
    return (metal_pipeline *)made;
}

metal_archive *metal_shim_archive(metal_gpu *gpu, const char *path, metal_error *error)
{
    id<MTLBinaryArchive> made = nil;
    @autoreleasepool {
        NSError *problem = nil;
        MTLBinaryArchiveDescriptor *descriptor = [[MTLBinaryArchiveDescriptor alloc] init];
        if (path) {
            [descriptor setUrl:[NSURL fileURLWithPath:[NSString stringWithUTF8String:path]]];
        }
        made = [gpu_of(gpu) newBinaryArchiveWithDescriptor:descriptor error:&problem];
        [descriptor release];
        if (made == nil) {
            error_set(error, problem, "no archive was made");
        }
    }
    return (metal_archive *)made;
}

bool metal_shim_archive_add(metal_archive *archive, void *library,
                            const metal_pipeline_request *request, metal_error *error)
{
    bool added = false;
    @autoreleasepool {
        NSError *problem = nil;
        MTLComputePipelineDescriptor *descriptor = descriptor_create(library, request, error);
        if (descriptor != nil) {
            added = [(id<MTLBinaryArchive>)archive addComputePipelineFunctionsWithDescriptor:descriptor
                                                                                       error:&problem];
            if (!added) {
                error_set(error, problem, "the archive did not take the kernel");
            }
            [descriptor release];
        }
    }
    return added;
}

bool metal_shim_archive_save(metal_archive *archive, const char *path, metal_error *error)
{
    bool saved = false;
    @autoreleasepool {
        NSError *problem = nil;
        NSURL *url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]];
        saved = [(id<MTLBinaryArchive>)archive serializeToURL:url error:&problem];
        if (!saved) {
            error_set(error, problem, "the archive was not written");
        }
    }
    return saved;
}

void metal_shim_temporary_folder(char *path, size_t size)
{
    @autoreleasepool {
        NSString *folder = NSTemporaryDirectory();
        copy_text(path, size, folder);
        const size_t length = strlen(path);
        if (length > 0 && path[length - 1] != '/' && length + 1 < size) {
            path[length] = '/';
            path[length + 1] = '\0';
        }
    }
}

/* ---- Command buffers ---- */

metal_commands *metal_shim_commands(metal_stream *stream)
{
    id<MTLCommandBuffer> made = nil;
    @autoreleasepool {
        MTLCommandBufferDescriptor *descriptor = [[MTLCommandBufferDescriptor alloc] init];
        [descriptor setRetainedReferences:NO];
        [descriptor setErrorOptions:MTLCommandBufferErrorOptionNone];
        made = [[(id<MTLCommandQueue>)stream commandBufferWithDescriptor:descriptor] retain];
        [descriptor release];
    }
    return (metal_commands *)made;
}

void metal_shim_commands_wait_event(metal_commands *commands, metal_event *event, uint64_t value)
{
    @autoreleasepool {
        [commands_of(commands) encodeWaitForEvent:(id<MTLEvent>)event value:value];
    }
}

void metal_shim_commands_signal_event(metal_commands *commands, metal_event *event,
                                      uint64_t value)
{
    @autoreleasepool {
        [commands_of(commands) encodeSignalEvent:(id<MTLEvent>)event value:value];
    }
}

void metal_shim_commands_commit(metal_commands *commands)
{
    @autoreleasepool {
        [commands_of(commands) commit];
    }
}

void metal_shim_commands_finish(metal_commands *commands)
{
    @autoreleasepool {
        [commands_of(commands) waitUntilCompleted];
    }
}

metal_progress metal_shim_commands_progress(metal_commands *commands, double *end,
                                            metal_error *error)
{
    metal_progress progress = METAL_RUNNING;
    @autoreleasepool {
        const MTLCommandBufferStatus status = [commands_of(commands) status];
        if (status == MTLCommandBufferStatusCompleted) {
            progress = METAL_DONE;
            *end = [commands_of(commands) GPUEndTime];
        } else if (status == MTLCommandBufferStatusError) {
            progress = METAL_FAILED;
            error_set(error, [commands_of(commands) error], "the system gave no reason");
        }
    }
    return progress;
}

/* ---- Encoders. Calls for every command have no pool: they make no temporary objects. ---- */

metal_compute *metal_shim_compute(metal_commands *commands, metal_fence *fence)
{
    id<MTLComputeCommandEncoder> made = nil;
    @autoreleasepool {
        made = [[commands_of(commands)
            computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent] retain];
        if (fence) {
            [made waitForFence:fence_of(fence)];
        }
    }
    return (metal_compute *)made;
}

void metal_shim_compute_pipeline(metal_compute *compute, metal_pipeline *pipeline)
{
    [compute_of(compute) setComputePipelineState:(id<MTLComputePipelineState>)pipeline];
}

void metal_shim_compute_buffer(metal_compute *compute, metal_buffer *buffer, uint64_t offset,
                               uint32_t index)
{
    [compute_of(compute) setBuffer:(id<MTLBuffer>)buffer offset:offset atIndex:index];
}

void metal_shim_compute_offset(metal_compute *compute, uint64_t offset, uint32_t index)
{
    [compute_of(compute) setBufferOffset:offset atIndex:index];
}

void metal_shim_compute_bytes(metal_compute *compute, const void *bytes, uint32_t length,
                              uint32_t index)
{
    [compute_of(compute) setBytes:bytes length:length atIndex:index];
}

void metal_shim_compute_dispatch(metal_compute *compute, const uint32_t groups[3],
                                 const uint32_t items[3])
{
    [compute_of(compute) dispatchThreadgroups:MTLSizeMake(groups[0], groups[1], groups[2])
                        threadsPerThreadgroup:MTLSizeMake(items[0], items[1], items[2])];
}

void metal_shim_compute_dispatch_indirect(metal_compute *compute, metal_buffer *groups,
                                          uint64_t offset, const uint32_t items[3])
{
    [compute_of(compute)
        dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)groups
                          indirectBufferOffset:offset
                         threadsPerThreadgroup:MTLSizeMake(items[0], items[1], items[2])];
}

void metal_shim_compute_barrier(metal_compute *compute)
{
    [compute_of(compute) memoryBarrierWithScope:MTLBarrierScopeBuffers];
}

void metal_shim_compute_end(metal_compute *compute, metal_fence *fence)
{
    @autoreleasepool {
        [compute_of(compute) updateFence:fence_of(fence)];
        [compute_of(compute) endEncoding];
        [compute_of(compute) release];
    }
}

metal_blit *metal_shim_blit(metal_commands *commands, metal_fence *fence)
{
    id<MTLBlitCommandEncoder> made = nil;
    @autoreleasepool {
        made = [[commands_of(commands) blitCommandEncoder] retain];
        if (fence) {
            [made waitForFence:fence_of(fence)];
        }
    }
    return (metal_blit *)made;
}

void metal_shim_blit_copy(metal_blit *blit, metal_buffer *from, uint64_t from_offset,
                          metal_buffer *to, uint64_t to_offset, uint64_t bytes)
{
    [blit_of(blit) copyFromBuffer:(id<MTLBuffer>)from
                     sourceOffset:from_offset
                         toBuffer:(id<MTLBuffer>)to
                destinationOffset:to_offset
                             size:bytes];
}

void metal_shim_blit_fill(metal_blit *blit, metal_buffer *buffer, uint64_t offset, uint64_t bytes,
                          uint8_t value)
{
    [blit_of(blit) fillBuffer:(id<MTLBuffer>)buffer
                        range:NSMakeRange(offset, bytes)
                        value:value];
}

void metal_shim_blit_end(metal_blit *blit, metal_fence *fence)
{
    @autoreleasepool {
        [blit_of(blit) updateFence:fence_of(fence)];
        [blit_of(blit) endEncoding];
        [blit_of(blit) release];
    }
}

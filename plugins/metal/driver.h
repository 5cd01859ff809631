/* What the plugin calls of Metal, in C: the interface of driver.m, the only file in Objective-C. An
 * object is a pointer that the caller owns one reference of, to be released by metal_shim_release;
 * the getters and encoders do not change ownership. */
#ifndef PLUGINS_METAL_DRIVER_H
#define PLUGINS_METAL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct metal_gpu metal_gpu;           /* id<MTLDevice> */
typedef struct metal_buffer metal_buffer;     /* id<MTLBuffer> */
typedef struct metal_stream metal_stream;     /* id<MTLCommandQueue> */
typedef struct metal_event metal_event;       /* id<MTLSharedEvent> */
typedef struct metal_fence metal_fence;       /* id<MTLFence> */
typedef struct metal_pipeline metal_pipeline; /* id<MTLComputePipelineState> */
typedef struct metal_archive metal_archive;   /* id<MTLBinaryArchive> */
typedef struct metal_commands metal_commands; /* id<MTLCommandBuffer> */
typedef struct metal_compute metal_compute;   /* id<MTLComputeCommandEncoder> */
typedef struct metal_blit metal_blit;         /* id<MTLBlitCommandEncoder> */

/* An NSError, or the reason of a null object. */
typedef struct metal_error {
    long code;
    char message[2048];
} metal_error;

typedef struct metal_facts {
    char name[128];
    char architecture[48]; /* "" where the system does not name it */
    char system[96];       /* version of the operating system */
    uint64_t registry_id;
    uint64_t working_set; /* recommendedMaxWorkingSetSize, bytes */
    uint64_t max_buffer;  /* bytes */
    uint64_t max_threads[3];
    uint64_t shared_bytes; /* of a threadgroup */
    uint32_t apple_family; /* 6 to 9; 0: not by Apple, or older */
    bool mac2, low_power, unified;
} metal_facts;

/* Retains and releases. Null is allowed. */
void metal_shim_retain(void *object);
void metal_shim_release(void *object);

/* Up to `capacity` devices. Returns their number. */
uint32_t metal_shim_devices(metal_gpu **gpus, uint32_t capacity);
void metal_shim_describe(metal_gpu *gpu, metal_facts *facts);
/* Bytes that the process has allocated on the device. */
uint64_t metal_shim_allocated(metal_gpu *gpu);

/* Untracked buffers; null where there is no memory. `host` is null for private memory. */
metal_buffer *metal_shim_buffer(metal_gpu *gpu, uint64_t bytes, bool is_private, void **host);
/* A buffer of whole pages of the host, which are not copied; null where Metal refuses them. */
metal_buffer *metal_shim_buffer_of_host(metal_gpu *gpu, void *pages, uint64_t bytes);
/* The length of a buffer of others. */
uint64_t metal_shim_buffer_length(metal_buffer *buffer);

metal_stream *metal_shim_stream(metal_gpu *gpu, uint32_t commands_in_flight);
metal_fence *metal_shim_fence(metal_gpu *gpu);
metal_event *metal_shim_event(metal_gpu *gpu);
uint64_t metal_shim_event_value(metal_event *event);
void metal_shim_event_set(metal_event *event, uint64_t value);
/* False after `milliseconds` without the value. */
bool metal_shim_event_wait(metal_event *event, uint64_t value, uint64_t milliseconds);

/* Kernels. The archive may be null; without `only_archive` what it lacks is compiled. */
typedef struct metal_pipeline_request {
    const char *source, *entry;
    uint64_t group_items;
    bool full_subgroups; /* the group is a multiple of the execution width */
    metal_archive *archive;
    bool only_archive;
} metal_pipeline_request;

typedef struct metal_pipeline_facts {
    uint64_t max_group_items, subgroup_width, shared_bytes;
} metal_pipeline_facts;

/* The compiled text, to be released by metal_shim_release; null with `error`. */
void *metal_shim_library(metal_gpu *gpu, const char *source, metal_error *error);
metal_pipeline *metal_shim_pipeline(metal_gpu *gpu, void *library,
                                    const metal_pipeline_request *request,
                                    metal_pipeline_facts *facts, metal_error *error);

/* Opens the archive in the file, or an empty one where `path` is null. Null with `error`. */
metal_archive *metal_shim_archive(metal_gpu *gpu, const char *path, metal_error *error);
bool metal_shim_archive_add(metal_archive *archive, void *library,
                            const metal_pipeline_request *request, metal_error *error);
bool metal_shim_archive_save(metal_archive *archive, const char *path, metal_error *error);
/* The folder for temporary files, with a slash at its end. */
void metal_shim_temporary_folder(char *path, size_t size);

/* Command buffers with unretained references; null where there is no memory. */
metal_commands *metal_shim_commands(metal_stream *stream);
void metal_shim_commands_wait_event(metal_commands *commands, metal_event *event, uint64_t value);
void metal_shim_commands_signal_event(metal_commands *commands, metal_event *event, uint64_t value);
void metal_shim_commands_commit(metal_commands *commands);
/* Blocks until the commands have ended, whatever their result. */
void metal_shim_commands_finish(metal_commands *commands);

typedef enum metal_progress { METAL_RUNNING = 0, METAL_DONE = 1, METAL_FAILED = 2 } metal_progress;
/* The state of committed commands. METAL_DONE sets the device's time at their end, in seconds;
 * METAL_FAILED the error. */
metal_progress metal_shim_commands_progress(metal_commands *commands, double *end,
                                            metal_error *error);

/* Encoders. They wait for `fence` first where it is not null. */
metal_compute *metal_shim_compute(metal_commands *commands, metal_fence *fence);
void metal_shim_compute_pipeline(metal_compute *compute, metal_pipeline *pipeline);
void metal_shim_compute_buffer(metal_compute *compute, metal_buffer *buffer, uint64_t offset,
                               uint32_t index);
void metal_shim_compute_offset(metal_compute *compute, uint64_t offset, uint32_t index);
void metal_shim_compute_bytes(metal_compute *compute, const void *bytes, uint32_t length,
                              uint32_t index);
void metal_shim_compute_dispatch(metal_compute *compute, const uint32_t groups[3],
                                 const uint32_t items[3]);
/* The groups are three words of a buffer, read when the dispatch begins. */
void metal_shim_compute_dispatch_indirect(metal_compute *compute, metal_buffer *groups,
                                          uint64_t offset, const uint32_t items[3]);
/* Later dispatches see what earlier ones wrote to buffers. */
void metal_shim_compute_barrier(metal_compute *compute);
/* Updates the fence, ends the encoder and releases it. */
void metal_shim_compute_end(metal_compute *compute, metal_fence *fence);

metal_blit *metal_shim_blit(metal_commands *commands, metal_fence *fence);
void metal_shim_blit_copy(metal_blit *blit, metal_buffer *from, uint64_t from_offset,
                          metal_buffer *to, uint64_t to_offset, uint64_t bytes);
void metal_shim_blit_fill(metal_blit *blit, metal_buffer *buffer, uint64_t offset, uint64_t bytes,
                          uint8_t value);
void metal_shim_blit_end(metal_blit *blit, metal_fence *fence);

#endif

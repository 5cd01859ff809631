/* The CUDA driver without hal, for raw_cuda.c, raw_transfer.c and peer_cublas.c: the library,
 * loaded at run time, and the primary context of hal's device. The types repeat the driver's
 * documented interface, so that the build needs no toolkit. */
#ifndef BENCH_PEERS_RAW_CUDA_CALLS_H
#define BENCH_PEERS_RAW_CUDA_CALLS_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cuda_calls {
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int bytes, int device);
    int (*device_uuid)(uint8_t uuid[16], int device);
    int (*primary_retain)(void **context, int device);
    int (*primary_release)(int device);
    int (*context_set)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                  void *stream, void **arguments, void **extra);
    int (*allocate)(uint64_t *memory, size_t bytes);
    int (*release)(uint64_t memory);
    int (*allocate_ordered)(uint64_t *memory, size_t bytes, void *stream);
    int (*release_ordered)(uint64_t memory, void *stream);
    int (*copy)(uint64_t target, uint64_t source, size_t bytes, void *stream);
    int (*copy_peer)(uint64_t target, void *target_context, uint64_t source, void *source_context,
                     size_t bytes, void *stream);
    int (*peer_enable)(void *context, unsigned flags);
    int (*to_device)(uint64_t target, const void *source, size_t bytes);
    int (*to_device_ordered)(uint64_t target, const void *source, size_t bytes, void *stream);
    int (*to_host)(void *target, uint64_t source, size_t bytes);
    int (*to_host_ordered)(void *target, uint64_t source, size_t bytes, void *stream);
    int (*host_allocate)(void **memory, size_t bytes); /* page-locked */
    int (*host_release)(void *memory);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **executable, void *graph, uint64_t flags);
    int (*graph_launch)(void *executable, void *stream);
    int (*graph_destroy)(void *graph);
    int (*executable_destroy)(void *executable);
    int device;
    void *context, *stream;
} cuda_calls;

/* Loads the driver and opens the device that `info` describes; its context becomes current. False
 * with a message. */
bool cuda_open(cuda_calls *cuda, const hal_device_info *info, char *message, size_t bytes);
void cuda_close(cuda_calls *cuda);

#endif

/* Small pieces of pinned host memory. Pinning takes the driver milliseconds however little it is,
 * so pieces come out of one slab for each device, which stays with the process like the device's
 * context. Called by memory.c and point.c. */
#ifndef HALYARD_CUDA_PINNED_H
#define HALYARD_CUDA_PINNED_H

#include "cuda_plugin.h"

/* Up to so many bytes a piece may come out of the slab. */
#define CUDA_PINNED_MOST (64u * 1024u)

/* Pinned memory that kernels can reach, aligned to 4,096 bytes; from the slab where it has room.
 * The device's context is current. Threads: any. Errors: the driver's results. */
cuda_result cuda_pin(const hal_plugin_device *device, uint64_t bytes, void **pointer,
                     cuda_address *address);
void cuda_unpin(const hal_plugin_device *device, void *pointer);

/* Gives the slab up, before the device's context goes. */
void cuda_forget_pinned(const hal_plugin_device *device);

#endif

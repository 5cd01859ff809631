/* Small pieces of pinned host memory. The driver takes milliseconds to pin even a page, so pieces
 * are cut from one slab per device, which stays with the process like the device's context. */
#ifndef PLUGINS_CUDA_PINNED_H
#define PLUGINS_CUDA_PINNED_H

#include "device.h"

/* The largest piece that is cut from the slab, in bytes. */
#define CUDA_PINNED_MAX_PIECE (64u * 1024u)

/* Pinned memory that kernels can access, aligned to 4,096 bytes; from the slab where it has room.
 * The device's context is current. Threads: any. Errors: the driver's results. */
cuda_result cuda_pinned_allocate(const hal_plugin_device *device, uint64_t bytes, void **pointer,
                                 cuda_address *address);
void cuda_pinned_free(const hal_plugin_device *device, void *pointer);

/* Frees the slab, before the device's context is given up. */
void cuda_pinned_forget(const hal_plugin_device *device);

#endif

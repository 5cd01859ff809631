/* The driver's own objects of devices, queues and kernels, for profilers and for libraries that use
 * the same driver. Handles of memory are those of hal/external.h. */
#ifndef HAL_NATIVE_H
#define HAL_NATIVE_H

#include <hal/kernel.h>
#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Write a handle of the object to `handle`, a pointer or a number.
 *   type  name of the handle's type in the driver's headers: "cl_context", "CUstream",
 *         "VkPipeline"; each plugin's README lists those that it has
 * What the program does with a queue's handle comes after the batches that were flushed before, and
 * hal orders nothing after it: the program waits for its own work. An object that the driver does
 * not let several threads use belongs to hal while hal's calls on it run.
 * Ownership: the handle remains hal's and is valid as long as the object. Threads: any.
 * Errors: INVALID_ARGUMENT for null, UNSUPPORTED for a type that the plugin does not have, with
 * the names of the others, DEVICE_LOST. */
HAL_API hal_status hal_device_get_native(hal_device *device, const char *type,
                                         HAL_OUT uint64_t *handle);
HAL_API hal_status hal_queue_get_native(hal_queue *queue, const char *type,
                                        HAL_OUT uint64_t *handle);
HAL_API hal_status hal_kernel_get_native(hal_kernel *kernel, const char *type,
                                         HAL_OUT uint64_t *handle);

#ifdef __cplusplus
}
#endif
#endif

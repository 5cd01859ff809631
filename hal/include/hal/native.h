/* The driver's own objects of devices, queues and kernels, for profilers and for libraries that use
 * the same driver, and queues of the driver that others own. Handles of memory are those of
 * hal/external.h. */
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
 * hal orders nothing after it but by hal_queue_wait_native. An object that the driver does not let
 * several threads use belongs to hal while hal's calls on it run.
 * Ownership: the handle remains hal's and is valid as long as the object. Threads: any.
 * Errors: INVALID_ARGUMENT for null, UNSUPPORTED for a type that the plugin does not have, with
 * the names of the others, DEVICE_LOST. */
HAL_API hal_status hal_device_get_native(hal_device *device, const char *type,
                                         HAL_OUT uint64_t *handle);
HAL_API hal_status hal_queue_get_native(hal_queue *queue, const char *type,
                                        HAL_OUT uint64_t *handle);
HAL_API hal_status hal_kernel_get_native(hal_kernel *kernel, const char *type,
                                         HAL_OUT uint64_t *handle);

/* Creates a queue whose batches run on a queue of the driver that the caller owns: after the work
 * that this had before the flush, and before the work that it gets afterwards. "CUstream" (0, 1 and
 * 2 are the driver's own streams), or "cl_command_queue" in order and of the device's "cl_context".
 * Ownership: the handle stays the caller's and is valid until hal_queue_destroy, which waits for
 * hal's batches. Threads: any.
 * Errors: INVALID_ARGUMENT for null; UNSUPPORTED for other types and queues, and on plugins without
 * "hal.native_queues"; OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_queue_import_native(hal_device *device, const char *type, uint64_t handle,
                                           HAL_OUT hal_queue **queue);

/* Order between a queue and one of the driver, without a wait of the host. Both flush the batch in
 * recording.
 *   wait   batches of later flushes begin after the work that the driver's queue has now; so do
 *          reads and waits of the host
 *   block  work that the driver's queue gets later begins after all batches of the queue. The host
 *          waits only for batches whose submission is deferred, as after a host call.
 * Accesses of the host to mapped memory are not ordered. Ownership: the handle is used during the
 * call only. Threads: the queue's. Errors: as hal_queue_flush and hal_queue_import_native. */
HAL_API hal_status hal_queue_wait_native(hal_queue *queue, const char *type, uint64_t handle);
HAL_API hal_status hal_queue_block_native(hal_queue *queue, const char *type, uint64_t handle);

#ifdef __cplusplus
}
#endif
#endif

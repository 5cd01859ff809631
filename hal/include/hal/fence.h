/* Fences: timelines outside of hal's queues, for order with other libraries, other backends and
 * other processes. A fence has a 64-bit value that only rises. Batches of hal wait until it has at
 * least a value, or raise it. */
#ifndef HAL_FENCE_H
#define HAL_FENCE_H

#include <hal/external.h>
#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_fence hal_fence;

/* Makes a fence of one that others own.
 *   kind    HAL_HANDLE_HOST, on every device: the address of a uint64_t, aligned to 8 bytes, that
 *           all sides read and write by atomic operations; it may be in memory that processes
 *           share. hal reads it in flushes and waits of any queue, and raises it there.
 *           HAL_HANDLE_NATIVE: a VkSemaphore of type timeline, a CUexternalSemaphore of one, a
 *           cl_event (only to wait for, and only for the value 1) or an id<MTLSharedEvent>.
 *           HAL_HANDLE_OPAQUE_FD: a descriptor of a VkSemaphore of type timeline
 *   handle  address, native handle or descriptor
 * Ownership: the fence is the caller's, until hal_fence_destroy. A descriptor belongs to hal once
 * the call has succeeded; what other handles name stays valid until the fence was destroyed and the
 * last batch that names it has ended. Threads: any.
 * Errors: INVALID_ARGUMENT for null, another kind, or a misaligned address; UNSUPPORTED with the
 * reason where the device does not import the kind (hal_external_info.fence_imports) or the
 * handle; OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_fence_import(hal_device *device, hal_handle_kind kind, uint64_t handle,
                                    HAL_OUT hal_fence **fence);

/* Makes a fence of the value 0 for others to import.
 *   kind  one of hal_external_info.fence_exports
 * Ownership: the caller's, until hal_fence_destroy. Threads: any. Errors: as hal_fence_import. */
HAL_API hal_status hal_fence_create(hal_device *device, hal_handle_kind kind,
                                    HAL_OUT hal_fence **fence);

/* Writes a handle of a fence to `handle`.
 *   kind  HAL_HANDLE_OPAQUE_FD of a fence that was created with it, else that of the fence
 * Ownership: a native handle or address is valid while the fence is; a descriptor is the caller's.
 * Threads: any. Errors: INVALID_ARGUMENT for null; UNSUPPORTED for another kind; DEVICE_LOST. */
HAL_API hal_status hal_fence_export(hal_fence *fence, hal_handle_kind kind,
                                    HAL_OUT uint64_t *handle);

/* Destroys a fence; batches that name it use it until they have ended. Null is allowed.
 * Threads: any, after other calls with the fence. Errors: none. */
HAL_API void hal_fence_destroy(hal_fence *fence);

/* Makes later commands wait until a fence of the queue's device has at least `value`, without a
 * wait of the host. Flushes earlier commands. Reads and waits of the host come after it as well.
 * Queues of hal may share a queue of the driver: where a batch of this device raises the fence, it
 * is flushed before, and work of others does not depend on later batches of the device.
 * Destroying the queue waits for the fence.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for null or a fence of another device; those of
 * a flush. */
HAL_API hal_status hal_queue_wait_fence(hal_queue *queue, hal_fence *fence, uint64_t value);

/* Raises a fence to `value`, above all that it had, when all commands recorded before on the queue
 * have ended. Flushes. A batch that is dropped after an error raises it as well, since its point is
 * reached.
 * Threads: the queue's. Errors: as hal_queue_wait_fence; UNSUPPORTED for a cl_event of others. */
HAL_API hal_status hal_queue_signal_fence(hal_queue *queue, hal_fence *fence, uint64_t value);

#ifdef __cplusplus
}
#endif
#endif

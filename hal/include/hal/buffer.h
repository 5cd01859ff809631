/* Buffers: device memory.
 *
 * Memory comes from the device's pool and returns to it when the last reference is released.
 * Recorded work keeps the memory alive until it has run, so a buffer may be released as soon as the
 * last command that uses it is recorded. The contents of a new buffer are undefined.
 * hal_queue_write and hal_queue_read access buffers of any kind. */
#ifndef HAL_BUFFER_H
#define HAL_BUFFER_H

#include <hal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_buffer hal_buffer;

/* Allocates `bytes` bytes, aligned to 256; 0 bytes give an empty buffer, whose only range is empty.
 * Without free memory the pool is trimmed, after a wait for its work, and the allocation repeated.
 * Ownership: the caller's reference. Threads: any.
 * Errors: INVALID_ARGUMENT for an unknown kind, UNSUPPORTED above the device's largest
 * allocation, OUT_OF_MEMORY with the bytes requested and free, DEVICE_LOST. */
HAL_API hal_status hal_buffer_create(hal_device *device, hal_memory_kind kind, uint64_t bytes,
                                     HAL_OUT hal_buffer **buffer);

/* Adds a reference. Returns `buffer`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null returns null. */
HAL_API hal_buffer *hal_buffer_retain(hal_buffer *buffer);

/* Releases a reference. Null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_buffer_release(hal_buffer *buffer);

/* Whether there are other references than the caller's: 0 says that nobody else can read or write
 * the buffer, except work that is recorded already. Buffers of hal_buffer_import and
 * hal_buffer_export are always shared.
 * Threads: any; another holder may add or release a reference meanwhile. Errors: none; null gives
 * 0. */
HAL_API int hal_buffer_is_shared(const hal_buffer *buffer);

/* Return the requested size in bytes, the kind and the device of a buffer.
 * Ownership: the device is not retained for the caller. Threads: any. Errors: none; a null buffer
 * returns 0 and null. */
HAL_API uint64_t hal_buffer_get_bytes(const hal_buffer *buffer);
HAL_API hal_memory_kind hal_buffer_get_kind(const hal_buffer *buffer);
HAL_API hal_device *hal_buffer_get_device(const hal_buffer *buffer);

/* Sets the name of the buffer in messages and traces; copied, at most 47 characters.
 * Threads: any, when no other thread uses the buffer's label. Errors: none. */
HAL_API void hal_buffer_set_label(hal_buffer *buffer, const char *label);

/* Maps the whole buffer for the host: every kind but HAL_MEMORY_DEVICE, and that kind too on a
 * device with HAL_FEATURE_MAP_DEVICE. No work that uses the buffer may be in flight between begin
 * and end: call hal_queue_wait before begin, and flush no such work before end.
 * Ownership: the pointer is valid until hal_buffer_map_end; on a device of kind HAL_DEVICE_CPU, as
 * long as the buffer. Threads: any, one mapping at a time.
 * Errors: INVALID_ARGUMENT for null, UNSUPPORTED for a kind that cannot be mapped, INVALID_STATE if
 * it is already mapped at begin or not mapped at end; OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_buffer_map_begin(hal_buffer *buffer, HAL_OUT void **pointer);
HAL_API hal_status hal_buffer_map_end(hal_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif

/* Buffers: memory of a device.
 *
 * A buffer's memory comes from the device's pool and goes back there when the last reference is
 * released. Work that was recorded on a queue keeps the memory alive until it has run, so a buffer
 * may be released as soon as the last command that names it is recorded. What a new buffer holds
 * is not defined. To read and write buffers of any kind see hal_queue_write and hal_queue_read. */
#ifndef HAL_BUFFER_H
#define HAL_BUFFER_H

#include <hal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_buffer hal_buffer;

/* Allocates `bytes` bytes, aligned to 256; 0 bytes give an empty buffer, whose only range is empty.
 * When the device is out of memory the pool is trimmed and it is asked once more.
 * Ownership: the caller's reference. Threads: any.
 * Errors: INVALID_ARGUMENT for an unknown kind, UNSUPPORTED above the device's largest
 * allocation, OUT_OF_MEMORY with the bytes asked for and free, DEVICE_LOST. */
HAL_API hal_status hal_buffer_create(hal_device *device, hal_memory_kind kind, uint64_t bytes,
                                     HAL_OUT hal_buffer **buffer);

/* One more reference. Returns `buffer`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null gives null. */
HAL_API hal_buffer *hal_buffer_retain(hal_buffer *buffer);

/* Gives a reference back. Null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_buffer_release(hal_buffer *buffer);

/* Size in bytes as asked for, kind, and device of a buffer.
 * Ownership: the device is not retained for the caller. Threads: any. Errors: none; a null buffer
 * gives 0 and null. */
HAL_API uint64_t hal_buffer_get_bytes(const hal_buffer *buffer);
HAL_API hal_memory_kind hal_buffer_get_kind(const hal_buffer *buffer);
HAL_API hal_device *hal_buffer_get_device(const hal_buffer *buffer);

/* A name that messages and traces show for the buffer; copied, cut at 47 characters.
 * Threads: any, when no other thread uses the buffer's label. Errors: none. */
HAL_API void hal_buffer_set_label(hal_buffer *buffer, const char *label);

/* The host's view of the whole buffer, of a mapped kind or of any kind on a device with
 * HAL_ABILITY_MAP_DEVICE. Between begin and end the caller sees to it that no work that uses the
 * buffer is under way: hal_queue_wait before begin; nothing that uses it is flushed before end.
 * Ownership: the pointer is valid until hal_buffer_map_end. Threads: any, one mapping at a time.
 * Errors: INVALID_ARGUMENT for null, UNSUPPORTED for a kind that is not mapped, INVALID_STATE when
 * it is mapped already, or not mapped at the end; OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_buffer_map_begin(hal_buffer *buffer, HAL_OUT void **pointer);
HAL_API hal_status hal_buffer_map_end(hal_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif

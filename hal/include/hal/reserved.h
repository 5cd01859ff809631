/* Reserved buffers: ranges of addresses whose parts get memory and lose it, so that an array grows
 * in place. Devices with HAL_FEATURE_VIRTUAL_MEMORY have them. A reserved buffer is used as any
 * other of the kind HAL_MEMORY_DEVICE, cannot be mapped, and does not come from the pool. */
#ifndef HAL_RESERVED_H
#define HAL_RESERVED_H

#include <hal/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the size of a part of reserved buffers in bytes, a power of two.
 * Threads: any. Errors: INVALID_ARGUMENT for null, UNSUPPORTED without HAL_FEATURE_VIRTUAL_MEMORY;
 * DEVICE_LOST. */
HAL_API hal_status hal_device_get_part_bytes(hal_device *device, HAL_OUT uint64_t *bytes);

/* Reserves a range of addresses; none of it has memory.
 *   bytes  a multiple of a part, at least one; may exceed the memory of the device, not its
 *          max_binding where kernels use all of it
 * Ownership: the caller's reference; the memory that it has goes with the buffer. Threads: any.
 * Errors: INVALID_ARGUMENT for other sizes, UNSUPPORTED without HAL_FEATURE_VIRTUAL_MEMORY,
 * OUT_OF_MEMORY without addresses, DEVICE_LOST. */
HAL_API hal_status hal_buffer_reserve(hal_device *device, uint64_t bytes,
                                      HAL_OUT hal_buffer **buffer);

/* Gives memory of undefined content to a range of a reserved buffer that has none, or returns it to
 * the device. Commands on bytes without memory are INVALID_ARGUMENT when they are recorded; graphs
 * are checked when they are recorded, too.
 *   offset, bytes  multiples of a part, within the buffer
 * Before hal_buffer_decommit all work that uses the buffer is waited for.
 * Threads: any, but no other call with the buffer at the same time. Errors: INVALID_ARGUMENT for
 * another buffer or range; INVALID_STATE where a part has memory already, or has none, or work that
 * uses the buffer is in flight; OUT_OF_MEMORY, after which nothing has changed; DEVICE_LOST. */
HAL_API hal_status hal_buffer_commit(hal_buffer *buffer, uint64_t offset, uint64_t bytes);
HAL_API hal_status hal_buffer_decommit(hal_buffer *buffer, uint64_t offset, uint64_t bytes);

/* Sets the accesses to a range with memory: with HAL_ACCESS_READ commands that would write there
 * are INVALID_ARGUMENT, and the driver refuses them as well where it can.
 *   access  HAL_ACCESS_READ or HAL_ACCESS_READ_WRITE
 * Threads: as for hal_buffer_decommit. Errors: the same. */
HAL_API hal_status hal_buffer_protect(hal_buffer *buffer, uint64_t offset, uint64_t bytes,
                                      uint32_t access);

#ifdef __cplusplus
}
#endif
#endif

/* Memory that hal shares with its owner or with other users, without copies: import and export.
 *
 * An imported buffer is used as any other. hal orders its own work on it as usual; work of others
 * is ordered by the program: what the owner writes before a batch is submitted is seen by the
 * batch, and the owner may read what a batch wrote, or write what it read, after a wait for it. Two
 * buffers of overlapping memory are two buffers for hal, which does not order work between them. */
#ifndef HAL_EXTERNAL_H
#define HAL_EXTERNAL_H

#include <hal/buffer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that hal does not use imported memory any more. It may release buffers, and makes no other
 * call of hal or ops. */
typedef void (*hal_release_callback)(void *user);

/* Writes what a device imports and exports to `info`: no kinds where its plugin has none.
 * Threads: any. Errors: INVALID_ARGUMENT for null, DEVICE_LOST; those of the plugin. */
HAL_API hal_status hal_device_get_external(hal_device *device, HAL_OUT hal_external_info *info);

/* Makes a buffer of a range of memory that others own, without a copy.
 *   handle   kind, handle and range; `bytes` at least 1. HOST: memory of the process, whose address
 *            plus offset and whose size are multiples of host_alignment and host_granularity, and
 *            of the elements that kernels access; pages that may be read, and with
 *            HAL_ACCESS_READ_WRITE written. With HAL_ACCESS_READ hal never writes: commands that
 *            would are INVALID_ARGUMENT when they are recorded
 *   release  called once with `user` when the buffer was released and the last batch that names
 *            it has ended, on the thread of the release or of a later flush, wait or destruction
 *            of a queue, without a lock of hal; may be null
 * The kind of the buffer is HAL_MEMORY_SHARED for HOST, and HAL_MEMORY_DEVICE for other handles,
 * whose buffers cannot be mapped.
 * Ownership: the caller's reference. The memory, and what the handle names, stay valid until
 * `release`; a descriptor belongs to hal once the call has succeeded. After an error nothing has
 * changed and `release` is not called. In a forked child it never is.
 * Threads: any.
 * Errors: INVALID_ARGUMENT for null, an unknown kind or access, an empty or misaligned range;
 * UNSUPPORTED with the reason where the device does not import this kind or this range;
 * OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_buffer_import(hal_device *device, const hal_memory_handle *handle,
                                     hal_release_callback release, void *user,
                                     HAL_OUT hal_buffer **buffer);

/* Allocates a buffer of kind HAL_MEMORY_DEVICE whose memory can leave the process or the backend as
 * a descriptor; it does not come from the pool.
 *   kind   HAL_HANDLE_OPAQUE_FD or HAL_HANDLE_DMA_BUF
 *   bytes  at least 1
 * Ownership: the caller's reference. Threads: any.
 * Errors: INVALID_ARGUMENT for another kind or 0 bytes; UNSUPPORTED where the device does not
 * export the kind, and above its largest allocation; OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_buffer_create_shareable(hal_device *device, hal_handle_kind kind,
                                               uint64_t bytes, HAL_OUT hal_buffer **buffer);

/* Writes a handle of a buffer's memory to `handle`: its range is the buffer.
 *   kind  one of hal_external_info.export_kinds; a descriptor is of the kind with which
 *         hal_buffer_create_shareable made the buffer
 * While others use it, the program holds a reference to the buffer.
 * Ownership: a native handle or address remains hal's and is valid while the buffer is; a
 * descriptor is the caller's, who closes it or passes it on. Threads: any.
 * Errors: INVALID_ARGUMENT for null or an unknown kind; UNSUPPORTED with the reason where the
 * device does not export this kind; DEVICE_LOST. */
HAL_API hal_status hal_buffer_export(hal_buffer *buffer, hal_handle_kind kind,
                                     HAL_OUT hal_memory_handle *handle);

#ifdef __cplusplus
}
#endif
#endif

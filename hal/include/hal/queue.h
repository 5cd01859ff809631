/* Queues: in-order timelines of a device.
 *
 * Commands are recorded and take effect as if each ran after the one before it; hal finds out from
 * the ranges of memory that they touch which of them may overlap. Recording does not wait. A flush
 * hands what was recorded to the device and gives a point; hal flushes by itself when a batch has
 * grown to its limit or uses an eighth of the device's memory, and before it waits. The first limit
 * after a wait is small, so that an idle device begins early; each further one is twice the last
 * (hal_queue_set_batch; docs/batching.md has the figures).
 *
 * A queue belongs to one thread at a time; different queues may be used by different threads at
 * once. Points may be used by any thread. */
#ifndef HAL_QUEUE_H
#define HAL_QUEUE_H

#include <hal/buffer.h>
#include <hal/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_QUEUE_BATCH_FIRST 32u
#define HAL_QUEUE_BATCH_COMMANDS 1024u
#define HAL_WAIT_FOREVER UINT64_MAX

typedef struct hal_queue hal_queue;

/* A place on a queue's timeline: reached when all that was flushed up to there has run. Valid as
 * long as the queue. The zero point {NULL, 0} counts as reached. */
typedef struct hal_point {
    hal_queue *queue;
    uint64_t value;
} hal_point;

/* A range of a buffer in bytes; length HAL_WHOLE: to the buffer's end. A null buffer stands for a
 * binding that the kernel does not touch. */
#define HAL_WHOLE UINT64_MAX
typedef struct hal_range {
    hal_buffer *buffer;
    uint64_t offset;
    uint64_t length;
} hal_range;

/* Makes a queue on a device.
 * Ownership: the caller's, until hal_queue_destroy. Threads: any.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_queue_create(hal_device *device, HAL_OUT hal_queue **queue);

/* Flushes, waits for all work and ends the queue; its points become invalid. Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_queue_destroy(hal_queue *queue);

/* The queue's device.
 * Ownership: not retained for the caller. Threads: any. Errors: none; null gives null. */
HAL_API hal_device *hal_queue_get_device(const hal_queue *queue);

/* Records a kernel over grid[0] x grid[1] x grid[2] groups (a zero: nothing is recorded).
 * `bindings` are in the order of the kernel's declarations, offsets multiples of the device's
 * binding_alignment; `scalars` is the block as the kernel lays it out, copied.
 * Ownership: kernel and buffers are kept alive until the command has run. Threads: the queue's.
 * Errors: INVALID_ARGUMENT, naming the argument, for counts, ranges, alignment, a grid beyond the
 * device's, objects of another device, or overlapping ranges of which one is written;
 * OUT_OF_MEMORY; what an automatic flush meets. Nothing is recorded then. */
HAL_API hal_status hal_queue_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                      const hal_range *bindings, uint32_t binding_count,
                                      const void *scalars, uint32_t scalar_bytes);

/* Records a copy between buffers of the queue's device; the ranges have equal length and do not
 * overlap. Units: bytes; offsets are multiples of 4, and so is the length unless both ranges reach
 * to the ends of their buffers.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_copy(hal_queue *queue, hal_range source, hal_range target);

/* Records a fill of a range with 4 bytes repeated. Offset and length are multiples of 4 bytes.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_fill(hal_queue *queue, hal_range target, uint32_t pattern);

/* Writes `bytes` bytes from the host into a buffer of any kind, in the queue's order. `data` is
 * copied and may be changed after the call. Waits only where the device lags far behind what was
 * written, or has no memory left for the copy.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_write(hal_queue *queue, hal_buffer *buffer, uint64_t offset,
                                   const void *data, uint64_t bytes);

/* Flushes, waits, and reads `bytes` bytes of a buffer of any kind into `data`.
 * Threads: the queue's. Errors: as hal_queue_dispatch, and DEVICE_LOST. */
HAL_API hal_status hal_queue_read(hal_queue *queue, hal_buffer *buffer, uint64_t offset,
                                  uint64_t bytes, HAL_OUT void *data);

/* Copies between buffers of one device or of two, of the same or of different plugins, after all
 * work of both queues so far and before all that comes later on either. Where the source's device
 * reaches the other by itself, two queues are flushed, nothing is waited for, and the last points
 * of both come after the copy; on one queue it is recorded as a copy. Elsewhere the data goes
 * through the host, read on `source_queue` and written on `target_queue`.
 * Ownership: the buffers are kept alive. Threads: both queues'. Units: bytes, any number of them.
 * Errors: as hal_queue_read and hal_queue_write. */
HAL_API hal_status hal_queue_transfer(hal_queue *source_queue, hal_buffer *source,
                                      uint64_t source_offset, hal_queue *target_queue,
                                      hal_buffer *target, uint64_t target_offset,
                                      uint64_t bytes);

/* Hands what was recorded to the device. *point (may be null) is the point of all work so far; it
 * is the last one again when nothing was recorded.
 * Threads: the queue's.
 * Errors: what the plugin answers; the batch is then dropped and the queue can be used on, unless
 * the device is lost. A batch that was held for another device's point and could not be handed
 * over later is reported once by the next flush or wait of its queue. */
HAL_API hal_status hal_queue_flush(hal_queue *queue, HAL_OUT hal_point *point);

/* Sets how many commands hal takes before it flushes by itself: `first` in the first batch after a
 * wait, then twice as many each time, up to `most`. A new queue has HAL_QUEUE_BATCH_FIRST and
 * HAL_QUEUE_BATCH_COMMANDS, which 0 stands for.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for a first above most. */
HAL_API hal_status hal_queue_set_batch(hal_queue *queue, uint32_t first, uint32_t most);

/* Makes what is recorded from now on wait for a point of another queue of any device. Flushes what
 * was recorded before. What waits for a point of a device that this one's plugin cannot wait for is
 * held by hal and moves on with the next call on either queue.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for a point that was never given out, what the
 * flush meets. */
HAL_API hal_status hal_queue_wait_point(hal_queue *queue, hal_point point);

/* Flushes and waits until all work of the queue has run.
 * Threads: the queue's. Errors: as hal_queue_flush, TIMEOUT, DEVICE_LOST.
 * Units: nanoseconds; HAL_WAIT_FOREVER for no limit. */
HAL_API hal_status hal_queue_wait(hal_queue *queue, uint64_t timeout_ns);

/* Waits for a point; 0 only looks.
 * Threads: any. Errors: TIMEOUT, INVALID_ARGUMENT, DEVICE_LOST. Units: nanoseconds. */
HAL_API hal_status hal_point_wait(hal_point point, uint64_t timeout_ns);

/* Device time from one point to a later one of the same queue, both reached.
 * Threads: the queue's. Errors: UNSUPPORTED where the device does not count, INVALID_STATE before
 * the points are reached, INVALID_ARGUMENT. Units: nanoseconds. */
HAL_API hal_status hal_point_get_elapsed(hal_point first, hal_point second,
                                         HAL_OUT uint64_t *nanoseconds);

#ifdef __cplusplus
}
#endif
#endif

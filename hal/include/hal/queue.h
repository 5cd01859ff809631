/* Queues: in-order timelines of a device.
 *
 * Commands take effect in the order in which they are recorded; commands on disjoint ranges of
 * memory may overlap. Recording does not wait. A flush submits the recorded batch to the device and
 * returns a point. hal also flushes when a batch reaches its limit or uses an eighth of the
 * device's memory, and before a wait. The first limit after a wait is small, so that an idle device
 * starts early; it doubles with each batch (hal_queue_set_batch; docs/batching.md has the figures).
 *
 * One thread at a time may use a queue; different threads may use different queues at the same
 * time. Any thread may use points. */
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

/* A point of a queue's timeline: it is reached when all batches up to its flush have run. Valid as
 * long as the queue. The zero point {NULL, 0} counts as reached. */
typedef struct hal_point {
    hal_queue *queue;
    uint64_t value;
} hal_point;

/* A range of a buffer in bytes; length HAL_WHOLE extends to the buffer's end. A null buffer is for
 * a binding that the kernel does not access. */
#define HAL_WHOLE UINT64_MAX
typedef struct hal_range {
    hal_buffer *buffer;
    uint64_t offset;
    uint64_t length;
} hal_range;

/* Creates a queue on a device.
 * Ownership: the caller's, until hal_queue_destroy. Threads: any.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_LOST. */
HAL_API hal_status hal_queue_create(hal_device *device, HAL_OUT hal_queue **queue);

/* Flushes, waits for all work and destroys the queue; its points become invalid. Null is allowed.
 * Threads: the queue's. Errors: none. */
HAL_API void hal_queue_destroy(hal_queue *queue);

/* Returns the queue's device.
 * Ownership: not retained for the caller. Threads: any. Errors: none; null returns null. */
HAL_API hal_device *hal_queue_get_device(const hal_queue *queue);

/* Records a kernel over grid[0] x grid[1] x grid[2] groups; with a 0 nothing is recorded.
 * `bindings` are in the order of the kernel's declarations; offsets are multiples of the device's
 * binding_alignment. `scalars` is laid out as the kernel declares it, and is copied.
 * Ownership: kernel and buffers are kept alive until the command has run. Threads: the queue's.
 * Errors: INVALID_ARGUMENT, naming the argument, for counts, ranges, alignment, a grid beyond the
 * device's limits, objects of another device, or overlapping ranges of which one is written;
 * OUT_OF_MEMORY; those of an automatic flush. Nothing is recorded after an error. */
HAL_API hal_status hal_queue_dispatch(hal_queue *queue, hal_kernel *kernel, const uint32_t grid[3],
                                      const hal_range *bindings, uint32_t binding_count,
                                      const void *scalars, uint32_t scalar_bytes);

/* As hal_queue_dispatch, with a grid that the device reads from a buffer when the command begins,
 * as three U32; with a 0 nothing runs.
 *   grid  a range of 12 bytes, its offset a multiple of 4
 *   most  the largest grid that the program writes there, each at least 1; null: the limits of the
 *         device. Larger values are undefined behaviour.
 * Threads: the queue's. Errors: as hal_queue_dispatch; UNSUPPORTED without HAL_FEATURE_INDIRECT:
 * there read the grid by hal_queue_read and dispatch it. */
HAL_API hal_status hal_queue_dispatch_indirect(hal_queue *queue, hal_kernel *kernel, hal_range grid,
                                               const uint32_t most[3], const hal_range *bindings,
                                               uint32_t binding_count, const void *scalars,
                                               uint32_t scalar_bytes);

/* Records a copy between buffers of the queue's device; the ranges have equal length and do not
 * overlap. Units: bytes; offsets are multiples of 4, and so is the length unless both ranges end
 * with their buffers.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_copy(hal_queue *queue, hal_range source, hal_range target);

/* `slices` times `rows` ranges of row_bytes. Row r of slice s is at offset + s * slice + r * pitch
 * bytes of its buffer. All bytes are multiples of 4. */
typedef struct hal_row_copy {
    hal_buffer *source, *target;
    uint64_t source_offset, target_offset;
    uint64_t source_pitch, target_pitch; /* at least row_bytes, where there are several rows */
    uint64_t source_slice, target_slice; /* at least a slice's rows, where there are several */
    uint64_t row_bytes;
    uint32_t rows, slices;
} hal_row_copy;

/* Records a copy of rows between buffers of the queue's device; with 0 rows, slices or row_bytes
 * nothing is recorded. The range from the source's first row to the end of its last one does not
 * overlap with the target's. What is between the target's rows keeps its value. Devices without
 * HAL_FEATURE_COPY_ROWS get a copy for each row.
 * Ownership: the structure is the caller's. Threads: the queue's. Errors: as hal_queue_dispatch;
 * after OUT_OF_MEMORY some rows may have been recorded. */
HAL_API hal_status hal_queue_copy_rows(hal_queue *queue, const hal_row_copy *copy);

/* Records a fill of a range with 4 bytes repeated. Offset and length are multiples of 4 bytes.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_fill(hal_queue *queue, hal_range target, uint32_t pattern);

/* Records a fill of a range with a pattern repeated. Offset and length are multiples of the
 * pattern's size.
 *   pattern  copied
 *   bytes    of the pattern: 1, 2, 4, 8 or 16
 * Threads: the queue's. Errors: as hal_queue_dispatch; UNSUPPORTED for what is no fill with 4 bytes
 * on devices without HAL_FEATURE_FILL_PATTERNS. */
HAL_API hal_status hal_queue_fill_pattern(hal_queue *queue, hal_range target, const void *pattern,
                                          uint32_t bytes);

/* Writes `bytes` bytes from the host to a buffer of any kind, in the queue's order. `data` is
 * copied and may be changed after the call. Waits only if too many earlier writes are in flight or
 * memory for the copy is short.
 * Threads: the queue's. Errors: as hal_queue_dispatch. */
HAL_API hal_status hal_queue_write(hal_queue *queue, hal_buffer *buffer, uint64_t offset,
                                   const void *data, uint64_t bytes);

/* Flushes, waits, and reads `bytes` bytes of a buffer of any kind into `data`.
 * Threads: the queue's. Errors: as hal_queue_dispatch, and DEVICE_LOST. */
HAL_API hal_status hal_queue_read(hal_queue *queue, hal_buffer *buffer, uint64_t offset,
                                  uint64_t bytes, HAL_OUT void *data);

/* Copies between buffers of any two devices, after the earlier and before the later work of both
 * queues. On one queue the copy is recorded as a command. If the source's device can access the
 * other as a peer, both queues are flushed without a wait, and their last points come after the
 * copy. Otherwise the data goes through the host: it is read on `source_queue` and written on
 * `target_queue`.
 * Ownership: the buffers are kept alive. Threads: both queues'. Units: bytes, any number of them.
 * Errors: as hal_queue_read and hal_queue_write. */
HAL_API hal_status hal_queue_transfer(hal_queue *source_queue, hal_buffer *source,
                                      uint64_t source_offset, hal_queue *target_queue,
                                      hal_buffer *target, uint64_t target_offset, uint64_t bytes);

/* Submits the recorded batch. `point`, which may be null, receives the point of all work so far:
 * the last one again if nothing was recorded since a flush with a point.
 * Threads: the queue's.
 * Errors: those of the plugin; the batch is then dropped, and the queue stays usable unless the
 * device is lost. If a batch that was held for a point of another device is rejected later, the
 * next flush or wait of its queue returns the error once. hal_queue_get_loss tells it at any time.
 */
HAL_API hal_status hal_queue_flush(hal_queue *queue, HAL_OUT hal_point *point);

#define HAL_LOSS_BYTES 512

/* Batches of a queue that were dropped after errors, so that what they should have written is
 * missing. A batch that waited for one of another queue, which was dropped after its flush, counts
 * as well: it may have read what is missing. So do those that wait, before the error was told, for
 * the point of such a batch, or of a later one that was flushed by then. Of a batch that waits for
 * them after that only itself counts: the program was told, and makes what it needs again. What
 * lies between two such batches of a queue counts as lost. */
typedef struct hal_loss {
    uint64_t batch;    /* the least number of these batches; UINT64_MAX: there are none */
    uint32_t count;    /* losses of the queue so far */
    hal_status status; /* of the first one */
    char message[HAL_LOSS_BYTES]; /* of the first one */
} hal_loss;

/* Returns the number of the batch in recording: unique in the process, and rising. Work that is
 * recorded now is in this batch or a later one.
 * Threads: the queue's. Errors: none; null gives 0. */
HAL_API uint64_t hal_queue_get_batch(const hal_queue *queue);

/* Returns where the queue counts its losses. For libraries that remember the batches of their
 * results, and compare at every call; any thread changes it, so read it with __atomic_load_n.
 * Ownership: the queue's. Threads: any. Errors: none; null gives null. */
HAL_API const uint32_t *hal_queue_get_loss_count(const hal_queue *queue);

/* Describes the losses after the first `since`. Everything that was recorded in the least batch or
 * later, before this call, may be missing or made of what is missing. What a lost device has not
 * done is no loss: all its calls fail.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for null. */
HAL_API hal_status hal_queue_get_loss(const hal_queue *queue, uint32_t since,
                                      HAL_OUT hal_loss *loss);

/* Sets the number of commands after which hal flushes: `first` for the first batch after a wait,
 * then twice as many each time, up to `most`. 0 selects the defaults HAL_QUEUE_BATCH_FIRST and
 * HAL_QUEUE_BATCH_COMMANDS.
 * Threads: the queue's. Errors: INVALID_ARGUMENT if first is above most. */
HAL_API hal_status hal_queue_set_batch(hal_queue *queue, uint32_t first, uint32_t most);

/* Makes later commands wait for a point of another queue, of any device. Flushes earlier commands.
 * If the plugin cannot wait for the other device, hal holds the later batches and submits them in a
 * flush or wait of any queue after the point is reached.
 * Threads: the queue's. Errors: INVALID_ARGUMENT for a point that no flush returned, those of the
 * flush. */
HAL_API hal_status hal_queue_wait_point(hal_queue *queue, hal_point point);

/* Flushes and waits until all work of the queue has run.
 * Threads: the queue's. Errors: as hal_queue_flush, TIMEOUT, DEVICE_LOST.
 * Units: nanoseconds; HAL_WAIT_FOREVER for no limit. */
HAL_API hal_status hal_queue_wait(hal_queue *queue, uint64_t timeout_ns);

/* Waits for a point; a timeout of 0 polls.
 * Threads: any. Errors: TIMEOUT, INVALID_ARGUMENT, DEVICE_LOST. Units: nanoseconds. */
HAL_API hal_status hal_point_wait(hal_point point, uint64_t timeout_ns);

/* Returns the device time from one point to a later one of the same queue; both are reached.
 * Threads: the queue's. Errors: UNSUPPORTED without HAL_FEATURE_TIMESTAMPS, INVALID_STATE before
 * the points are reached, INVALID_ARGUMENT, also where first is not among the last 1024 points of
 * the queue. Units: nanoseconds. */
HAL_API hal_status hal_point_get_elapsed(hal_point first, hal_point second,
                                         HAL_OUT uint64_t *nanoseconds);

/* Returns when a reached point was reached, by the device's clock of hal_device_get_clocks.
 * Threads: the queue's. Errors: as hal_point_get_elapsed; UNSUPPORTED without that clock.
 * Units: nanoseconds. */
HAL_API hal_status hal_point_get_time(hal_point point, HAL_OUT uint64_t *device_ns);

#ifdef __cplusplus
}
#endif
#endif

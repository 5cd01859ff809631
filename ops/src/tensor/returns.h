/* Memory that a consumer on another stream gives back: its next use waits for that stream. Made for
 * exports by DLPack, which any thread may end. */
#ifndef OPS_SRC_TENSOR_RETURNS_H
#define OPS_SRC_TENSOR_RETURNS_H

#include <hal/buffer.h>
#include <hal/queue.h>

typedef struct ops_returns ops_returns;

/* Returns with one reference; null without memory or a queue, after hal_status_set. */
ops_returns *ops_returns_create(hal_device *device);
ops_returns *ops_returns_ref(ops_returns *returns);

/* Null is allowed. The last one waits for what was returned. Threads: any. */
void ops_returns_unref(ops_returns *returns);

/* Releases a reference to a buffer that a stream of the driver may still use: the queue of returns
 * waits for the stream and then uses the buffer, so that a new owner of its memory comes after.
 * Threads: any. */
void ops_returns_give(ops_returns *returns, hal_buffer *buffer, const char *type, uint64_t stream);

#endif

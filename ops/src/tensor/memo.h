/* Memos: what a call recorded, kept under all that decided it, so that an equal call on other
 * buffers is recorded again without being planned. Everything that the op library records goes
 * through here; array evaluation is what looks memos up.
 *
 * While a memo is written, each command is recorded and noted. Buffers are noted by their place
 * among the operands that the caller names, temporaries by their size. */
#ifndef OPS_SRC_TENSOR_MEMO_H
#define OPS_SRC_TENSOR_MEMO_H

#include "context.h"

/* A context keeps as many; beyond that it begins anew, as with kernels. */
#define OPS_MEMO_COUNT 8192u
#define OPS_MEMO_OPERANDS 40u

typedef struct ops_memo ops_memo;
typedef struct ops_memos ops_memos;

/* The context's memos; null without memory. */
ops_memos *ops_memos_create(void);
void ops_memos_destroy(ops_memos *memos);

/* The memo of a signature, or null; `key` gets its hash. */
const ops_memo *ops_memos_find(const ops_memos *memos, const ops_cache_key *signature,
                               uint64_t key[2]);

/* Records a memo with buffers in place of the operands.
 * Errors: OPS_MEMO_NO_ROOM, which never leaves the library: there is no memory for the temporaries,
 * and nothing was recorded; the call itself may do without them, or says what is missing. What
 * dispatches meet. */
#define OPS_MEMO_NO_ROOM ((hal_status)-2)
hal_status ops_memo_replay(ops_context *context, const ops_memo *memo, hal_buffer *const *operands);

/* Begins to note what is recorded; ends it and keeps it under the key. What cannot be noted, or
 * finds no memory, is not kept: the next equal call is planned again. A failure has `keep` 0. */
void ops_memo_begin(ops_context *context, hal_buffer *const *operands, uint32_t count);
void ops_memo_end(ops_context *context, const uint64_t key[2], int keep);

/* What a context records on its queue. */
hal_status ops_record_dispatch(ops_context *context, hal_kernel *kernel, const uint32_t grid[3],
                               const hal_range *ranges, uint32_t range_count, const void *scalars,
                               uint32_t scalar_bytes);
hal_status ops_record_copy(ops_context *context, hal_range source, hal_range target);
hal_status ops_record_fill(ops_context *context, hal_range target, uint32_t pattern);

/* Memory of the device that a call makes for itself, or for its caller. */
hal_status ops_make_buffer(ops_context *context, uint64_t bytes, hal_buffer **buffer);

#endif

/* Memory of a context for structures that are too large for small stacks. */
#ifndef OPS_SRC_TENSOR_SCRATCH_H
#define OPS_SRC_TENSOR_SCRATCH_H

#include <hal/hal.h>
#include <stddef.h>

/* A stack of structures in one block, which is allocated at the first use. */
typedef struct ops_scratch {
    uint8_t *block;
    size_t used;
} ops_scratch;

/* Takes `bytes`, which are not cleared; null without host memory, with a message that begins with
 * `function`. */
void *ops_scratch_take(ops_scratch *scratch, const char *function, size_t bytes);

/* Returns what was taken last. */
void ops_scratch_return(ops_scratch *scratch, void *memory);

void ops_scratch_release(ops_scratch *scratch);

#endif

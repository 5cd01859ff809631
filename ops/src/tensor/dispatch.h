/* Recording a dispatch of a cached kernel. */
#ifndef OPS_SRC_TENSOR_DISPATCH_H
#define OPS_SRC_TENSOR_DISPATCH_H

#include "bindings.h"
#include "context.h"

/* Records a kernel of the cache with a one-, two- or three-dimensional grid. */
hal_status ops_dispatch(ops_context *context, const ops_entry *entry, const uint32_t grid[3],
                        const ops_bindings *bindings, const ops_block *block);

#endif

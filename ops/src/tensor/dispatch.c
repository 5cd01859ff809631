/* Recording a dispatch, see dispatch.h. */
#include "dispatch.h"

#include "plan_recorder.h"

hal_status ops_dispatch(ops_context *context, const ops_entry *entry, const uint32_t grid[3],
                        const ops_bindings *bindings, const ops_block *block)
{
    return ops_record_dispatch(context, entry->kernel, grid, bindings->ranges, bindings->count,
                               block->bytes, ops_block_size(block));
}

/* Arrays whose values are missing, because the batch that computed them was dropped, and the check
 * of operands, which refuses them.
 *
 * A call that flushes reports a failure once, and it may be another call than those on arrays. So
 * each array in memory has the number of its batch, and the check compares the queue's count of
 * losses. A loss concerns what was recorded in its batch or later: whatever is recorded between the
 * failure and the next check may have read what is missing. */
#ifndef OPS_SRC_ARRAY_LOST_H
#define OPS_SRC_ARRAY_LOST_H

#include "node.h"

/* Cleans up after a failure and returns its status: finds what it lost, and constants are filled
 * anew. */
hal_status ops_arrays_failed(ops_arrays *arrays, hal_status status);

/* Adds a holder of memory that was written before `batch`, or in it; removes it, also after the
 * context. */
void ops_memory_holder_add(ops_memory_holder *holder, ops_arrays *arrays, uint64_t batch);
void ops_memory_holder_remove(ops_memory_holder *holder);

/* Refuses a holder whose memory has no values. Errors: INVALID_STATE. */
hal_status ops_memory_holder_check(const ops_memory_holder *holder, const char *function,
                                   const char *argument);

/* Reports an argument that is null, with the message of the last failed call, which most likely
 * made it null. Returns INVALID_ARGUMENT. */
hal_status ops_report_null_array(const char *function, const char *argument);

/* Sets the error that ops_check_operands found. */
void ops_refuse_operands(const char *function, ops_array *const *operands, uint32_t count);

/* Makes the arrays that losses of the queue concern, and what is computed of them, lost nodes;
 * constants are filled anew. The thread's message stays. */
void ops_arrays_find_lost(ops_arrays *arrays);

static inline void ops_arrays_note_losses(ops_arrays *arrays)
{
    if (__atomic_load_n(arrays->losses, __ATOMIC_RELAXED) != arrays->losses_found) {
        ops_arrays_find_lost(arrays);
    }
}

/* Checks operands. Returns their owner; null when one is null (the message of the failed call that
 * made it null stays), released, void, lost, or of another context than the first. */
static inline ops_arrays *ops_check_operands(const char *function, ops_array *const *operands,
                                             uint32_t count)
{
    ops_arrays *owner = operands[0] ? operands[0]->owner : NULL;
    if (owner) {
        ops_arrays_note_losses(owner);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ops_array *x = operands[i];
        if (!x || x->owner != owner ||
            (x->state != OPS_NODE_MEMORY && x->state != OPS_NODE_DEFERRED)) {
            ops_refuse_operands(function, operands, count);
            return NULL;
        }
    }
    return owner;
}

#endif

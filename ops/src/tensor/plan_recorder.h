/* The plan recorder: records commands on the context's queue and, while a recording is open, keeps
 * a copy of them as a recorded plan. Every kernel family records through ops_record_*; the array
 * layer opens recordings, caches their plans, and replays a plan instead of planning an equal call
 * again.
 *
 * A recorded plan has its buffers as parameters: operands, which the opener of the recording names,
 * by index; temporaries, which the call allocates itself (allocation.h), by size. */
#ifndef OPS_SRC_TENSOR_PLAN_RECORDER_H
#define OPS_SRC_TENSOR_PLAN_RECORDER_H

#include "context.h"

#include <stdbool.h>

#define OPS_PLAN_BUFFERS 40u /* operands and temporaries of one plan */

typedef struct ops_plan_recorder ops_plan_recorder;
typedef struct ops_recorded_plan ops_recorded_plan;

/* Null without memory. */
ops_plan_recorder *ops_plan_recorder_create(void);
void ops_plan_recorder_destroy(ops_plan_recorder *recorder);

/* Opens a recording. */
void ops_plan_recorder_begin(ops_plan_recorder *recorder, hal_buffer *const *operands,
                             uint32_t count);

/* Closes the recording. The caller owns the plan. Null when the recording is incomplete: it used
 * a buffer that is neither operand nor temporary, or ran out of memory. */
ops_recorded_plan *ops_plan_recorder_end(ops_plan_recorder *recorder);

/* Closes the recording of a call that failed. */
void ops_plan_recorder_cancel(ops_plan_recorder *recorder);

/* Tells an open recording about an allocation; a null buffer is one that failed. A plan must not
 * repeat what a call did because memory was short, so such a recording is incomplete. */
void ops_plan_recorder_add_temporary(ops_plan_recorder *recorder, hal_buffer *buffer,
                                     uint64_t bytes);

/* Tells an open recording that a general kernel computes a command, which takes so much longer. */
void ops_plan_recorder_add_general(ops_plan_recorder *recorder, uint64_t cost_ns);

/* Whether general kernels compute a part of the plan. */
bool ops_recorded_plan_is_general(const ops_recorded_plan *plan);

/* Counts one more use of a plan. Returns what its general kernels have cost more so far; `kernels`
 * receives their number. */
uint64_t ops_recorded_plan_count_use(ops_recorded_plan *plan, uint32_t *kernels);

/* Whether the special kernels of the plan's general ones are requested: made in the background. */
bool ops_recorded_plan_has_requested(const ops_recorded_plan *plan);
void ops_recorded_plan_set_requested(ops_recorded_plan *plan);

/* Records a plan's commands with buffers in place of its operands. *lacks_memory: there was none
 * for the temporaries, and nothing was recorded; the call itself may do without them or report what
 * is missing. Errors: OUT_OF_MEMORY as told, those of dispatches. */
hal_status ops_recorded_plan_replay(const ops_recorded_plan *plan, ops_context *context,
                                    hal_buffer *const *operands, bool *lacks_memory);
void ops_recorded_plan_destroy(ops_recorded_plan *plan);

/* Commands on the context's queue. */
hal_status ops_record_dispatch(ops_context *context, hal_kernel *kernel, const uint32_t grid[3],
                               const hal_range *ranges, uint32_t range_count, const void *scalars,
                               uint32_t scalar_bytes);
hal_status ops_record_copy(ops_context *context, hal_range source, hal_range target);
hal_status ops_record_fill(ops_context *context, hal_range target, uint32_t pattern);

#endif

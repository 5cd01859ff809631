/* Records a fusion plan as calls on tensors: ops_pointwise, ops_reduce, ops_gemm, ... There is no
 * second way to a kernel. */
#ifndef OPS_SRC_ARRAY_FUSION_RECORD_H
#define OPS_SRC_ARRAY_FUSION_RECORD_H

#include "fusion_plan.h"

/* The sums of the result of a plan with c_levels, in the last of its buffers. */
ops_tensor ops_fusion_plan_sums(const ops_fusion_plan *plan, hal_buffer *const *buffers);

/* Records the plan; output i of the plan is written to buffers[i]. */
hal_status ops_fusion_record(const ops_fusion_plan *plan, hal_buffer *const *buffers);

#endif

/* Records a fusion plan as calls on tensors: ops_pointwise, ops_reduce, ops_gemm, ... There is no
 * second way to a kernel. */
#ifndef OPS_SRC_ARRAY_FUSION_RECORD_H
#define OPS_SRC_ARRAY_FUSION_RECORD_H

#include "fusion_plan.h"

/* Records the plan. `buffers`: those of ops_fusion_plan_buffer_count. */
hal_status ops_fusion_record(const ops_fusion_plan *plan, hal_buffer *const *buffers);

#endif

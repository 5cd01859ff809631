/* Operations of a subgroup, which is a warp. */
#ifndef PLUGINS_CUDA_LOWER_SUBGROUP_H
#define PLUGINS_CUDA_LOWER_SUBGROUP_H

#include "lower/text.h"

/* Lowers one record; false for records of other families. */
bool cuda_lower_subgroup(cuda_lowering *l, uint32_t index);

/* Sets lane_mask and short_warp, for a kernel with subgroup operations. */
void cuda_lower_lane_mask(cuda_lowering *l);

#endif

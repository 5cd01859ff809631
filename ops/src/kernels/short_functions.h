/* Functions with fewer operations than those of the IR, where less is asked of them. */
#ifndef OPS_SRC_KERNELS_SHORT_FUNCTIONS_H
#define OPS_SRC_KERNELS_SHORT_FUNCTIONS_H

#include <ops/pointwise.h>
#include <stdbool.h>

/* Whether the device has no version of a function of the IR for f32, so that hal would
 * expand it. */
bool ops_expands(const hal_device_info *info, uint32_t opcode);

/* exp(x) of an f32 x <= 0 or NaN. The error is at most 1.5 units in the last place; with
 * `is_narrow`, for what is rounded to a narrow type, 4 + |x| / 4, and 0 below 2^-126. */
hal_ir_value ops_exp_below(hal_ir_builder *b, hal_ir_value x, bool is_narrow);

#endif

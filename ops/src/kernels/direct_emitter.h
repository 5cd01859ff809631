/* State and helpers of the emitters of direct convolutions: direct_kernel.c (the kernel of one
 * shape, and what both have in common) and direct_any.c (windows of general kernels). */
#ifndef OPS_SRC_KERNELS_DIRECT_EMITTER_H
#define OPS_SRC_KERNELS_DIRECT_EMITTER_H

#include "direct_task.h"

#include "tensor/divisor.h"

/* What a work-item needs at the same time. */
typedef struct ops_direct_emitter {
    hal_ir_builder *b;
    const ops_direct_task *task;
    hal_ir_value number[OPS_DIRECT_NUMBERS]; /* of general kernels */
    hal_ir_value first;                      /* group of channels of the call */
    hal_ir_value x, w, y, bias;              /* indices of its first elements */
    hal_ir_value inside[OPS_DIRECT_LINES];   /* whether it has a line */
    hal_ir_value sum[OPS_DIRECT_RESULTS][OPS_DIRECT_LINES];
    hal_ir_value weight[OPS_DIRECT_WEIGHTS];
    /* Of general kernels: the window; the first weight of each result, from w on, and whether the
     * group has the result. */
    struct {
        hal_ir_value taps, position, apart, step, phase, pitch, w_step;
        ops_divisor by_step;
    } axis[OPS_MAX_SPATIAL];
    ops_divisor divisor[3]; /* depth, blocks, groups */
    hal_ir_value outputs;   /* of a group */
    /* The element and the weight of each tap that has no loop, from a channel's first ones. */
    hal_ir_value tap_x[OPS_DIRECT_TAPS], tap_w[OPS_DIRECT_TAPS];
    hal_ir_value of_w[OPS_DIRECT_RESULTS], has_result[OPS_DIRECT_RESULTS];
} ops_direct_emitter;

/* The sums as variables of loops. */
void ops_direct_sums_get(ops_direct_emitter *e, const hal_ir_value *variables);
void ops_direct_sums_set(const ops_direct_emitter *e, const hal_ir_value *variables);

#endif

/* The kernel of direct.c: a work-item sums the windows of some neighbouring results, which share
 * elements of x and of the weights. */
#ifndef OPS_SRC_KERNELS_DIRECT_KERNEL_H
#define OPS_SRC_KERNELS_DIRECT_KERNEL_H

#include "tensor/bindings.h"
#include "tensor/context.h"

#include <ops/windows.h>

/* Results of a work-item: channels, and lines along the axis before the last one. */
#define OPS_DIRECT_RESULTS 8u
#define OPS_DIRECT_LINES 4u

/* Weights that a work-item reads before it uses them; longer windows have a loop. */
#define OPS_DIRECT_WEIGHTS 200u

/* What the kernel is compiled for. Distances in memory are numbers of elements, modulo 2^32.
 * Element k of the window along an axis, for result t, is at the place position + k apart + t
 * stride, which is phase % step and cell / step of that axis: those are `phase` and `pitch` apart.
 */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_direct_key {
    uint32_t rank, activation, has_bias;
    uint32_t results, lines; /* of a work-item */
    uint32_t chunk;          /* elements of the window along the first axis without a loop */
    uint32_t lanes, rows;    /* of a group: along the last axis, and of `lines` the one before */
    uint32_t columns, depth; /* results along the last axis, and along the first one of three */
    uint32_t row_count[OPS_DIRECT_LINES]; /* work-items that have a line: the first ones */
    uint32_t blocks, groups, channels;    /* blocks of `results` of a group, channels of x */
    int32_t window[OPS_MAX_SPATIAL], position[OPS_MAX_SPATIAL], apart[OPS_MAX_SPATIAL];
    int32_t stride[OPS_MAX_SPATIAL], step[OPS_MAX_SPATIAL];
    int32_t phase[OPS_MAX_SPATIAL], pitch[OPS_MAX_SPATIAL];
    int32_t w_step[OPS_MAX_SPATIAL], w_result; /* from one element of the window, or result, to
                                                * the next one */
    uint32_t w_group, w_block, w_channel;
    uint32_t x_image, x_group, x_channel, x_depth, x_row;
    uint32_t y_image, y_group, y_block, y_result, y_depth, y_line, y_column;
    uint32_t bias_group, bias_block, bias_result;
} ops_direct_key;
OPS_KEY_STRUCTURES_END

enum { OPS_DIRECT_X, OPS_DIRECT_W, OPS_DIRECT_Y, OPS_DIRECT_BIAS, OPS_DIRECT_TENSORS };

typedef struct ops_direct_task {
    ops_direct_key key; /* first: what the kernel depends on */
    const ops_expression *activation;
    ops_bindings bindings;
    uint8_t slots[OPS_DIRECT_TENSORS];
} ops_direct_task;

/* The kernel of an ops_direct_task. Scalars: indices of the first elements of x, w, y and the bias,
 * and the number of the first group of channels, over all images. */
void ops_direct_emit(hal_ir_builder *b, const void *user);

#endif

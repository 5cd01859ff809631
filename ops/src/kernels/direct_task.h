/* What the kernels of direct.c are compiled for: a work-item sums the windows of some neighbouring
 * results, which share elements of x and of the weights. */
#ifndef OPS_SRC_KERNELS_DIRECT_TASK_H
#define OPS_SRC_KERNELS_DIRECT_TASK_H

#include "tensor/bindings.h"
#include "tensor/context.h"

#include <ops/windows.h>

/* Results of a work-item: channels, and lines along the axis before the last one. */
#define OPS_DIRECT_RESULTS 8u
#define OPS_DIRECT_LINES 4u

/* Weights that a work-item reads before it uses them; longer windows have a loop. */
#define OPS_DIRECT_WEIGHTS 200u

/* Elements of the window that a general kernel adds without a loop, at most. */
#define OPS_DIRECT_TAPS 16

/* Counts and distances in memory, in elements modulo 2^32, which are scalars of general kernels:
 * results along the last axis, and along the first one of three; blocks of results of a group;
 * groups; channels of x; work-items that have each of the lines, the first ones. */
enum {
    OPS_DIRECT_COLUMNS,
    OPS_DIRECT_DEPTH,
    OPS_DIRECT_BLOCKS,
    OPS_DIRECT_GROUPS,
    OPS_DIRECT_CHANNELS,
    OPS_DIRECT_ROWS,
    OPS_DIRECT_X_IMAGE = OPS_DIRECT_ROWS + OPS_DIRECT_LINES,
    OPS_DIRECT_X_GROUP,
    OPS_DIRECT_X_CHANNEL,
    OPS_DIRECT_X_DEPTH,
    OPS_DIRECT_X_ROW,
    OPS_DIRECT_W_GROUP,
    OPS_DIRECT_W_BLOCK,
    OPS_DIRECT_W_CHANNEL,
    OPS_DIRECT_W_RESULT,
    OPS_DIRECT_Y_IMAGE,
    OPS_DIRECT_Y_GROUP,
    OPS_DIRECT_Y_BLOCK,
    OPS_DIRECT_Y_RESULT,
    OPS_DIRECT_Y_DEPTH,
    OPS_DIRECT_Y_ROW,
    OPS_DIRECT_Y_LINE,
    OPS_DIRECT_Y_COLUMN,
    OPS_DIRECT_BIAS_GROUP,
    OPS_DIRECT_BIAS_BLOCK,
    OPS_DIRECT_BIAS_RESULT,
    OPS_DIRECT_NUMBERS
};

/* The window along an axis: `taps` elements. Element k, for result t, is at the place position + k
 * apart + t stride, which is phase % step and cell / step: those are `phase` and `pitch` apart in
 * memory. Elements of the weights are w_step apart. */
typedef struct ops_direct_axis {
    int32_t taps, position, apart, stride, step, phase, pitch, w_step;
} ops_direct_axis;

/* What the kernel is compiled for. The kernel of one shape has all; the general one has no lines
 * and chunks, and of the window the taps of the axes from `unrolled` on, whose elements it adds
 * without a loop: all else is scalars. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_direct_key {
    uint32_t rank, activation, has_bias;
    uint32_t results, lines; /* of a work-item */
    uint32_t chunk;          /* elements of the window along the first axis without a loop */
    uint32_t lanes, rows;    /* of a group: along the last axis, and of `lines` the one before */
    uint32_t is_general, unrolled;
    uint32_t x_is_near, w_is_near, y_is_near; /* of the general kernel: elements of x along the last
                                                 axis, weights of unrolled axes, and results along
                                                 the last axis are neighbours in order */
    uint32_t number[OPS_DIRECT_NUMBERS];
    ops_direct_axis axis[OPS_MAX_SPATIAL];
} ops_direct_key;
OPS_KEY_STRUCTURES_END

enum { OPS_DIRECT_X, OPS_DIRECT_W, OPS_DIRECT_Y, OPS_DIRECT_BIAS, OPS_DIRECT_TENSORS };

typedef struct ops_direct_task {
    ops_direct_key key;
    const ops_expression *activation;
    ops_bindings bindings;
    uint8_t slots[OPS_DIRECT_TENSORS];
} ops_direct_task;

#endif

/* Folding values inside a kernel: how the work-items of a group share outputs and axis, how two
 * values combine, and how a group combines its partial results.
 *
 * A group has `outputs` x `along` work-items, or as many rows of `outputs` as it has layers, with
 * one work-item along the axis. The axis is cut into chunks of `width` elements:
 * work-item (p, q) takes the chunks q, q + along, ... of output p. Element j of its c-th chunk goes
 * to chain (c * width + j) mod `chains`; the chains are folded in the order of c, then pairwise,
 * then over the work-items. Elements beyond the axis count as neutral. So the order of additions
 * follows from this structure alone, however a kernel loops or keeps elements. */
#ifndef OPS_SRC_KERNELS_FOLD_H
#define OPS_SRC_KERNELS_FOLD_H

#include "tensor/indexing.h"

#include <ops/reduce.h>
#include <stdbool.h>

/* Elements that a work-item of a group of OPS_FOLD_BY_LANES keeps at most. */
#define OPS_KEPT_ELEMENTS 32

OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_reduce_layout {
    uint32_t outputs, along;  /* the latter a power of two */
    uint32_t subgroup;        /* lanes that combine by shuffles; 0: through shared memory only */
    uint32_t width;           /* elements of a chunk: 1, 2 or 4; divides the axis */
    uint32_t chains;          /* accumulators of a work-item */
    uint32_t unroll;          /* chunks of a step of a loop; a multiple of `chains` elements */
    uint32_t blocks;          /* steps after which a sum's chains go to a total; 0: at the end */
    uint32_t layers;          /* rows of outputs in a group; above 1 only with `rows` */
    uint8_t axis_first;       /* dimension 0 of the group runs along the axis */
    uint8_t rows;             /* the innermost output dimension has the grid's x for itself */
    uint8_t grid_may_overrun; /* with `rows`: y and z of the grid count the other dimensions */
    uint8_t is_whole;         /* every work-item has an output: accesses need no guard */
} ops_reduce_layout;
OPS_KEY_STRUCTURES_END

/* The axis that is reduced, in every view. */
typedef struct ops_axis {
    int64_t length;
    int64_t stride[OPS_MAX_VIEWS];
    uint8_t step[OPS_MAX_VIEWS]; /* OPS_INNER_* */
} ops_axis;

/* A fold besides those of ops_reduction: the greatest x, and the sum of exp(x - greatest). */
#define OPS_FOLD_SOFTMAX OPS_REDUCTION_COUNT

/* An intermediate value of a fold. `place` is, for ARGMAX and ARGMIN, the value's index (U32;
 * UINT32_MAX of the neutral value) and, for OPS_FOLD_SOFTMAX, the sum. */
typedef struct ops_state {
    hal_ir_value value, place;
} ops_state;

/* A work-item of the group. */
typedef struct ops_reduce_lane {
    hal_ir_value p, q;                 /* U32 */
    hal_ir_value item;                 /* U32, its number in the group */
    hal_ir_value inside;               /* BOOL: there is an output p; HAL_IR_NONE: always */
    hal_ir_value index[OPS_MAX_VIEWS]; /* of the output's first element on the axis */
} ops_reduce_lane;

/* Chooses the group, and the order of additions, for a collapsed space of outputs whose only view
 * is what is reduced, of a value type. */
void ops_reduce_layout_choose(const ops_context *context, const ops_space *space,
                              const ops_axis *axis, hal_type type, ops_reduce_layout *group);

/* After that, for programs that read elements of `size` bytes several times: fewer outputs for a
 * group, where it then keeps their elements in registers and a compute unit has several such
 * groups. */
void ops_reduce_layout_keep(const ops_context *context, const ops_space *space,
                            const ops_axis *axis, uint32_t size, hal_type type,
                            ops_reduce_layout *group);

/* The same where each group takes `length` elements of the axis. */
void ops_reduce_layout_set_length(const ops_context *context, int64_t length, hal_type type,
                                  ops_reduce_layout *group);

/* Chunks of a work-item. */
static inline int64_t ops_reduce_layout_chunks(const ops_reduce_layout *group, int64_t length)
{
    const int64_t step = (int64_t)group->along * group->width;
    return (length + step - 1) / step;
}

/* Computes the grid that covers the outputs, in x and y; z is free for slices of the axis unless
 * group->grid_may_overrun is set. */
hal_status ops_reduce_layout_grid(const ops_context *context, const char *function,
                                  const ops_space *space, ops_reduce_layout *group,
                                  uint32_t grid[3]);
void ops_reduce_layout_declare(hal_ir_builder *b, const ops_reduce_layout *group);
void ops_reduce_layout_emit(hal_ir_builder *b, const ops_reduce_layout *group,
                            const ops_layout *layout, const ops_layout_values *values,
                            ops_reduce_lane *lane);

/* Appends layout, group and axis to a key. */
void ops_fold_key(const ops_space *space, const ops_layout *layout, const ops_reduce_layout *group,
                  const ops_axis *axis, ops_cache_key *key);

/* Takes the axis out of the space. Strides other than 0 and 1 are scalars of the kernel. */
void ops_axis_take(ops_space *space, uint32_t axis, ops_axis *out);
int64_t ops_axis_reach(const ops_axis *axis, uint32_t view_count);
void ops_axis_put(const ops_axis *axis, const ops_layout *layout, ops_block *block);
void ops_axis_declare(hal_ir_builder *b, const ops_axis *axis, const ops_layout *layout,
                      hal_ir_value *strides);
hal_ir_value ops_axis_place(hal_ir_builder *b, const ops_axis *axis, const hal_ir_value *strides,
                            hal_type type, uint32_t view, hal_ir_value index, hal_ir_value k);

/* The neutral state, and the combination of two states. Kinds are those of ops_reduction and
 * OPS_FOLD_SOFTMAX. */
ops_state ops_fold_identity(hal_ir_builder *b, uint32_t kind, hal_type type);
ops_state ops_fold(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y);

/* The same where every element of y comes after those of x, and x is folded with the neutral state
 * in any case: fewer operations for ARGMAX and ARGMIN. */
ops_state ops_fold_next(hal_ir_builder *b, uint32_t kind, ops_state x, ops_state y);

/* Whether the result of a kind is an index. */
static inline bool ops_fold_finds_place(uint32_t kind)
{
    return kind == OPS_REDUCE_ARGMAX || kind == OPS_REDUCE_ARGMIN;
}

/* Whether states of a kind have a `place`, and its type. */
static inline bool ops_fold_has_place(uint32_t kind)
{
    return ops_fold_finds_place(kind) || kind == OPS_FOLD_SOFTMAX;
}
static inline hal_type ops_fold_place_type(uint32_t kind, hal_type type)
{
    return ops_fold_finds_place(kind) ? (hal_type)HAL_TYPE_U32 : type;
}

/* The value to subtract before exp: the greatest, or 0 where all are -infinity. */
hal_ir_value ops_fold_reference(hal_ir_builder *b, hal_ir_value greatest);

/* Combines the states of the work-items of one output; each of them receives the result. `shared`
 * comes from ops_fold_shared; a barrier has to precede its next use. */
typedef struct ops_fold_memory {
    hal_ir_memory_id values, places;
} ops_fold_memory;
ops_fold_memory ops_fold_shared(hal_ir_builder *b, const ops_reduce_layout *group, uint32_t kind,
                                hal_type type);
ops_state ops_fold_group(hal_ir_builder *b, const ops_reduce_layout *group,
                         const ops_reduce_lane *lane, uint32_t kind, ops_state state,
                         ops_fold_memory shared);

#endif

/* Folding values inside a kernel: how the work-items of a group share outputs and axis, how two
 * values combine, and how a group combines its partial results. Shared by reduce.c and softmax.c.
 *
 * A group has `outputs` x `along` work-items: work-item (p, q) takes the elements q, q + along, ...
 * of the axis for output p. */
#ifndef OPS_SRC_KERNELS_FOLD_H
#define OPS_SRC_KERNELS_FOLD_H

#include "tensor/indexing.h"

#include <ops/reduce.h>

OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_reduce_layout {
    uint32_t outputs, along;   /* the latter a power of two */
    uint32_t subgroup;         /* lanes that combine by shuffles; 0: through shared memory only */
    uint8_t axis_first;        /* dimension 0 of the group runs along the axis */
    uint8_t rows;              /* the innermost output dimension has the grid's x for itself */
    uint16_t grid_may_overrun; /* with `rows`: y and z of the grid count the other dimensions */
} ops_reduce_layout;
OPS_KEY_STRUCTURES_END

/* The axis that is reduced, in every view. */
typedef struct ops_axis {
    int64_t length;
    int64_t stride[OPS_MAX_VIEWS];
    uint8_t step[OPS_MAX_VIEWS]; /* OPS_INNER_* */
} ops_axis;

/* An intermediate value of a fold; `place` (U32), its index on the axis, is for ARGMAX only. */
typedef struct ops_state {
    hal_ir_value value, place;
} ops_state;

/* A work-item of the group. */
typedef struct ops_reduce_lane {
    hal_ir_value p, q;                 /* U32 */
    hal_ir_value item;                 /* U32, its number in the group */
    hal_ir_value inside;               /* BOOL: there is an output p */
    hal_ir_value index[OPS_MAX_VIEWS]; /* of the output's first element on the axis */
} ops_reduce_lane;

/* Chooses the group for a collapsed space of outputs; `lead` is the view that is read most. */
void ops_reduce_layout_choose(const ops_context *context, const ops_space *space,
                              const ops_axis *axis, uint32_t lead, ops_reduce_layout *group);

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

/* The neutral state, and the combination of two states; x precedes y on the axis. */
ops_state ops_fold_identity(hal_ir_builder *b, ops_reduction kind, hal_type type);
ops_state ops_fold(hal_ir_builder *b, ops_reduction kind, ops_state x, ops_state y);

/* Combines the states of the work-items of one output; each of them receives the result. `shared`
 * comes from ops_fold_shared; a barrier has to precede its next use. */
typedef struct ops_fold_memory {
    hal_ir_memory_id values, places;
} ops_fold_memory;
ops_fold_memory ops_fold_shared(hal_ir_builder *b, const ops_reduce_layout *group,
                                ops_reduction kind, hal_type type);
ops_state ops_fold_group(hal_ir_builder *b, const ops_reduce_layout *group,
                         const ops_reduce_lane *lane, ops_reduction kind, ops_state state,
                         ops_fold_memory shared);

#endif

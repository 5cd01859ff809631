/* Folding many values into one inside a kernel: how the work-items of a group share outputs and
 * axis, how values combine, and how a group's partial results become one. Shared by reduce.c and
 * softmax.c.
 *
 * A group is a team of `outputs` x `along` work-items: work-item (p, q) takes part in output p with
 * the elements q, q + along, ... of the axis. */
#ifndef OPS_SRC_KERNELS_FOLD_H
#define OPS_SRC_KERNELS_FOLD_H

#include "tensor/indexing.h"

#include <ops/reduce.h>

typedef struct ops_reduce_layout {
    uint32_t outputs, along; /* the latter a power of two */
    uint32_t subgroup;       /* lanes that combine by shuffles; 0: all through shared memory */
    uint8_t axis_first;      /* dimension 0 of the group runs along the axis */
    uint8_t rows; /* the innermost dimension of the outputs has the grid's x for itself */
    uint8_t grid_may_overrun; /* rows: y and z of the grid count the others */
} ops_reduce_layout;

/* The axis as the views step along it. */
typedef struct ops_axis {
    int64_t length;
    int64_t stride[OPS_MAX_VIEWS];
    uint8_t step[OPS_MAX_VIEWS]; /* OPS_INNER_* */
} ops_axis;

/* A value on its way through a fold; `place` (U32) goes with ARGMAX only. */
typedef struct ops_state {
    hal_ir_value value, place;
} ops_state;

/* The work-item's part in the team. */
typedef struct ops_reduce_lane {
    hal_ir_value p, q;                 /* U32 */
    hal_ir_value item;                 /* U32, its number in the group */
    hal_ir_value inside;               /* BOOL: output p is one */
    hal_ir_value index[OPS_MAX_VIEWS]; /* of the output's first element on the axis */
} ops_reduce_lane;

/* Chooses a team for a collapsed space of outputs; `lead` is the view that is read most. */
void ops_reduce_layout_choose(const ops_context *context, const ops_space *space,
                              const ops_axis *axis, uint32_t lead, ops_reduce_layout *team);

/* Groups that cover the outputs, in x and y of the grid; z is free for slices where
 * team->grid_may_overrun is not set. */
hal_status ops_reduce_layout_grid(const ops_context *context, const char *function,
                                  const ops_space *space, ops_reduce_layout *team,
                                  uint32_t grid[3]);
void ops_reduce_layout_key(const ops_reduce_layout *team, ops_cache_key *signature);
void ops_reduce_layout_declare(hal_ir_builder *b, const ops_reduce_layout *team);
void ops_reduce_layout_emit(hal_ir_builder *b, const ops_reduce_layout *team,
                            const ops_layout *layout, const ops_layout_values *values,
                            ops_reduce_lane *member);

/* Strides along the axis: their kinds in the signature, the others as scalars. */
void ops_axis_take(ops_space *space, uint32_t axis, ops_axis *out);
int64_t ops_axis_reach(const ops_axis *axis, uint32_t view_count);
void ops_axis_key(const ops_axis *axis, uint32_t view_count, ops_cache_key *signature);
void ops_axis_put(const ops_axis *axis, const ops_layout *layout, ops_block *block);
void ops_axis_declare(hal_ir_builder *b, const ops_axis *axis, const ops_layout *layout,
                      hal_ir_value *strides);
hal_ir_value ops_axis_place(hal_ir_builder *b, const ops_axis *axis, const hal_ir_value *strides,
                            hal_type type, uint32_t view, hal_ir_value index, hal_ir_value k);

/* What folding begins with, and combining two states; the first one stands before the second. */
ops_state ops_fold_identity(hal_ir_builder *b, ops_reduction kind, hal_type type);
ops_state ops_fold(hal_ir_builder *b, ops_reduction kind, ops_state x, ops_state y);

/* Combines the states of the team's members of one output. Every member gets the result. `shared`
 * comes from ops_fold_shared; the group must not use it again before a barrier. */
typedef struct ops_fold_memory {
    hal_ir_memory_id values, places;
} ops_fold_memory;
ops_fold_memory ops_fold_shared(hal_ir_builder *b, const ops_reduce_layout *team,
                                ops_reduction kind, hal_type type);
ops_state ops_fold_group(hal_ir_builder *b, const ops_reduce_layout *team,
                         const ops_reduce_lane *member, ops_reduction kind, ops_state state,
                         ops_fold_memory shared);

#endif

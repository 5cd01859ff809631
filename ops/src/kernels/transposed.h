/* Elementwise kernels over tiles, for inputs that are contiguous along another dimension than the
 * outputs: which inputs and tiles, and the IR. */
#ifndef OPS_SRC_KERNELS_TRANSPOSED_H
#define OPS_SRC_KERNELS_TRANSPOSED_H

#include "elementwise_plan.h"

/* Bytes of the scalars that ops_transposed_put adds. */
enum { OPS_TRANSPOSED_SCALAR_BYTES = (2 * OPS_TILE_AXES + 1) * sizeof(uint64_t) };

/* Chooses the plan's `staged` views, and if there are any, `width` and all that concerns tiles.
 * Then the dimension along which these views are contiguous becomes the second innermost one, and
 * a third dimension of the tile the one before it. There are none where tiles gain nothing: for
 * small or contiguous dimensions, and where the sectors that direct reads touch without need cost
 * less than the way through shared memory. Processors stage nothing: they read tiles of that second
 * dimension by squares in registers. */
void ops_transposed_choose(const ops_context *context, const ops_elementwise_use *use,
                           ops_space *space, ops_elementwise_plan *plan);
uint64_t ops_transposed_groups(const ops_space *space, const uint32_t tile[OPS_TILE_AXES]);

/* The scalars after those of the layout. */
void ops_transposed_put(const ops_space *space, const ops_elementwise_plan *plan, ops_block *block);
void ops_transposed_declare(hal_ir_builder *b, const ops_elementwise_plan *plan,
                            ops_layout_values *values);

/* Emits the kernel. `iter` has layout, values and the indices of the space's first element. */
void ops_transposed_emit(hal_ir_builder *b, const ops_elementwise_plan *plan,
                         ops_element_iter *iter, const uint8_t *slots, const hal_type *types,
                         ops_elementwise_body body, const void *user);

#endif

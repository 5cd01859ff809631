/* Elementwise kernels of processors whose groups compute ranges of lines, by steps of some lines:
 * which lines and steps, and the IR. */
#ifndef OPS_SRC_KERNELS_RANGES_H
#define OPS_SRC_KERNELS_RANGES_H

#include "elementwise_plan.h"

/* Whether a kernel can compute ranges of lines, whatever their lengths. */
bool ops_ranges_are_possible(const ops_context *context, const ops_elementwise_use *use,
                             const ops_space *space);

/* Moves the dimension whose lines are the least work next to the innermost one; returns whether. */
bool ops_ranges_choose_lines(const ops_context *context, const ops_elementwise_use *use,
                             ops_space *space);

/* Groups that compute ranges of lines and, where these are long, of their elements. They are in
 * the order of memory, unless the outer dimensions are longer than the grid's z; `moved` lines are
 * further apart than the outer dimensions. False where other groups suit the space, or have to. */
bool ops_ranges_plan(const ops_context *context, const ops_elementwise_use *use,
                     const ops_space *space, bool moved, ops_elementwise_plan *plan);

/* Emits the kernel: `body` once in its loops. `iter` has layout, values and the indices of the
 * space's first element. */
void ops_ranges_emit(hal_ir_builder *b, const ops_elementwise_plan *plan, ops_element_iter *iter,
                     ops_elementwise_body body, const void *user);

#endif

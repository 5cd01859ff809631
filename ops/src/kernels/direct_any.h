/* General kernels of direct convolutions: what differs from the kernel of one shape. */
#ifndef OPS_SRC_KERNELS_DIRECT_ANY_H
#define OPS_SRC_KERNELS_DIRECT_ANY_H

#include "direct_emitter.h"

/* Makes the key general, and appends the scalars that follow then: `outputs` of a group. */
void ops_direct_generalise(ops_direct_key *key, uint32_t outputs, ops_block *block);

/* Declares these scalars. */
void ops_direct_any_declare(ops_direct_emitter *e);

/* The quotient by a number of the key; *x becomes the rest. */
hal_ir_value ops_direct_any_divide(ops_direct_emitter *e, uint32_t which, hal_ir_value *x);

/* Finds the results of the group's block, which is the `block`th, and what offsets all have. */
void ops_direct_any_place(ops_direct_emitter *e, hal_ir_value block);

/* Adds the window of one channel to the sums, which are variables. */
void ops_direct_any_window(ops_direct_emitter *e, const hal_ir_value *variables);

#endif

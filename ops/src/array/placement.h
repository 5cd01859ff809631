/* Placement: operands of a result that are computed straight into parts of its memory: those of a
 * concatenation, and what an update writes. A placed node is deferred and has the buffer, offset
 * and strides of its part. Products are not placed: another layout may choose another kernel, with
 * another order of additions. */
#ifndef OPS_SRC_ARRAY_PLACEMENT_H
#define OPS_SRC_ARRAY_PLACEMENT_H

#include "node.h"

/* How operands are computed: `root`, and others with it where they fit into its kernel. */
typedef struct ops_compute {
    hal_status (*node)(const struct ops_compute *compute, ops_array *root, ops_array *const *others,
                       uint32_t other_count);
    const void *user;
} ops_compute;

/* Whether any operand of a concatenation can be placed. */
bool ops_concatenation_may_place(const ops_array *root);

/* Computes a concatenation, operands of one shape by one kernel, in `kind` of memory. */
hal_status ops_concatenation_compute(ops_array *root, hal_memory_kind kind,
                                     const ops_compute *compute);

/* Computes an update: in the memory of operand 0 where nothing else can read that, else in a copy.
 */
hal_status ops_update_compute(ops_array *root, const ops_compute *compute);

#endif

/* Attention kernels: from a form to IR. A group computes a tile of rows of the result. Its loop
 * over tiles of columns keeps, for each row, the greatest score so far, and what has been added
 * relative to it (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018). */
#ifndef OPS_SRC_ATTENTION_KERNEL_H
#define OPS_SRC_ATTENTION_KERNEL_H

#include "form.h"

/* A tensor of the dispatch: element (outer, batch, row, column) is at base + .... */
typedef struct ops_attention_operand {
    int64_t base, strides[4];
} ops_attention_operand;

/* One dispatch. */
typedef struct ops_attention_work {
    ops_attention_form form;
    ops_attention_operand operands[OPS_ATTENTION_SIDES];
    uint32_t queries, keys, d, e; /* lengths */
    uint32_t batches, blocks;     /* matrices along the second axis; groups of a matrix */
    uint32_t heads,
        head_batches;           /* by keys: matrices of queries that share one of keys, and those of
                                   * them along the second axis; else 1 */
    double factor, mask_factor; /* of products and of the mask */
} ops_attention_work;

/* Bit for each side that a form has. */
uint32_t ops_attention_sides(const ops_attention_form *form);

/* Elements of shared memory that a form's kernel takes: of U32, or plain: of the accumulator. */
uint32_t ops_attention_shared(const ops_attention_form *form);

/* Emits the kernel; the bindings are declared already. */
void ops_attention_emit(hal_ir_builder *b, const ops_attention_form *form);

/* The scalars of a dispatch, in the order in which the kernel declares them. */
void ops_attention_put(const ops_attention_work *work, ops_block *block);

#endif

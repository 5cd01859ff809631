/* Blocks of rows of scores, which attention and its gradients compute one after the other in one
 * buffer, which on a processor stays in its cache. */
#ifndef OPS_SRC_ATTENTION_SCORE_BLOCKS_H
#define OPS_SRC_ATTENTION_SCORE_BLOCKS_H

#include "call.h"

typedef struct ops_attention_blocks {
    const ops_attention_call *call;
    ops_context *context;
    ops_tensor limits;            /* causal: the last column that each row has */
    int64_t batch, rows;          /* of a block */
    ops_expression *epilogue;     /* of the scores; null: none */
    hal_buffer *scores, *weights; /* of the sums' type and of the tensors' */
} ops_attention_blocks;

/* The place of a block: matrices of one outer index, rows of each, and the columns that one of
 * these rows has. */
typedef struct ops_attention_block {
    int64_t outer, batch, batch_count, row, row_count, columns;
} ops_attention_block;

/* For a call with elements in y. bytes: of scores at a time, about, unless the call says it.
 * has_both: scores and weights have memory each, which types that differ require; else they share
 * one buffer. The call outlives the blocks. */
hal_status ops_attention_blocks_make(const ops_attention_call *call, uint64_t bytes, bool has_both,
                                     ops_attention_blocks *blocks);
void ops_attention_blocks_release(ops_attention_blocks *blocks);

/* Calls a function for each block: of some matrices the last rows first, which have all columns. */
hal_status ops_attention_blocks_each(const ops_attention_blocks *blocks,
                                     hal_status (*each)(const ops_attention_block *at,
                                                        const void *user),
                                     const void *user);

/* Rows of a tensor of the call as a batch of matrices. An axis along which it is broadcast has
 * length 1. */
ops_tensor ops_attention_block_matrices(const ops_tensor *x, const ops_attention_block *at,
                                        int64_t first_row, int64_t rows);

/* The scores or the weights of a block in `buffer`. */
ops_tensor ops_attention_block_of(const ops_attention_block *at, hal_type type, hal_buffer *buffer);

/* Records scores with scale, mask and limits. */
hal_status ops_attention_block_score(const ops_attention_blocks *blocks,
                                     const ops_attention_block *at, const ops_tensor *scores);

#endif

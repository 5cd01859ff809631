/* Attention by expressions: softmax(q k^T s + mask) v as three calls becomes one node. */
#ifndef OPS_SRC_ARRAY_ATTENTION_MATCH_H
#define OPS_SRC_ARRAY_ATTENTION_MATCH_H

#include "node.h"

#include <ops/attention.h>

/* `function` of ATTENTION. `transposed`: operand 1 is k^T. */
uint32_t ops_attention_function(bool causal, uint32_t precision, bool transposed);

/* Makes a deferred product, whose first operand is a softmax that nothing else reads, a node of
 * ATTENTION, if the scores are those of attention. Returns whether it did. Its operands are the
 * tensors of the call ops_array_scaled_attention, so that it has the bits of that call. */
bool ops_attention_match(ops_array *matmul);

/* The options of a node of ATTENTION, without mask; *transposed: as above. */
ops_attention_options ops_attention_options_of(const ops_array *node, bool *transposed);

#endif

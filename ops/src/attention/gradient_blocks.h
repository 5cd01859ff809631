/* The gradients of attention by blocks of rows: scores, weights and their changes are stored for
 * some rows at a time, and all sums are products. */
#ifndef OPS_SRC_ATTENTION_GRADIENT_BLOCKS_H
#define OPS_SRC_ATTENTION_GRADIENT_BLOCKS_H

#include "call.h"

/* Records a call with elements in y and in k, whose delta is computed. */
hal_status ops_attention_gradient_blocks_record(const ops_attention_call *call);

#endif

/* Attention by blocks of rows: products that store scores, their softmax, and products with v. */
#ifndef OPS_SRC_ATTENTION_BLOCKS_H
#define OPS_SRC_ATTENTION_BLOCKS_H

#include "call.h"

/* Records a call with elements in y and in k. */
hal_status ops_attention_blocks_record(const ops_attention_call *call);

#endif

/* A checked call of attention, which the forms compute. */
#ifndef OPS_SRC_ATTENTION_CALL_H
#define OPS_SRC_ATTENTION_CALL_H

#include "tensor/context.h"

#include <ops/attention.h>

/* The axes of all tensors. */
enum {
    OPS_ATTENTION_OUTER,
    OPS_ATTENTION_BATCH,
    OPS_ATTENTION_ROW,
    OPS_ATTENTION_COLUMN,
    OPS_ATTENTION_RANK
};

typedef struct ops_attention_call {
    const char *function;
    ops_context *context;
    ops_attention_options options; /* the scale is not 0 */
    hal_type type, accumulator;
    ops_tensor q, k, v, y, mask; /* with all axes; mask: broadcast to the scores */
    ops_tensor dy, dq, dk, dv;   /* of the gradients */
    ops_tensor norm, delta;      /* [outer, batch, m, 1], see form.h */
    int64_t rows, columns;       /* m, n */
} ops_attention_call;

#endif

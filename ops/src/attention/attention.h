/* The result of attention, for the array layer, which knows shapes before memory. */
#ifndef OPS_SRC_ATTENTION_ATTENTION_H
#define OPS_SRC_ATTENTION_ATTENTION_H

#include <ops/attention.h>

/* Checks types and shapes of ops_attention, of which the mask may be null, and describes the
 * result without memory. `function` names the call in messages. */
hal_status ops_attention_describe(const char *function, const ops_tensor *q, const ops_tensor *k,
                                  const ops_tensor *v, const ops_tensor *mask, ops_tensor *y);

#endif

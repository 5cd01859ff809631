/* The checks of attention: for its calls, and for the array layer, which knows shapes before
 * memory. */
#ifndef OPS_SRC_ATTENTION_ATTENTION_H
#define OPS_SRC_ATTENTION_ATTENTION_H

#include "call.h"

/* Checks types and shapes of ops_attention, of which the mask may be null, and describes the
 * result without memory. `function` names the call in messages. */
hal_status ops_attention_describe(const char *function, const ops_tensor *q, const ops_tensor *k,
                                  const ops_tensor *v, const ops_tensor *mask, ops_tensor *y);

/* The tensor with leading axes of length 1. */
ops_tensor ops_attention_all_axes(const ops_tensor *tensor);

/* Checks options, q, k, v and the mask for a call whose context and function are set, and sets all
 * but its results. *y: the result without memory. */
hal_status ops_attention_check_inputs(ops_attention_call *call,
                                      const ops_attention_options *options,
                                      const ops_tensor *const inputs[3], ops_tensor *y);

/* Checks a result: the type and shape of `like`, and memory that no input uses; null ones are
 * none. */
hal_status ops_attention_check_output(const ops_attention_call *call, const char *name,
                                      const ops_tensor *output, const ops_tensor *like,
                                      const ops_tensor *const *inputs, uint32_t count);

#endif

/* Attention by the plugin's own kernel. */
#ifndef OPS_SRC_ATTENTION_NATIVE_H
#define OPS_SRC_ATTENTION_NATIVE_H

#include "call.h"

/* Whether the plugin is asked for a kernel of a call: of f16 and bf16 on devices with matrix units,
 * outside of the class strict, without a mask tensor. The plugin declines where portable kernels
 * take less time. */
bool ops_attention_native_fits(const ops_attention_call *call);

/* Records the plugin's kernel, with copies of tensors whose rows do not begin at multiples of 16
 * bytes. Errors: UNSUPPORTED, perhaps without a message, where the plugin has none; nothing is
 * recorded then. */
hal_status ops_attention_native_record(const ops_attention_call *call);

#endif

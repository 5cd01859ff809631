/* Attention by one kernel that keeps scores on the chip: which form of it a call has, and its
 * recording. */
#ifndef OPS_SRC_ATTENTION_FUSED_H
#define OPS_SRC_ATTENTION_FUSED_H

#include "call.h"
#include "kernel.h"

/* Elements of a head at most. */
#define OPS_ATTENTION_MAX_HEAD 256

/* Plans the kernel of a call. False where no kernel computes it: heads above 256, strides between
 * the elements of a head, a scale that is not positive, or a device without room for tiles. */
bool ops_attention_fused_plan(const ops_attention_call *call, ops_attention_work *work);

/* The same for the kernels of the gradients, in their order; their number, or 0. */
#define OPS_ATTENTION_GRADIENT_KERNELS 3u
uint32_t ops_attention_gradients_plan(const ops_attention_call *call,
                                      ops_attention_work works[OPS_ATTENTION_GRADIENT_KERNELS]);

/* Whether a planned kernel takes less time than blocks of rows, about. */
bool ops_attention_fused_is_faster(const ops_attention_call *call, const ops_attention_work *work);

/* Records a plan. */
hal_status ops_attention_fused_record(const ops_attention_call *call, ops_attention_work *work);

#endif

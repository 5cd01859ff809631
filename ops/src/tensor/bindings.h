/* The bindings of a dispatch: how tensors become ranges of buffers. */
#ifndef OPS_SRC_TENSOR_BINDINGS_H
#define OPS_SRC_TENSOR_BINDINGS_H

#include "kernel_cache.h"

/* Tensors of which one is written, and whose aligned ranges of one buffer meet, share a binding. */
typedef struct ops_bindings {
    uint32_t count;
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    uint8_t access[HAL_IR_MAX_BINDINGS];
    hal_type types[HAL_IR_MAX_BINDINGS];
} ops_bindings;

/* Finds or adds the binding of a tensor and returns its number; HAL_IR_MAX_BINDINGS when there is
 * no room. A tensor without elements gets no buffer. */
uint32_t ops_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *tensor,
                  uint32_t access);

/* The place of element (0, 0, ...) of a tensor in its binding, in elements; call it when all
 * tensors are bound. */
int64_t ops_base(const ops_bindings *bindings, uint32_t slot, const ops_tensor *tensor);

/* Declares the bindings in a kernel: memory i is binding i. */
void ops_declare_bindings(hal_ir_builder *builder, const ops_bindings *bindings);

/* Appends the bindings of `count` views to a key: their numbers, types and accesses. */
void ops_bindings_key(const ops_bindings *bindings, const uint8_t *slots, uint32_t count,
                      ops_cache_key *key);

#endif

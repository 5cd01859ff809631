/* The bindings of a dispatch: how tensors become ranges of buffers. */
#ifndef OPS_SRC_TENSOR_BINDINGS_H
#define OPS_SRC_TENSOR_BINDINGS_H

#include "kernel_table.h"

#include <ops/tensor.h>

/* Tensors share a binding where their aligned ranges of one buffer overlap and one is written. */
typedef struct ops_bindings {
    uint32_t count;
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    uint8_t access[HAL_IR_MAX_BINDINGS];
    hal_type types[HAL_IR_MAX_BINDINGS];
} ops_bindings;

/* Returns the number of a tensor's binding, which is added if necessary; HAL_IR_MAX_BINDINGS when
 * all are taken. A tensor without elements has a null buffer. */
uint32_t ops_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *tensor,
                  uint32_t access);

/* Merges bindings that overlap because one of them has grown, and renumbers the slots of `count`
 * views. To be called when all tensors are bound. */
void ops_bindings_merge(ops_bindings *bindings, uint8_t *slots, uint32_t count);

/* The index of element (0, 0, ...) of a tensor in its binding. Valid when all tensors are bound,
 * since a binding grows. */
int64_t ops_base(const ops_bindings *bindings, uint32_t slot, const ops_tensor *tensor);

/* Declares the bindings in a kernel: memory i is binding i. */
void ops_declare_bindings(hal_ir_builder *builder, const ops_bindings *bindings);

/* Appends the bindings, and the number of that of each of `count` views, to a key. */
void ops_bindings_key(const ops_bindings *bindings, const uint8_t *slots, uint32_t count,
                      ops_cache_key *key);

#endif

/* Matrices of F64 in kernels of the class EXACT: bound as words, addressed by matrix of the batch,
 * line and step. */
#ifndef OPS_SRC_GEMM_EXACT_OPERAND_H
#define OPS_SRC_GEMM_EXACT_OPERAND_H

#include "words.h"

#include "tensor/bindings.h"
#include "tensor/context.h"

/* A tensor [batch, lines, steps] as words, and the number of its binding. */
typedef struct ops_exact_operand {
    ops_tensor words;
    uint8_t slot;
} ops_exact_operand;

/* The scalars of an operand in a kernel, in words. */
typedef struct ops_exact_place {
    hal_ir_memory_id memory;
    hal_type type; /* of indices: U32 or U64 */
    hal_ir_value base, batch, line, step;
} ops_exact_place;

/* Binds a tensor of F64 of rank 3. */
void ops_exact_operand_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *x,
                            uint32_t access, ops_exact_operand *operand);

/* Whether indices of a binding need 64 bits. */
bool ops_exact_needs_index64(const ops_bindings *bindings);

/* Appends the scalars of an operand, and declares them, with a number for their names. */
void ops_exact_operand_put(const ops_bindings *bindings, const ops_exact_operand *operand,
                           bool index64, ops_block *block);
ops_exact_place ops_exact_operand_declare(hal_ir_builder *b, const ops_exact_operand *operand,
                                          bool index64, uint32_t number);

/* The index of step 0 of a line; that of a step, which is a U32. */
hal_ir_value ops_exact_line_index(hal_ir_builder *b, const ops_exact_place *place,
                                  hal_ir_value batch, hal_ir_value line);
hal_ir_value ops_exact_step_index(hal_ir_builder *b, const ops_exact_place *place,
                                  hal_ir_value line_index, hal_ir_value step);

/* The number at an index; 0 where the guard is false. */
ops_f64_words ops_exact_load(hal_ir_builder *b, const ops_exact_place *place, hal_ir_value index,
                             hal_ir_value guard);
void ops_exact_store(hal_ir_builder *b, const ops_exact_place *place, hal_ir_value index,
                     ops_f64_words x);

#endif

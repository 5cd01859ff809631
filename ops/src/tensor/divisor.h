/* Divisors that are scalars of a dispatch. */
#ifndef OPS_SRC_TENSOR_DIVISOR_H
#define OPS_SRC_TENSOR_DIVISOR_H

#include "scalars.h"

#include <hal/ir_build.h>

typedef struct ops_divisor {
    hal_ir_value magic, shift; /* U32 */
} ops_divisor;

/* Appends the two scalars of a divisor, from 1 on; declares them, with a number that makes their
 * names unique. */
void ops_divisor_put(uint32_t divisor, ops_block *block);
ops_divisor ops_divisor_declare(hal_ir_builder *builder, uint32_t number);

/* The quotient of a U32 below 2^31. */
hal_ir_value ops_divisor_quotient(hal_ir_builder *builder, const ops_divisor *divisor,
                                  hal_ir_value x);

#endif

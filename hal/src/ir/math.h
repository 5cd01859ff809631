/* The expansion of the transcendental functions, for the legaliser. */
#ifndef HAL_SRC_IR_MATH_H
#define HAL_SRC_IR_MATH_H

#include <hal/ir_build.h>

/* Emits the operations of a transcendental opcode on x (and y, for POW) of type F32 or F64, and
 * gives the result. In a kernel the rare inputs take a branch; in a fragment, which has none, both
 * paths are computed and one is selected. Errors: sticky. */
hal_ir_value hal_ir_expand_math(hal_ir_builder *builder, uint32_t opcode, hal_type type,
                                hal_ir_value x, hal_ir_value y);

#endif

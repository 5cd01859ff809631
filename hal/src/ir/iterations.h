/* Loop iterations of a dispatch, for devices that limit them. */
#ifndef HAL_SRC_IR_ITERATIONS_H
#define HAL_SRC_IR_ITERATIONS_H

#include <hal/ir.h>
#include <stdbool.h>

/* Whether a bound of a loop is a scalar itself, so that iterations depend on the dispatch. */
bool hal_ir_has_scalar_loops(const hal_ir_kernel *kernel);

/* hal_ir_loop_iterations where bounds may also be scalars, in the dispatch's block. */
uint64_t hal_ir_scalar_iterations(const hal_ir_kernel *kernel, const void *scalars);

#endif

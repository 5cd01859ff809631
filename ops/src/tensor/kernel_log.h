/* Lines of the log (HAL_LOG=debug) about new kernels: they tell which of the things that are
 * compiled in two kernels differ. docs/kernel-classes.md explains them. */
#ifndef OPS_SRC_TENSOR_KERNEL_LOG_H
#define OPS_SRC_TENSOR_KERNEL_LOG_H

#include <hal/hal.h>
#include <stdbool.h>

/* Writes the line of a kernel that a context makes for the first time. */
void ops_kernel_log(const hal_ir_kernel *ir, bool is_recalled);

#endif

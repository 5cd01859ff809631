/* Checks of the description of a matrix product. */
#ifndef HAL_SRC_CORE_GEMM_CHECK_H
#define HAL_SRC_CORE_GEMM_CHECK_H

#include <hal/plugin.h>

/* Copies a program's description, whose size may be that of another minor version, and checks it.
 * Errors: INVALID_ARGUMENT, INVALID_IR for the epilogue. */
hal_status hal_gemm_check(const hal_gemm_description *given, hal_gemm_description *checked);

#endif

/* Whether a compiler computes rightly with constants: each opcode of arithmetic with each special
 * value on each side. */
#ifndef HAL_TOOLS_PROBE_CONSTANTS_H
#define HAL_TOOLS_PROBE_CONSTANTS_H

#include "probe_kernel.h"

hal_status probe_constants_f32(probe *p);
hal_status probe_constants_f64(probe *p);
/* Signed and unsigned ones. Of 64 bits also those that the kernel widens from 32. */
hal_status probe_constants_i32(probe *p);
hal_status probe_constants_i64(probe *p);

#endif

/* The legaliser: rewrites kernels and fragments to the features of a device, so that plugins need
 * not. Called when a kernel is created. */
#ifndef HAL_SRC_IR_LEGALISE_H
#define HAL_SRC_IR_LEGALISE_H

#include <hal/ir.h>
#include <hal/plugin.h>

/* Makes an equivalent kernel that uses only features of `info`:
 *  - transcendental functions are expanded (ir_math.h) unless the device claims them, or f32 has
 *    HAL_IR_FAST and the device HAL_FEATURE_FAST_MATH; otherwise the flag is dropped;
 *  - asynchronous copies become a load and a store if the device has none;
 *  - subgroup operations use shared memory, with HAL_IR_EMULATED_SUBGROUP lanes, if the device has
 *    no subgroups;
 *  - loads, stores and copies wider than max_vector_bytes are split;
 *  - memory of f16 and bf16 becomes u16, memory of bool u8, if it is no storage type of the device;
 *    NARROW to such a type is computed;
 *  - fma of f32 is computed in f64, rounded to odd and then to f32, if the device does not fuse it;
 *  - constants of info->wrong_constants, and integers that are widened to such a type, are hidden
 *    from the device's compiler;
 *  - unused operations without effects are dropped.
 * `ir` has been verified.
 * Errors: UNSUPPORTED if the device lacks a feature without a replacement (types, limits, fma of
 * f64, atomics of 64 bits); OUT_OF_MEMORY. */
hal_status hal_ir_legalise(const hal_ir_kernel *ir, const hal_device_info *info,
                           hal_ir_kernel **legal);

#endif

/* The legaliser: rewrites a kernel or fragment into what a device takes, so that plugins stay
 * small. Called when a kernel is made. */
#ifndef HAL_SRC_IR_LEGALISE_H
#define HAL_SRC_IR_LEGALISE_H

#include <hal/ir.h>
#include <hal/plugin.h>

/* Makes a kernel that means the same and uses only what `info` offers, and only opcodes that minor
 * version `minor` of the plugin ABI has:
 *  - newer opcodes are expanded where they can be, and refused otherwise;
 *  - transcendental functions are expanded (ir_math.h) unless the device claims them, or
 *    HAL_IR_FAST of f32 meets a device with HAL_ABILITY_FAST_MATH; elsewhere the flag is dropped;
 *  - asynchronous copies become a load and a store where the device has none;
 *  - subgroup operations go through shared memory, HAL_IR_EMULATED_SUBGROUP lanes wide, where the
 *    device has no subgroups;
 *  - loads, stores and copies wider than max_vector_bytes are split;
 *  - memory of f16 and bf16 is read and written as u16, memory of bool as u8, where it cannot be
 *    storage; NARROW to a type that is no storage type is computed;
 *  - fma of f32 is computed in f64, rounded to odd and then once to f32, where it is not fused;
 *  - pure operations whose value nobody uses are dropped.
 * Errors: UNSUPPORTED when the kernel needs what the device or its plugin lacks (types, limits, fma
 * of f64, atomics of 64 bits, an opcode), in a sentence with both sides; OUT_OF_MEMORY. The input
 * must be verified. */
hal_status hal_ir_legalise(const hal_ir_kernel *ir, const hal_device_info *info, uint32_t minor,
                           hal_ir_kernel **legal);

#endif

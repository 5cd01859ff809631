/* Operations of the interpreter on single values, as zero-extended bits of 64. */
#ifndef PLUGINS_KIT_INTERPRET_VALUE_H
#define PLUGINS_KIT_INTERPRET_VALUE_H

#include <hal/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a pure operation (arithmetic to conversions, transcendental functions), operands of
 * type `from`; `record->type` is the result's. SELECT, PACK and EXTRACT are not among them. */
uint64_t kit_operate(const hal_ir_record *record, hal_type from, uint64_t a, uint64_t b,
                     uint64_t c);

/* An operation on two values of one type, by opcode: for atomics and reductions. */
uint64_t kit_combine(uint32_t opcode, hal_type type, uint64_t a, uint64_t b);

/* A value as memory of `type` holds it, and as it is loaded from there. */
uint64_t kit_to_storage(hal_type type, uint64_t value);
uint64_t kit_from_storage(hal_type type, uint64_t stored);

#ifdef __cplusplus
}
#endif

#endif

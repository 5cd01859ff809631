/* fixture.h: what the cases of the IR share: building, running and checking one small kernel, and
 * the reference for each opcode in plain C. */
#ifndef CONFORMANCE_IR_FIXTURE_H
#define CONFORMANCE_IR_FIXTURE_H

#include "case/case.h"
#include "math/number.h"
#include "math/random.h"
#include "case/redzone.h"
#include "case/reference.h"

/* Work-items of a group in cases that do not test group sizes. */
#define IR_GROUP 64u

/* Begins a kernel with groups of IR_GROUP work-items, fewer where the device has no more. */
hal_ir_builder *ir_begin(case_run *run, const char *name);
uint32_t ir_group_of(const case_run *run);

/* Dispatches over `groups` groups in x; zones are bound in order. */
void ir_dispatch(case_run *run, hal_kernel *kernel, uint32_t groups, const red_zone *zones,
                 uint32_t zone_count, const void *scalars, uint32_t scalar_bytes);

/* case_kernel and ir_dispatch. */
void ir_run(case_run *run, hal_ir_builder *builder, uint32_t groups, const red_zone *zones,
            uint32_t zone_count, const void *scalars, uint32_t scalar_bytes);

/* Reads a zone of `count` elements and compares it bit by bit; all NaN are equal. Reports the worst
 * element under the name `what`. */
void ir_check(case_run *run, const red_zone *zone, hal_type type, const void *expected,
              size_t count, const char *what);

/* Values at which an operation of a value type may go wrong; their number. */
size_t ir_corners(hal_type type, const uint64_t **bits);

/* A constant of a value type, by its bits. */
hal_ir_value ir_constant(hal_ir_builder *b, hal_type type, uint64_t bits);

/* The result of an opcode that cover_types_of knows, on operands of `type`, as ir.h defines it;
 * transcendental functions by ir_math_reference. */
uint64_t ir_evaluate(uint32_t opcode, hal_type type, const uint64_t operands[3]);
long double ir_math_reference(uint32_t opcode, long double x, long double y);

/* The bound of a transcendental function, in units in the last place. */
double ir_math_bound(uint32_t opcode);

/* The bits of a transcendental function on a device that claims to be exact in everything. */
uint64_t ir_math_bits(uint32_t opcode, hal_type type, uint64_t x, uint64_t y);

/* CAST from one value type to another. */
uint64_t ir_convert(hal_type from, hal_type to, uint64_t bits);

#endif

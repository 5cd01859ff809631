/* Sums of floats as sums of integers, which have the same bits in any order; and keys of numbers
 * whose order as U32 is that of the numbers. Emitted as IR for scatter_atomic.c.
 *
 * A set of numbers has the greatest of their exponents E, 1 to 254 as in the bits of F32; its
 * members are multiples of 2^(E - 188 + guard), to which they are rounded. So 2^guard members of
 * 62 - guard bits have a sum below 2^62. */
#ifndef OPS_SRC_KERNELS_FIXED_SUM_H
#define OPS_SRC_KERNELS_FIXED_SUM_H

#include <hal/hal.h>
#include <stdbool.h>

/* The class of an F32 is U32: 0 for -0, 1 for 0, E + 1 for others that are finite, and this for
 * infinities and NaN. That of a set is the greatest of its members'. */
#define OPS_FIXED_SPECIAL 256u

hal_ir_value ops_fixed_class(hal_ir_builder *b, hal_ir_value x);

/* x as a multiple of the unit of a set of a class from 2 on below SPECIAL that x belongs to: U64 in
 * two's complement. Anything for other classes. */
hal_ir_value ops_fixed_member(hal_ir_builder *b, hal_ir_value x, hal_ir_value set_class,
                              hal_ir_value guard);

/* The infinities and NaN of a set as bits of a U64, which are combined by OR; 0 for finite x. */
hal_ir_value ops_fixed_special(hal_ir_builder *b, hal_ir_value x);

/* The sum of a set of a class below SPECIAL, whose members have this sum: F32, rounded once to
 * nearest even; for narrow floats rounded so that a store rounds the sum itself. */
hal_ir_value ops_fixed_value(hal_ir_builder *b, hal_ir_value sum, hal_ir_value set_class,
                             hal_ir_value guard, bool is_narrow);

/* x plus the members of a set of class SPECIAL to which x belongs: `special` is of the others. */
hal_ir_value ops_fixed_special_value(hal_ir_builder *b, hal_ir_value x, hal_ir_value special);

/* A key of an F32, or of an I32 or U32 that a narrow integer is loaded as; NaN have the greatest
 * one. `is_descending` reverses the order, except for NaN. No key is 0xffffffff. */
hal_ir_value ops_order_key(hal_ir_builder *b, hal_ir_value x, bool is_descending);
hal_ir_value ops_order_value(hal_ir_builder *b, hal_type type, hal_ir_value key,
                             bool is_descending);

#endif

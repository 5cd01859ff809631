/* Rounding of numbers of the host to what memory of a type holds, to nearest whatever the thread's
 * rounding mode is. */
#ifndef OPS_SRC_TENSOR_ROUNDING_H
#define OPS_SRC_TENSOR_ROUNDING_H

#include <hal/hal.h>

/* `value` rounded to nearest even to what memory of `storage` holds: integers saturate, NaN is 0 in
 * them. */
double ops_round_to(hal_type storage, double value);

/* The same for an integer type. The upper limit of 64 bits is one too large. */
double ops_round_to_integer(hal_type type, double value);

/* x - y rounded to F64. */
double ops_subtract(double x, double y);

#endif

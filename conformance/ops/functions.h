/* functions.h: references and bounds of the op library's functions, for the cases of pointwise.c
 * and shapes.c. */
#ifndef CONFORMANCE_OPS_FUNCTIONS_H
#define CONFORMANCE_OPS_FUNCTIONS_H

#include "case/case.h"

/* f(x) and f(x, y) of float types; of the IS_ functions and comparisons 0 or 1. */
long double function_unary(ops_unary_function function, long double x);
long double function_binary(ops_binary_function function, hal_type type, long double x,
                            long double y);

/* The bound in units in the last place of `type`; 0.5 where the result is rounded once. */
double function_unary_bound(const case_run *run, ops_unary_function function, hal_type type);
double function_binary_bound(const case_run *run, ops_binary_function function, hal_type type);

/* f(x) and f(x, y) of integer types and BOOL, bits in memory to bits in memory. */
uint64_t function_unary_bits(ops_unary_function function, hal_type type, uint64_t x);
uint64_t function_binary_bits(ops_binary_function function, hal_type type, uint64_t x, uint64_t y);

/* Which types a function takes, as HAL_TYPE_BIT of storage types, and whether it gives BOOL. */
uint32_t function_unary_types(ops_unary_function function);
uint32_t function_binary_types(ops_binary_function function);
bool function_unary_gives_bool(ops_unary_function function);
bool function_binary_gives_bool(ops_binary_function function);

#endif

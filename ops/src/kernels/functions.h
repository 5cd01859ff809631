/* Expressions of functions of one and two values. */
#ifndef OPS_SRC_KERNELS_FUNCTIONS_H
#define OPS_SRC_KERNELS_FUNCTIONS_H

#include "tensor/context.h"
#include "tensor/expression.h"

/* Make the expressions that the functions below do not find. */
hal_status ops_unary_expression_make(ops_context *context, const char *caller,
                                     ops_unary_function function, hal_type type,
                                     ops_expression **expression);
hal_status ops_binary_expression_make(ops_context *context, const char *caller,
                                      ops_binary_function function, hal_type type,
                                      ops_expression **expression);

/* The expressions of functions, which the context caches. `caller`: the function named in messages;
 * `type`: of memory that the result is rounded to.
 * Errors: INVALID_ARGUMENT for an invalid function or one that does not take the type. */
static inline hal_status ops_unary_expression(ops_context *context, const char *caller,
                                              ops_unary_function function, hal_type type,
                                              ops_expression **expression)
{
    *expression = (uint32_t)function < OPS_UNARY_COUNT ? context->unary[function][type] : NULL;
    return *expression ? HAL_OK
                       : ops_unary_expression_make(context, caller, function, type, expression);
}

static inline hal_status ops_binary_expression(ops_context *context, const char *caller,
                                               ops_binary_function function, hal_type type,
                                               ops_expression **expression)
{
    *expression = (uint32_t)function < OPS_BINARY_COUNT ? context->binary[function][type] : NULL;
    return *expression ? HAL_OK
                       : ops_binary_expression_make(context, caller, function, type, expression);
}

#endif

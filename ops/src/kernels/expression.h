/* The inside of an expression, for the families that splice it. */
#ifndef OPS_SRC_KERNELS_EXPRESSION_H
#define OPS_SRC_KERNELS_EXPRESSION_H

#include <ops/pointwise.h>

struct ops_expression {
    hal_ir_kernel *fragment;
    uint64_t hash[2];
    uint32_t input_count, output_count;
    hal_type inputs[OPS_MAX_INPUTS];
    hal_type outputs[OPS_MAX_OUTPUTS];
};

/* Makes an expression of one function: `inputs` operands of `type`, and the function's value as the
 * only output. `build` gets the operands and gives that value. */
typedef hal_ir_value (*ops_expression_body)(hal_ir_builder *builder, const hal_ir_value *inputs,
                                            const void *user);
hal_status ops_expression_make(const char *name, const hal_type *inputs, uint32_t input_count,
                               ops_expression_body build, const void *user,
                               ops_expression **expression);

/* The expressions of functions, which a context keeps. `caller` is named in messages.
 * Errors: INVALID_ARGUMENT for a function that is none or does not take the type. */
hal_status ops_unary_expression(ops_context *context, const char *caller,
                                ops_unary_function function, hal_type type,
                                ops_expression **expression);
hal_status ops_binary_expression(ops_context *context, const char *caller,
                                 ops_binary_function function, hal_type type,
                                 ops_expression **expression);

#endif

/* The inside of an expression, for the families that splice it. */
#ifndef OPS_SRC_TENSOR_EXPRESSION_H
#define OPS_SRC_TENSOR_EXPRESSION_H

#include "shape.h"

#include <ops/pointwise.h>

struct ops_expression {
    hal_ir_kernel *fragment;
    uint64_t hash[2];
    uint64_t iterations; /* of loops, see hal_ir_loop_iterations */
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

/* Whether an expression uses one of its inputs `first` to `last`. */
bool ops_expression_reads(const ops_expression *expression, uint32_t first, uint32_t last);

#endif

/* Expressions: fragments of IR that are kernels or parts of kernels. */
#include "expression.h"

#include <stdlib.h>
#include <string.h>

/* Inputs have records even when they are not used. */
static void read_types(ops_expression *expression)
{
    const hal_ir_kernel *fragment = expression->fragment;
    expression->input_count = fragment->input_count;
    expression->output_count = fragment->output_count;
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        const hal_ir_record *record = &fragment->records[i];
        if (record->opcode == HAL_IR_INPUT && record->aux < OPS_MAX_INPUTS) {
            expression->inputs[record->aux] = record->type;
        } else if (record->opcode == HAL_IR_OUTPUT && record->aux < OPS_MAX_OUTPUTS) {
            expression->outputs[record->aux] = fragment->records[record->a].type;
        }
    }
}

hal_status ops_expression_create(hal_ir_builder *builder, ops_expression **expression)
{
    if (!builder || !expression) {
        hal_ir_builder_destroy(builder);
        return ops_invalid("ops_expression_create: %s: expected a pointer, got null",
                           builder ? "expression" : "builder");
    }
    hal_ir_kernel *fragment = NULL;
    hal_status status = hal_ir_builder_finish(builder, &fragment);
    hal_ir_builder_destroy(builder);
    if (status != HAL_OK) {
        return status;
    }
    ops_expression *made = NULL;
    if (!(fragment->flags & HAL_IR_FRAGMENT)) {
        status =
            ops_invalid("ops_expression_create: builder: expected that of a fragment, got that of "
                        "a kernel; use hal_ir_builder_create_fragment");
    } else if (fragment->input_count > OPS_MAX_INPUTS || fragment->output_count > OPS_MAX_OUTPUTS ||
               fragment->output_count == 0) {
        status = hal_status_set(HAL_ERROR_UNSUPPORTED,
                                "ops_expression_create: builder: expected at most %u inputs and 1 "
                                "to %u outputs, got %u and %u",
                                OPS_MAX_INPUTS, OPS_MAX_OUTPUTS, fragment->input_count,
                                fragment->output_count);
    } else if (!(made = calloc(1, sizeof *made))) {
        status = hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                                "ops_expression_create: the host has no %zu bytes", sizeof *made);
    }
    if (status != HAL_OK) {
        hal_ir_kernel_destroy(fragment);
        return status;
    }
    made->fragment = fragment;
    hal_ir_hash(fragment, made->hash);
    made->iterations = hal_ir_loop_iterations(fragment);
    read_types(made);
    *expression = made;
    return HAL_OK;
}

void ops_expression_destroy(ops_expression *expression)
{
    if (expression) {
        hal_ir_kernel_destroy(expression->fragment);
        free(expression);
    }
}

const hal_ir_kernel *ops_expression_get_fragment(const ops_expression *expression)
{
    return expression ? expression->fragment : NULL;
}

hal_status ops_expression_make(const char *name, const hal_type *inputs, uint32_t input_count,
                               ops_expression_body build, const void *user,
                               ops_expression **expression)
{
    hal_ir_builder *builder;
    HAL_TRY(hal_ir_builder_create_fragment(name, &builder));
    hal_ir_value values[OPS_MAX_INPUTS];
    for (uint32_t i = 0; i < input_count; i++) {
        values[i] = hal_ir_input(builder, i, inputs[i]);
    }
    hal_ir_output(builder, 0, build(builder, values, user));
    return ops_expression_create(builder, expression);
}

bool ops_expression_reads(const ops_expression *expression, uint32_t first, uint32_t last)
{
    const hal_ir_kernel *fragment = expression->fragment;
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        hal_ir_value operands[4];
        const uint32_t count = hal_ir_operands(&fragment->records[i], operands);
        for (uint32_t j = 0; j < count; j++) {
            const hal_ir_record *from = &fragment->records[operands[j]];
            if (from->opcode == HAL_IR_INPUT && from->aux >= first && from->aux <= last) {
                return true;
            }
        }
    }
    return false;
}

/* The gradients of attention of arrays, see ops/array.h: tensors of the operands, and
 * ops_attention_gradients. */
#include "array/deferred.h"

#include <ops/array.h>
#include <ops/attention.h>

enum { OPERANDS = 6, GRADIENTS = 3 };

/* As ops_check_operands, of which only the mask, the last one, may be missing. */
static hal_status check_operands(const char *function, ops_array *const operands[OPERANDS])
{
    const ops_arrays *arrays =
        ops_check_operands(function, operands, operands[OPERANDS - 1] ? OPERANDS : OPERANDS - 1);
    if (!arrays) {
        return HAL_ERROR_INVALID_ARGUMENT;
    }
    return arrays->is_recording
               ? hal_status_set(HAL_ERROR_INVALID_STATE,
                                "%s: expected a call outside of the recording of a graph, got one "
                                "inside; record ops_attention_gradients on tensors",
                                function)
               : HAL_OK;
}

/* Computes the operands q, k, v, y, dy and mask and records the gradients. */
static hal_status gradients_record(ops_context *context, ops_array *const operands[OPERANDS],
                                   ops_attention_options *options, const ops_tensor made[GRADIENTS])
{
    ops_tensor tensors[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (operands[i]) {
            HAL_TRY(ops_array_get_tensor(operands[i], &tensors[i]));
        }
    }
    const ops_tensor *const inputs[GRADIENTS] = {&tensors[0], &tensors[1], &tensors[2]};
    const ops_tensor *const gradients[GRADIENTS] = {&made[0], &made[1], &made[2]};
    options->mask = operands[5] ? &tensors[5] : NULL;
    return ops_attention_gradients(context, options, inputs, &tensors[3], &tensors[4], gradients);
}

hal_status ops_array_attention_gradients(ops_array *q, ops_array *k, ops_array *v, ops_array *mask,
                                         ops_array *y, ops_array *dy, int causal,
                                         uint32_t precision, double scale, ops_array *gradients[3])
{
    static const char function[] = "ops_array_attention_gradients";
    ops_array *const operands[OPERANDS] = {q, k, v, y, dy, mask};
    ops_tensor made[GRADIENTS] = {{0}, {0}, {0}};
    if (!gradients) {
        return ops_invalid("%s: gradients: expected memory for 3 arrays, got null", function);
    }
    gradients[0] = gradients[1] = gradients[2] = NULL;
    HAL_TRY(check_operands(function, operands));
    ops_context *context = q->owner->context;
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = causal;
    options.precision = precision;
    options.scale = scale;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < GRADIENTS && status == HAL_OK; i++) {
        const ops_tensor *like = &operands[i]->view;
        status = ops_tensor_create(context, like->type, like->rank, like->shape, &made[i]);
    }
    if (status == HAL_OK) {
        status = gradients_record(context, operands, &options, made);
    }
    for (uint32_t i = 0; i < GRADIENTS; i++) {
        gradients[i] = status == HAL_OK ? ops_array_from_tensor(context, &made[i]) : NULL;
        status = status == HAL_OK && !gradients[i] ? HAL_ERROR_OUT_OF_MEMORY : status;
        ops_tensor_release(&made[i]);
    }
    for (uint32_t i = 0; i < GRADIENTS && status != HAL_OK; i++) {
        ops_array_release(gradients[i]);
        gradients[i] = NULL;
    }
    return status;
}

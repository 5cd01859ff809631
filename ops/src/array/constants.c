/* Constants, see constants.h. */
#include "constants.h"

#include "tensor/rounding.h"

#include <ops/index.h>

#include <string.h>

hal_status ops_constants_get(ops_constants *constants, ops_context *context, hal_type type,
                             double *value, bool keep, hal_buffer **buffer, uint64_t *batch)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    /* Numbers of few digits differ in their highest bits alone: those of the product decide. */
    const uint64_t hash = (bits + type) * UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t at = (uint32_t)(hash >> (64 - OPS_CONSTANT_BITS));
    /* Compared by bits: -0 and 0 differ, and NaN equals itself. */
    if (constants->entries[at].buffer && constants->entries[at].type == type &&
        memcmp(&constants->entries[at].value, value, sizeof *value) == 0) {
        *buffer = hal_buffer_retain(constants->entries[at].buffer);
        *value = constants->entries[at].rounded;
        *batch = constants->entries[at].batch;
        return HAL_OK;
    }
    const double rounded = ops_round_to(type, *value);
    ops_tensor one;
    HAL_TRY(ops_tensor_create(context, type, 0, NULL, &one));
    hal_status status = ops_fill(context, *value, &one);
    if (status != HAL_OK) {
        ops_tensor_release(&one);
        return status;
    }
    *buffer = one.buffer;
    *batch = hal_queue_get_batch(context->queue);
    if (keep) {
        constants->entries[at].batch = *batch;
        hal_buffer_release(constants->entries[at].buffer);
        constants->entries[at].buffer = hal_buffer_retain(one.buffer);
        constants->entries[at].type = type;
        constants->entries[at].value = *value;
        constants->entries[at].rounded = rounded;
    }
    *value = rounded;
    return HAL_OK;
}

hal_status ops_constants_get_sequence(ops_constants *constants, ops_context *context, hal_type type,
                                      int64_t count, double start, double step, ops_tensor *tensor,
                                      uint64_t *batch)
{
    for (uint32_t i = 0; i < OPS_CONSTANT_SEQUENCES; i++) {
        const ops_tensor *kept = &constants->sequences[i].tensor;
        if (kept->buffer && kept->type == type && kept->shape[0] == count &&
            memcmp(&constants->sequences[i].start, &start, sizeof start) == 0 &&
            memcmp(&constants->sequences[i].step, &step, sizeof step) == 0) {
            *tensor = *kept;
            *batch = constants->sequences[i].batch;
            hal_buffer_retain(kept->buffer);
            return HAL_OK;
        }
    }
    HAL_TRY(ops_tensor_create(context, type, 1, &count, tensor));
    hal_status status = ops_iota(context, start, step, tensor);
    if (status != HAL_OK) {
        ops_tensor_release(tensor);
        return status;
    }
    *batch = hal_queue_get_batch(context->queue);
    const uint32_t at = constants->next_sequence++ % OPS_CONSTANT_SEQUENCES;
    hal_buffer_release(constants->sequences[at].tensor.buffer);
    constants->sequences[at].tensor = *tensor;
    constants->sequences[at].start = start;
    constants->sequences[at].step = step;
    constants->sequences[at].batch = *batch;
    hal_buffer_retain(tensor->buffer);
    return HAL_OK;
}

void ops_constants_clear(ops_constants *constants)
{
    for (uint32_t i = 0; i < OPS_CONSTANT_SEQUENCES; i++) {
        hal_buffer_release(constants->sequences[i].tensor.buffer);
        constants->sequences[i].tensor.buffer = NULL;
    }
    for (uint32_t i = 0; i < OPS_CONSTANT_ENTRIES; i++) {
        hal_buffer_release(constants->entries[i].buffer);
        constants->entries[i].buffer = NULL;
    }
}

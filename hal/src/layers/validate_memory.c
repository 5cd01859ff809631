/* Checks the objects of a dispatch, and the sizes of the bindings of a plugin's own product or
 * attention. */
#include "validate_state.h"

#include "core/buffer.h"
#include "core/kernel.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes up to the last element of the last matrix; negative strides count as 0. */
static uint64_t matrix_extent(int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                              uint32_t batch, hal_type type)
{
    if (rows <= 0 || columns <= 0) {
        return 0;
    }
    const uint64_t down = ld > 0 ? (uint64_t)(rows - 1) * (uint64_t)ld : 0;
    const uint64_t on = stride > 0 ? (uint64_t)(batch - 1) * (uint64_t)stride : 0;
    return (down + on + (uint64_t)columns) * hal_type_size(type);
}

/* Needs the lock. */
static hal_status check_sizes(const hal_object *object, const hal_kernel *kernel,
                              const hal_range *bindings, uint32_t binding_count)
{
    for (uint32_t i = 0; i < binding_count; i++) {
        const hal_range *range = &bindings[i];
        const uint64_t size = range->buffer ? range->buffer->bytes : 0;
        const uint64_t rest = range->offset < size ? size - range->offset : 0;
        const uint64_t length = range->length == HAL_WHOLE ? rest : range->length;
        const hal_object *buffer = hal_validate_find(HAL_OBJECT_BUFFER, range->buffer);
        if (length < object->known.sizes->bytes[i]) {
            char words[HAL_OBJECT_TEXT], place[2 * HAL_OBJECT_TEXT];
            snprintf(place, sizeof place, "hal_queue_dispatch: %s, binding %u (\"%s\"), %s",
                     strcmp(kernel->names, "gemm") == 0 ? "matrix product" : kernel->names, i,
                     hal_kernel_binding_name(kernel, i),
                     buffer ? hal_validate_words(buffer, words) : "no buffer");
            return hal_validate_found(
                HAL_ERROR_INVALID_ARGUMENT, place,
                "expected at least the %llu bytes of the description, got %llu",
                (unsigned long long)object->known.sizes->bytes[i], (unsigned long long)length);
        }
    }
    return HAL_OK;
}

/* Takes the facts. */
static void keep_sizes(const hal_kernel *kernel, hal_sizes_facts *facts)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_KERNEL, kernel);
    if (object && !object->known.sizes) {
        object->known.sizes = facts;
        facts = NULL;
    }
    pthread_mutex_unlock(&hal_validate_lock);
    free(facts);
}

void hal_validate_gemm_created(const hal_kernel *kernel, const hal_gemm_description *gemm,
                               uint64_t workspace_bytes)
{
    hal_sizes_facts *facts = calloc(1, sizeof *facts);
    if (!facts) {
        return;
    }
    const int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    facts->count = 4 + gemm->input_count;
    facts->bytes[0] = matrix_extent(gemm->transpose_a ? k : m, gemm->transpose_a ? m : k, gemm->lda,
                                    gemm->stride_a, gemm->batch, gemm->type_a);
    facts->bytes[1] = matrix_extent(gemm->transpose_b ? n : k, gemm->transpose_b ? k : n, gemm->ldb,
                                    gemm->stride_b, gemm->batch, gemm->type_b);
    facts->bytes[2] = matrix_extent(m, n, gemm->ldc, gemm->stride_c, gemm->batch, gemm->type_c);
    facts->bytes[3] = workspace_bytes;
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        const hal_gemm_input *input = &gemm->inputs[i];
        const uint64_t column = input->column_stride > 0 ? (uint64_t)input->column_stride : 0;
        const uint64_t rest =
            matrix_extent(m, 1, input->row_stride, input->batch_stride, gemm->batch, input->type);
        facts->bytes[4 + i] = rest + (uint64_t)(n - 1) * column * hal_type_size(input->type);
    }
    if (gemm->type_offsets != HAL_TYPE_NONE) {
        facts->bytes[facts->count++] =
            ((uint64_t)gemm->batch + 1) * hal_type_size(gemm->type_offsets);
    }
    keep_sizes(kernel, facts);
}

/* Bytes up to the last element of a tensor of attention. */
static uint64_t tensor_extent(const hal_attention_description *d, int64_t rows, int64_t columns,
                              const hal_attention_strides *strides)
{
    const uint64_t outer = (uint64_t)(d->outer - 1) * (uint64_t)strides->outer;
    return matrix_extent(rows, columns, strides->row, strides->batch, d->batch, d->type) +
           outer * hal_type_size(d->type);
}

void hal_validate_attention_created(const hal_kernel *kernel, const hal_attention_description *d)
{
    hal_sizes_facts *facts = calloc(1, sizeof *facts);
    if (!facts) {
        return;
    }
    facts->count = 4;
    facts->bytes[0] = tensor_extent(d, d->m, d->d, &d->q);
    facts->bytes[1] = tensor_extent(d, d->n, d->d, &d->k);
    facts->bytes[2] = tensor_extent(d, d->n, d->e, &d->v);
    facts->bytes[3] = tensor_extent(d, d->m, d->e, &d->y);
    keep_sizes(kernel, facts);
}

hal_status hal_validate_dispatch(const hal_kernel *kernel, const hal_range *bindings,
                                 uint32_t binding_count)
{
    HAL_TRY(hal_validate_object_use(HAL_OBJECT_KERNEL, kernel, "hal_queue_dispatch"));
    if (!kernel || !bindings || binding_count != kernel->binding_count) {
        return HAL_OK; /* the call itself refuses a wrong number */
    }
    for (uint32_t i = 0; i < binding_count; i++) {
        HAL_TRY(
            hal_validate_object_use(HAL_OBJECT_BUFFER, bindings[i].buffer, "hal_queue_dispatch"));
    }
    hal_status status = HAL_OK;
    pthread_mutex_lock(&hal_validate_lock);
    const hal_object *object = hal_validate_find(HAL_OBJECT_KERNEL, kernel);
    if (object && object->known.sizes && object->known.sizes->count == binding_count) {
        status = check_sizes(object, kernel, bindings, binding_count);
    }
    pthread_mutex_unlock(&hal_validate_lock);
    return status;
}

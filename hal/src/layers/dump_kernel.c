/* Kernels as records of HAL_DUMP=batch; hal/dump.h has the format. */
#include "dump_kernel.h"

#include <hal/dump.h>
#include <hal/ir_build.h>
#include <stdlib.h>

static void put_ir(hal_payload *record, const hal_ir_kernel *ir)
{
    char *text = NULL;
    if (hal_ir_print(ir, &text) == HAL_OK) {
        hal_payload_string(record, text);
    } else {
        record->failed = true;
    }
    free(text);
}

static void put_gemm(hal_payload *record, const hal_kernel_source *source)
{
    const hal_gemm_description *gemm = source->gemm;
    const uint32_t kinds[9] = {gemm->type_a,      gemm->type_b,      gemm->type_c,
                               gemm->transpose_a, gemm->transpose_b, gemm->beta_is_zero,
                               gemm->precision,   gemm->levels,      gemm->batch};
    const int64_t sizes[9] = {gemm->m,   gemm->n,        gemm->k,        gemm->lda,     gemm->ldb,
                              gemm->ldc, gemm->stride_a, gemm->stride_b, gemm->stride_c};
    for (uint32_t i = 0; i < 9; i++) {
        hal_payload_u32(record, kinds[i]);
    }
    for (uint32_t i = 0; i < 9; i++) {
        hal_payload_u64(record, (uint64_t)sizes[i]);
    }
    hal_payload_u32(record, gemm->input_count);
    for (uint32_t i = 0; i < gemm->input_count; i++) {
        const hal_gemm_input *input = &gemm->inputs[i];
        hal_payload_u32(record, input->type);
        hal_payload_u64(record, (uint64_t)input->row_stride);
        hal_payload_u64(record, (uint64_t)input->column_stride);
        hal_payload_u64(record, (uint64_t)input->batch_stride);
    }
    if (source->built) {
        put_ir(record, source->built);
    } else {
        hal_payload_string(record, "");
    }
    hal_payload_u64(record, *source->workspace_bytes);
}

static void put_attention(hal_payload *record, const hal_attention_description *d)
{
    const uint32_t kinds[5] = {d->type, d->causal, d->precision, d->batch, d->outer};
    const int64_t sizes[4] = {d->m, d->n, d->d, d->e};
    const hal_attention_strides *const strides[4] = {&d->q, &d->k, &d->v, &d->y};
    for (uint32_t i = 0; i < 5; i++) {
        hal_payload_u32(record, kinds[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        hal_payload_u64(record, (uint64_t)sizes[i]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        hal_payload_u64(record, (uint64_t)strides[i]->row);
        hal_payload_u64(record, (uint64_t)strides[i]->batch);
        hal_payload_u64(record, (uint64_t)strides[i]->outer);
    }
}

void hal_dump_describe(hal_payload *record, const hal_kernel_source *source)
{
    const hal_ir_kernel *ir = source->ir;
    if (source->gemm) {
        const bool has_groups = source->gemm->type_offsets != HAL_TYPE_NONE;
        hal_payload_u32(record, has_groups ? HAL_DUMP_KERNEL_GROUPED_GEMM : HAL_DUMP_KERNEL_GEMM);
        hal_payload_string(record, "gemm");
        put_gemm(record, source);
        if (has_groups) {
            hal_payload_u32(record, source->gemm->type_offsets);
        }
    } else if (source->attention) {
        hal_payload_u32(record, HAL_DUMP_KERNEL_ATTENTION);
        hal_payload_string(record, "attention");
        put_attention(record, source->attention);
    } else if (source->code) {
        hal_payload_u32(record, HAL_DUMP_KERNEL_NATIVE);
        hal_payload_string(record, ir->names + ir->name);
        hal_payload_string(record, source->format);
        hal_payload_string(record, source->entry);
        put_ir(record, ir);
        hal_payload_bytes(record, source->code, source->bytes);
    } else {
        hal_payload_u32(record, HAL_DUMP_KERNEL_IR);
        hal_payload_string(record, ir->names + ir->name);
        put_ir(record, source->built);
    }
}

/* Quantised weights written as floats, see ops/quantised.h: a pointwise kernel, with two outputs
 * for bytes of two elements. */
#include "quantised.h"
#include "quantised_decode.h"

#include "tensor/expression.h"
#include "tensor/indexing.h"
#include "tensor/overlap.h"

/* The weight of an element that begins at `bit` of a byte. */
static hal_ir_value weight_value(hal_ir_builder *b, const ops_quantised *q, hal_ir_value byte,
                                 uint32_t bit, hal_ir_value scale, hal_ir_value zero)
{
    hal_ir_value x;
    if (ops_quantised_is_float(q->format)) {
        x = ops_quantised_float(b, q->format, byte, bit);
    } else {
        const uint32_t half = ops_quantised_half(q->format);
        const uint32_t mask = (1u << ops_quantised_bits(q->format)) - 1;
        x = bit ? hal_ir_shr(b, byte, hal_ir_u32(b, bit)) : byte;
        x = hal_ir_and(b, half ? hal_ir_xor(b, x, hal_ir_u32(b, half)) : x, hal_ir_u32(b, mask));
        x = hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_F32, x), hal_ir_f32(b, (float)(half + q->zero)));
    }
    x = zero == HAL_IR_NONE ? x : hal_ir_sub(b, x, zero);
    return hal_ir_mul(b, x, scale);
}

static hal_status make_expression(const ops_quantised *q, ops_expression **expression)
{
    hal_ir_builder *b;
    HAL_TRY(hal_ir_builder_create_fragment("dequantise", &b));
    const uint32_t bits = ops_quantised_bits(q->format);
    hal_ir_value byte = hal_ir_input(b, 0, HAL_TYPE_U32);
    hal_ir_value scale = hal_ir_input(b, 1, hal_type_of_value(q->scales.type));
    hal_ir_value zero = HAL_IR_NONE;
    if (q->scales.type == HAL_TYPE_U8) {
        scale = ops_quantised_exponent(b, scale);
    }
    if (q->zeros) {
        zero = hal_ir_input(b, 2, hal_type_of_value(q->zeros->type));
        zero = ops_value_cast(b, HAL_TYPE_F32, zero);
    }
    for (uint32_t i = 0; i < 8 / bits; i++) {
        hal_ir_output(b, i, weight_value(b, q, byte, i * bits, scale, zero));
    }
    return ops_expression_create(b, expression);
}

/* A matrix of [batch,] rows x columns as [batch, blocks, rows / blocks, columns], from row `first`
 * on in steps of `step`. */
static ops_tensor in_blocks(const ops_tensor *t, int64_t blocks, int64_t rows, int64_t first,
                            int64_t step)
{
    const int64_t row = t->stride[t->rank - 2];
    return (ops_tensor){
        t->buffer,
        t->type,
        4,
        t->offset + first * row,
        {t->rank == 3 ? t->shape[0] : 1, blocks, rows, t->shape[t->rank - 1]},
        {t->rank == 3 ? t->stride[0] : 0, rows * step * row, step * row, t->stride[t->rank - 1]}};
}

hal_status ops_quantised_write(ops_context *context, const ops_quantised_weights *w,
                               const ops_tensor *y)
{
    const ops_quantised *q = w->given;
    const int64_t packed = 8 / w->bits, blocks = w->block ? w->k / w->block : 1;
    const int64_t rows = w->block / packed;
    ops_expression *expression;
    if (w->k == 0 || w->n == 0 || w->batch == 0) {
        return HAL_OK;
    }
    const ops_tensor inputs[3] = {in_blocks(&w->values, blocks, rows, 0, 1),
                                  in_blocks(&q->scales, blocks, 1, 0, 1),
                                  in_blocks(q->zeros ? q->zeros : &q->scales, blocks, 1, 0, 1)};
    const ops_tensor outputs[2] = {in_blocks(y, blocks, rows, 0, packed),
                                   in_blocks(y, blocks, rows, 1, packed)};
    HAL_TRY(make_expression(q, &expression));
    const hal_status status =
        ops_pointwise(context, expression, inputs, q->zeros ? 3 : 2, outputs, (uint32_t)packed);
    ops_expression_destroy(expression);
    return status;
}

hal_status ops_dequantise(ops_context *context, const ops_quantised *b, const ops_tensor *y)
{
    ops_quantised_weights w;
    char text[OPS_TEXT_BYTES];
    HAL_TRY(ops_quantised_check(context, "ops_dequantise", "b", b, &w));
    HAL_TRY(ops_check_output(context, "ops_dequantise", "y", y));
    if (y->type != HAL_TYPE_F32 && y->type != HAL_TYPE_F16 && y->type != HAL_TYPE_BF16) {
        return ops_invalid("ops_dequantise: y: expected f32, f16 or bf16, got %s",
                           hal_type_name(y->type));
    }
    const uint32_t rank = b->values.rank;
    if (y->rank != rank || y->shape[rank - 2] != w.k || y->shape[rank - 1] != w.n ||
        (rank == 3 && y->shape[0] != w.batch)) {
        return ops_invalid("ops_dequantise: y: expected %lld rows and %lld columns, got %s",
                           (long long)w.k, (long long)w.n, ops_describe(y, text));
    }
    if (ops_overlap(&b->values, y) || ops_overlap(&b->scales, y) ||
        (b->zeros && ops_overlap(b->zeros, y))) {
        return ops_invalid(
            "ops_dequantise: y: expected memory that b does not use, got an overlap");
    }
    return ops_quantised_write(context, &w, y);
}

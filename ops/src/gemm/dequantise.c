/* Quantised weights written as floats, see ops/quantised.h: a pointwise kernel, with two outputs
 * for bytes of two elements. */
#include "quantised.h"
#include "quantised_decode.h"

#include "tensor/expression.h"
#include "tensor/indexing.h"
#include "tensor/overlap.h"

/* An integer less the number that is zero: it replaces low bits of the mantissa of a power of two,
 * which is subtracted again, exactly. Conversions take longer. */
static hal_ir_value integer_value(hal_ir_builder *b, const ops_quantised *q, hal_ir_value byte,
                                  uint32_t bit)
{
    enum { EXPONENT = 23, BIAS = 127 };
    const uint32_t half = ops_quantised_half(q->format), top = EXPONENT - bit;
    const uint32_t mask = ((1u << ops_quantised_bits(q->format)) - 1) << bit;
    hal_ir_value x = half ? hal_ir_xor(b, byte, hal_ir_u32(b, half << bit)) : byte;
    x = hal_ir_or(b, hal_ir_and(b, x, hal_ir_u32(b, mask)), hal_ir_u32(b, (BIAS + top) << 23));
    const double offset = (double)(1u << top) + half + q->zero;
    return hal_ir_sub(b, hal_ir_bitcast(b, HAL_TYPE_F32, x), hal_ir_f32(b, (float)offset));
}

/* The weight of an element that begins at `bit` of a byte. */
static hal_ir_value weight_value(hal_ir_builder *b, const ops_quantised *q, bool has_denormals,
                                 hal_ir_value byte, uint32_t bit, hal_ir_value scale,
                                 hal_ir_value zero)
{
    hal_ir_value x;
    if (ops_quantised_is_float(q->format)) {
        x = ops_quantised_float(b, q->format, has_denormals, byte, bit);
    } else {
        x = integer_value(b, q, byte, bit);
    }
    x = zero == HAL_IR_NONE ? x : hal_ir_sub(b, x, zero);
    return hal_ir_mul(b, x, scale);
}

/* `pair`: the type of the two elements of a word that is the output; NONE: each is an output. */
static hal_status make_expression(const ops_quantised *q, hal_type pair, bool has_denormals,
                                  ops_expression **expression)
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
    hal_ir_value weights[2];
    for (uint32_t i = 0; i < 8 / bits; i++) {
        weights[i] = weight_value(b, q, has_denormals, byte, i * bits, scale, zero);
        if (pair == HAL_TYPE_NONE) {
            hal_ir_output(b, i, weights[i]);
        }
    }
    if (pair != HAL_TYPE_NONE) {
        hal_ir_output(b, 0, ops_quantised_pair(b, pair, weights));
    }
    return ops_expression_create(b, expression);
}

/* A matrix of [batch,] rows x columns as [batch, blocks, rows / blocks, columns]. */
static ops_tensor in_blocks(const ops_tensor *t, int64_t blocks, int64_t rows)
{
    const int64_t row = t->stride[t->rank - 2];
    return (ops_tensor){t->buffer,
                        t->type,
                        4,
                        t->offset,
                        {t->rank == 3 ? t->shape[0] : 1, blocks, rows, t->shape[t->rank - 1]},
                        {t->rank == 3 ? t->stride[0] : 0, rows * row, row, t->stride[t->rank - 1]}};
}

/* Whether two neighbours along k of y, of 16 bits, are an aligned word: as two outputs they would
 * be written with gaps. */
static bool y_has_pairs(const ops_quantised_weights *w, const ops_tensor *y)
{
    const int64_t bits = y->offset | y->stride[y->rank - 1] | (y->rank == 3 ? y->stride[0] : 0);
    return w->bits == 4 && hal_type_size(y->type) == 2 && y->stride[y->rank - 2] == 1 &&
           bits % 2 == 0;
}

/* y as words of two elements along k. */
static ops_tensor y_in_pairs(const ops_quantised_weights *w, const ops_tensor *y)
{
    ops_tensor words = *y;
    words.type = HAL_TYPE_U32;
    words.offset /= 2;
    words.shape[y->rank - 2] = w->k / 2;
    words.stride[y->rank - 1] /= 2;
    words.stride[0] = y->rank == 3 ? y->stride[0] / 2 : words.stride[0];
    return words;
}

/* Writes the weights to `parts`, of as many rows as there are rows of bytes:
 * elements i of the bytes to part i, or pairs of them, of `pair`, to the first. */
static hal_status write_parts(ops_context *context, const ops_quantised_weights *w, hal_type pair,
                              const ops_tensor parts[2])
{
    const ops_quantised *q = w->given;
    const int64_t packed = 8 / w->bits, blocks = w->block ? w->k / w->block : 1;
    const int64_t rows = w->block / packed;
    ops_expression *expression;
    if (w->k == 0 || w->n == 0 || w->batch == 0) {
        return HAL_OK;
    }
    const ops_tensor inputs[3] = {in_blocks(&w->values, blocks, rows),
                                  in_blocks(&q->scales, blocks, 1),
                                  in_blocks(q->zeros ? q->zeros : &q->scales, blocks, 1)};
    const ops_tensor outputs[2] = {in_blocks(&parts[0], blocks, rows),
                                   in_blocks(&parts[1], blocks, rows)};
    HAL_TRY(make_expression(q, pair, (context->info->exactness & HAL_EXACT_DENORMALS) != 0,
                            &expression));
    const hal_status status = ops_pointwise(context, expression, inputs, q->zeros ? 3 : 2, outputs,
                                            pair == HAL_TYPE_NONE ? (uint32_t)packed : 1);
    ops_expression_destroy(expression);
    return status;
}

hal_status ops_quantised_write_parts(ops_context *context, const ops_quantised_weights *w,
                                     const ops_tensor parts[2])
{
    return write_parts(context, w, HAL_TYPE_NONE, parts);
}

hal_status ops_quantised_write(ops_context *context, const ops_quantised_weights *w,
                               const ops_tensor *y)
{
    const int64_t packed = 8 / w->bits;
    if (y_has_pairs(w, y)) {
        const ops_tensor words = y_in_pairs(w, y);
        return write_parts(context, w, y->type, (ops_tensor[2]){words, words});
    }
    ops_tensor parts[2] = {*y, *y};
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t row = y->rank - 2;
        parts[i].offset += i ? (packed - 1) * y->stride[row] : 0;
        parts[i].shape[row] = w->k / packed;
        parts[i].stride[row] *= packed;
    }
    return write_parts(context, w, HAL_TYPE_NONE, parts);
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

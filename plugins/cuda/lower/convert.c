/* Conversions between value types, of bits, and to and from the storage types of memory. */
#include "lower/convert.h"

/* The instruction saturates. It turns NaN into 0 only from f32 to 32 bits. */
static void lower_cast_to_integer(cuda_lowering *l, uint32_t index, hal_type from, cuda_operand a)
{
    const hal_type to = l->kernel->records[index].type;
    const bool exact = from == HAL_TYPE_F32 && hal_type_size(to) == 4;
    const cuda_operand result = cuda_define(l, index),
                       number = exact ? result : cuda_fresh(l, cuda_class(to));
    cuda_emit(l, "cvt.rzi$$ $, $;", cuda_type(to), cuda_type(from), number, a);
    if (!exact) {
        const cuda_operand nan = cuda_fresh(l, CUDA_PREDICATE);
        cuda_emit(l, "setp.nan$ $, $, $;", cuda_type(from), nan, a, a);
        cuda_emit(l, "selp$ $, 0, $, $;", cuda_bits(to), result, number, nan);
    }
}

static void lower_cast(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_type from = l->kernel->records[r->a].type, to = r->type;
    const cuda_operand a = cuda_in_register(l, r->a, 0);
    if (to == HAL_TYPE_BOOL) {
        cuda_emit(l, hal_type_is_float(from) ? "setp.neu$ $, $, $;" : "setp.ne$ $, $, $;",
                  cuda_type(from), cuda_define(l, index), a,
                  from == HAL_TYPE_F32   ? (cuda_operand){CUDA_FLOAT_BITS, 0}
                  : from == HAL_TYPE_F64 ? (cuda_operand){CUDA_DOUBLE_BITS, 0}
                                         : cuda_integer(0));
    } else if (from == HAL_TYPE_BOOL) {
        const bool is_f32 = to == HAL_TYPE_F32, is_f64 = to == HAL_TYPE_F64;
        cuda_emit(l, "selp$ $, $, $, $;", cuda_type(to), cuda_define(l, index),
                  is_f32   ? (cuda_operand){CUDA_FLOAT_BITS, 0x3f800000}
                  : is_f64 ? (cuda_operand){CUDA_DOUBLE_BITS, UINT64_C(0x3ff0000000000000)}
                           : cuda_integer(1),
                  is_f32   ? (cuda_operand){CUDA_FLOAT_BITS, 0}
                  : is_f64 ? (cuda_operand){CUDA_DOUBLE_BITS, 0}
                           : cuda_integer(0),
                  a);
    } else if (hal_type_is_float(from) && hal_type_is_integer(to)) {
        lower_cast_to_integer(l, index, from, a);
    } else if (hal_type_is_float(to) && (hal_type_is_integer(from) || to == HAL_TYPE_F32)) {
        cuda_emit(l, "cvt.rn$$ $, $;", cuda_type(to), cuda_type(from), cuda_define(l, index), a);
    } else {
        /* The driver's assembler shifts what cvt.s64.u32 gave as if its sign had been extended. */
        const hal_type wide = from == HAL_TYPE_U32 && to == HAL_TYPE_I64 ? HAL_TYPE_U64 : to;
        cuda_emit(l, "cvt$$ $, $;", cuda_type(wide), cuda_type(from), cuda_define(l, index), a);
    }
}

static void lower_bitcast(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand a = cuda_in_register(l, r->a, 0);
    cuda_emit(l, "mov$ $, $;", cuda_bits(r->type), cuda_define(l, index), a);
}

static void lower_narrow(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_type to = (hal_type)r->aux;
    const cuda_operand a = cuda_in_register(l, r->a, 0), result = cuda_define(l, index);
    switch (to) {
    case HAL_TYPE_F16: {
        const cuda_operand half = cuda_fresh(l, CUDA_HALF);
        cuda_emit(l, "cvt.rn.f16.f32 $, $;", half, a);
        cuda_emit(l, "cvt.f32.f16 $, $;", result, half);
        break;
    }
    case HAL_TYPE_BF16: {
        const cuda_operand word = cuda_fresh(l, CUDA_WORD);
        cuda_pack_halves(l, to, word, a, cuda_text(""));
        cuda_unpack_half(l, to, result, word, 0);
        break;
    }
    case HAL_TYPE_I8:
    case HAL_TYPE_I16:
        cuda_emit(l, "bfe.s32 $, $, 0, $;", result, a, cuda_unsigned(8 * hal_type_size(to)));
        break;
    case HAL_TYPE_U8:
    case HAL_TYPE_U16:
        cuda_emit(l, "bfe.u32 $, $, 0, $;", result, a, cuda_unsigned(8 * hal_type_size(to)));
        break;
    default:
        cuda_emit(l, "mov$ $, $;", cuda_bits(r->type), result, a);
        break;
    }
}

/* An f32 rounded to the nearest even bf16, in the low half of a word; NaN stays NaN. */
static cuda_operand emit_bf16_bits(cuda_lowering *l, cuda_operand value)
{
    const cuda_operand bits = cuda_fresh(l, CUDA_WORD), odd = cuda_fresh(l, CUDA_WORD),
                       nan = cuda_fresh(l, CUDA_PREDICATE);
    cuda_emit(l, "mov.b32 $, $;", bits, value);
    cuda_emit(l, "setp.nan.f32 $, $, $;", nan, value, value);
    cuda_emit(l, "bfe.u32 $, $, 16, 1;", odd, bits);
    cuda_emit(l, "add.u32 $, $, $;", bits, bits, odd);
    cuda_emit(l, "add.u32 $, $, 32767;", bits, bits);
    cuda_emit(l, "shr.u32 $, $, 16;", bits, bits);
    cuda_emit(l, "selp.b32 $, 32767, $, $;", bits, bits, nan);
    return bits;
}

bool cuda_lower_convert(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (cuda_is_alias(l->kernel, r)) {
        return true;
    }
    switch (r->opcode) {
    case HAL_IR_CAST:
        lower_cast(l, index);
        return true;
    case HAL_IR_BITCAST:
        lower_bitcast(l, index);
        return true;
    case HAL_IR_NARROW:
        lower_narrow(l, index);
        return true;
    default:
        return false;
    }
}

void cuda_pack_halves(cuda_lowering *l, hal_type type, cuda_operand word, cuda_operand low,
                      cuda_operand high)
{
    const bool is_f16 = type == HAL_TYPE_F16, both = high.kind != CUDA_TEXT;
    if (l->features & CUDA_FEATURE_PACKED_HALVES) {
        const cuda_operand zero = {CUDA_FLOAT_BITS, 0};
        cuda_emit(l, is_f16 ? "cvt.rn.f16x2.f32 $, $, $;" : "cvt.rn.bf16x2.f32 $, $, $;", word,
                  both ? high : zero, low);
        return;
    }
    if (is_f16) {
        const cuda_operand first = cuda_fresh(l, CUDA_HALF), second = cuda_fresh(l, CUDA_HALF);
        cuda_emit(l, "cvt.rn.f16.f32 $, $;", first, low);
        if (both) {
            cuda_emit(l, "cvt.rn.f16.f32 $, $;", second, high);
        } else {
            cuda_emit(l, "mov.b16 $, 0;", second);
        }
        cuda_emit(l, "mov.b32 $, {$, $};", word, first, second);
        return;
    }
    const cuda_operand first = emit_bf16_bits(l, low);
    if (both) {
        cuda_emit(l, "prmt.b32 $, $, $, 21520;", word, first, emit_bf16_bits(l, high)); /* 0x5410 */
    } else {
        cuda_emit(l, "mov.b32 $, $;", word, first);
    }
}

void cuda_unpack_half(cuda_lowering *l, hal_type type, cuda_operand result, cuda_operand word,
                      uint32_t element)
{
    if (type == HAL_TYPE_BF16) {
        cuda_emit(l, element ? "and.b32 $, $, 4294901760;" : "shl.b32 $, $, 16;", result, word);
        return;
    }
    const cuda_operand low = cuda_fresh(l, CUDA_HALF), high = cuda_fresh(l, CUDA_HALF);
    cuda_emit(l, "mov.b32 {$, $}, $;", low, high, word);
    cuda_emit(l, "cvt.f32.f16 $, $;", result, element ? high : low);
}

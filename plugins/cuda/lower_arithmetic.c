/* Arithmetic, bits, comparisons and choice. Every rounding is spelled out (.rn), so that the
 * assembler contracts nothing and keeps denormals. */
#include "lower_state.h"

static void binary(cuda_lowering *l, uint32_t index, const char *name, cuda_operand suffix)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$ $, $, $;", cuda_text(name), suffix, cuda_define(l, index), cuda_value(l, r->a),
              cuda_value(l, r->b));
}

static void arithmetic(cuda_lowering *l, uint32_t index, const char *floats, const char *integers)
{
    const hal_type type = l->kernel->records[index].type;
    binary(l, index, hal_type_is_float(type) ? floats : integers, cuda_type(type));
}

/* What the instruction leaves open is decided here: division by 0 gives 0, and by -1 it is a
 * negation, which wraps. */
static void divide_integers(cuda_lowering *l, uint32_t index, cuda_operand result)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const uint32_t class = cuda_class(r->type);
    const cuda_operand name = cuda_text(r->opcode == HAL_IR_DIV ? "div" : "rem"),
                       type = cuda_type(r->type), bits = cuda_bits(r->type);
    const cuda_operand a = cuda_value(l, r->a), b = cuda_value(l, r->b);
    const uint64_t divisor = hal_type_size(r->type) == 4 ? (uint32_t)b.bits : b.bits;
    const uint64_t minus_one = hal_type_size(r->type) == 4 ? UINT32_MAX : UINT64_MAX;
    if (b.kind >= CUDA_CLASSES && divisor != 0 && divisor != minus_one) {
        cuda_emit(l, "$$ $, $, $;", name, type, result, a, b);
        return;
    }
    const int is_signed = hal_type_is_signed(r->type);
    const cuda_operand zero = cuda_fresh(l, CUDA_PREDICATE), safe = cuda_fresh(l, class),
                       quotient = cuda_fresh(l, class), one = cuda_fresh(l, CUDA_PREDICATE),
                       checked = is_signed ? cuda_fresh(l, class) : quotient;
    cuda_emit(l, "setp.eq$ $, $, 0;", type, zero, b);
    cuda_emit(l, "selp$ $, 1, $, $;", bits, safe, b, zero);
    if (is_signed) {
        const cuda_operand negative = cuda_fresh(l, class);
        cuda_emit(l, "setp.eq$ $, $, -1;", type, one, b);
        cuda_emit(l, "selp$ $, 1, $, $;", bits, safe, safe, one);
        cuda_emit(l, "$$ $, $, $;", name, type, quotient, a, safe);
        if (r->opcode == HAL_IR_DIV) {
            cuda_emit(l, "neg$ $, $;", type, negative, a);
            cuda_emit(l, "selp$ $, $, $, $;", bits, checked, negative, quotient, one);
        } else {
            cuda_emit(l, "mov$ $, $;", bits, checked, quotient); /* a rem 1 is 0 too */
        }
    } else {
        cuda_emit(l, "$$ $, $, $;", name, type, quotient, a, safe);
    }
    cuda_emit(l, "selp$ $, 0, $, $;", bits, result, checked, zero);
}

static void divide(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (!hal_type_is_float(r->type)) {
        divide_integers(l, index, cuda_define(l, index));
        return;
    }
    if (r->opcode == HAL_IR_DIV) {
        binary(l, index, "div.rn", cuda_type(r->type));
        return;
    }
    cuda_lower_remainder(l, index);
}

static void unary(cuda_lowering *l, uint32_t index, const char *name, cuda_operand suffix)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$ $, $;", cuda_text(name), suffix, cuda_define(l, index), cuda_value(l, r->a));
}

/* NEG and ABS of floats touch the sign bit alone, of NaN too, which neg and abs do not promise. */
static void sign_bit(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const int negate = r->opcode == HAL_IR_NEG;
    const hal_ir_record *operand = &l->kernel->records[r->a];
    if (hal_type_is_float(r->type) && negate && operand->opcode == HAL_IR_ABS) {
        cuda_emit(l, "or$ $, $, $;", cuda_bits(r->type), cuda_define(l, index),
                  cuda_in_register(l, operand->a, 0),
                  cuda_unsigned(UINT64_C(1) << (8 * hal_type_size(r->type) - 1)));
    } else if (hal_type_is_float(r->type)) {
        const uint64_t sign = r->type == HAL_TYPE_F32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        cuda_emit(l, "$$ $, $, $;", cuda_text(negate ? "xor" : "and"), cuda_bits(r->type),
                  cuda_define(l, index), cuda_in_register(l, r->a, 0),
                  cuda_unsigned(negate ? sign : sign - 1));
    } else if (negate) {
        unary(l, index, "neg", cuda_text(hal_type_size(r->type) == 8 ? ".s64" : ".s32"));
    } else if (hal_type_is_signed(r->type)) {
        unary(l, index, "abs", cuda_type(r->type));
    } else {
        unary(l, index, "mov", cuda_bits(r->type));
    }
}

static void extreme(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const int lesser = r->opcode == HAL_IR_MIN;
    if (hal_type_is_float(r->type)) {
        cuda_extreme(l, r->type, lesser, cuda_define(l, index), cuda_value(l, r->a),
                     cuda_value(l, r->b));
    } else {
        binary(l, index, lesser ? "min" : "max", cuda_type(r->type));
    }
}

/* Whether a value is an operation with a constant as its second operand. */
static int takes(const cuda_lowering *l, hal_ir_value value, uint32_t opcode, uint64_t number)
{
    const hal_ir_record *r = &l->kernel->records[value];
    if (r->opcode != opcode) {
        return 0;
    }
    const hal_ir_record *second = &l->kernel->records[r->b];
    return second->opcode == HAL_IR_CONSTANT && l->kernel->constants[second->aux] == number;
}

/* The low halves of two words, or the high ones, side by side are one permutation of bytes:
 * (x & 0xffff) | (y << 16), and (x >> 16) | (y & 0xffff0000). */
static int join_halves(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_record *first = &l->kernel->records[r->a], *second = &l->kernel->records[r->b];
    const int low = takes(l, r->a, HAL_IR_AND, 0xffff) && takes(l, r->b, HAL_IR_SHL, 16);
    const int high = takes(l, r->a, HAL_IR_SHR, 16) && takes(l, r->b, HAL_IR_AND, 0xffff0000);
    if (r->type != HAL_TYPE_U32 || (!low && !high)) {
        return 0;
    }
    cuda_emit(l, "prmt.b32 $, $, $, $;", cuda_define(l, index), cuda_in_register(l, first->a, 0),
              cuda_in_register(l, second->a, 0), cuda_unsigned(low ? 0x5410 : 0x7632));
    return 1;
}

/* The instructions hold larger counts at the width; the IR takes them modulo the width. */
static void shift(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const uint32_t bits = 8 * hal_type_size(r->type);
    cuda_operand count = cuda_value(l, r->b);
    if (count.kind >= CUDA_CLASSES) {
        count = cuda_unsigned(count.bits % bits);
    } else {
        const cuda_operand cut = cuda_fresh(l, CUDA_WORD);
        if (bits == 64) {
            cuda_emit(l, "cvt.u32.u64 $, $;", cut, count);
            count = cut;
        }
        cuda_emit(l, "and.b32 $, $, $;", cut, count, cuda_unsigned(bits - 1));
        count = cut;
    }
    if (r->opcode == HAL_IR_SHL) {
        cuda_emit(l, "shl$ $, $, $;", cuda_bits(r->type), cuda_define(l, index),
                  cuda_value(l, r->a), count);
    } else {
        cuda_emit(l, "shr$ $, $, $;", cuda_type(r->type), cuda_define(l, index),
                  cuda_value(l, r->a), count);
    }
}

static void compare(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_type type = l->kernel->records[r->a].type;
    const cuda_operand a = cuda_value(l, r->a), b = cuda_value(l, r->b);
    if (type == HAL_TYPE_BOOL) { /* EQ and NE only */
        const cuda_operand differ =
            r->opcode == HAL_IR_NE ? cuda_define(l, index) : cuda_fresh(l, CUDA_PREDICATE);
        cuda_emit(l, "xor.pred $, $, $;", differ, a, b);
        if (r->opcode == HAL_IR_EQ) {
            cuda_emit(l, "not.pred $, $;", cuda_define(l, index), differ);
        }
        return;
    }
    const char *name = r->opcode == HAL_IR_EQ    ? "eq"
                       : r->opcode == HAL_IR_LT  ? "lt"
                       : r->opcode == HAL_IR_LE  ? "le"
                       : hal_type_is_float(type) ? "neu"
                                                 : "ne";
    cuda_emit(l, "setp.$$ $, $, $;", cuda_text(name), cuda_type(type), cuda_define(l, index), a, b);
}

static void select(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand choice = cuda_value(l, r->a), b = cuda_value(l, r->b),
                       c = cuda_value(l, r->c);
    if (r->type != HAL_TYPE_BOOL) {
        cuda_emit(l, "selp$ $, $, $, $;", cuda_type(r->type), cuda_define(l, index), b, c, choice);
        return;
    }
    const cuda_operand first = cuda_fresh(l, CUDA_PREDICATE),
                       second = cuda_fresh(l, CUDA_PREDICATE);
    cuda_emit(l, "and.pred $, $, $;", first, choice, b);
    cuda_emit(l, "not.pred $, $;", second, choice);
    cuda_emit(l, "and.pred $, $, $;", second, second, c);
    cuda_emit(l, "or.pred $, $, $;", cuda_define(l, index), first, second);
}

int cuda_lower_arithmetic(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    switch (r->opcode) {
    case HAL_IR_ADD:
        arithmetic(l, index, "add.rn", "add");
        return 1;
    case HAL_IR_SUB:
        arithmetic(l, index, "sub.rn", "sub");
        return 1;
    case HAL_IR_MUL:
        arithmetic(l, index, "mul.rn", "mul.lo");
        return 1;
    case HAL_IR_MULHI:
        binary(l, index, "mul.hi", cuda_type(r->type));
        return 1;
    case HAL_IR_FMA:
        cuda_emit(l, "fma.rn$ $, $, $, $;", cuda_type(r->type), cuda_define(l, index),
                  cuda_value(l, r->a), cuda_value(l, r->b), cuda_value(l, r->c));
        return 1;
    case HAL_IR_DIV:
    case HAL_IR_REM:
        divide(l, index);
        return 1;
    case HAL_IR_NEG:
    case HAL_IR_ABS:
        sign_bit(l, index);
        return 1;
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        extreme(l, index);
        return 1;
    case HAL_IR_SQRT:
        unary(l, index, "sqrt.rn", cuda_type(r->type));
        return 1;
    case HAL_IR_FLOOR:
        unary(l, index, r->type == HAL_TYPE_F32 ? "cvt.rmi.f32" : "cvt.rmi.f64",
              cuda_type(r->type));
        return 1;
    case HAL_IR_TRUNC:
        unary(l, index, r->type == HAL_TYPE_F32 ? "cvt.rzi.f32" : "cvt.rzi.f64",
              cuda_type(r->type));
        return 1;
    case HAL_IR_RINT:
        unary(l, index, r->type == HAL_TYPE_F32 ? "cvt.rni.f32" : "cvt.rni.f64",
              cuda_type(r->type));
        return 1;
    case HAL_IR_AND:
        binary(l, index, "and", cuda_bits(r->type));
        return 1;
    case HAL_IR_OR:
        if (!join_halves(l, index)) {
            binary(l, index, "or", cuda_bits(r->type));
        }
        return 1;
    case HAL_IR_XOR:
        binary(l, index, "xor", cuda_bits(r->type));
        return 1;
    case HAL_IR_NOT:
        unary(l, index, "not", cuda_bits(r->type));
        return 1;
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        shift(l, index);
        return 1;
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
        compare(l, index);
        return 1;
    case HAL_IR_SELECT:
        select(l, index);
        return 1;
    default:
        return 0;
    }
}

/* By one instruction for f32 from 8.0 on. */
void cuda_extreme(cuda_lowering *l, hal_type type, int lesser, cuda_operand result, cuda_operand a,
                  cuda_operand b)
{
    const cuda_operand name = cuda_text(lesser ? "min" : "max"), suffix = cuda_type(type);
    const int is_f32 = type == HAL_TYPE_F32;
    if (is_f32 && l->sm >= 80) {
        cuda_emit(l, "$.NaN.f32 $, $, $;", name, result, a, b);
        return;
    }
    const cuda_operand number = cuda_fresh(l, cuda_class(type)),
                       unordered = cuda_fresh(l, CUDA_PREDICATE),
                       nan = is_f32 ? (cuda_operand){CUDA_FLOAT_BITS, 0x7fffffff}
                                    : (cuda_operand){CUDA_DOUBLE_BITS, INT64_MAX};
    cuda_emit(l, "$$ $, $, $;", name, suffix, number, a, b);
    cuda_emit(l, "setp.nan$ $, $, $;", suffix, unordered, a, b);
    cuda_emit(l, "selp$ $, $, $, $;", suffix, result, nan, number, unordered);
}

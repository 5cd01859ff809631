/* Arithmetic, bits, comparisons and selection. Every rounding is explicit (.rn), so that the
 * assembler contracts nothing and keeps denormals. */
#include "lower/arithmetic.h"

#include "lower/convert.h"
#include "lower/math.h"

#include <stddef.h>

typedef struct ptx_operation ptx_operation;

/* How an opcode is lowered: by a function, with the spelling of its instruction. */
struct ptx_operation {
    void (*lower)(cuda_lowering *l, uint32_t index, const ptx_operation *operation);
    const char *floats;   /* the instruction for floats */
    const char *integers; /* and for integers */
    cuda_operand (*suffix)(hal_type type);
};

static const char *operation_name(const ptx_operation *operation, hal_type type)
{
    return hal_type_is_float(type) ? operation->floats : operation->integers;
}

static void emit_unary(cuda_lowering *l, uint32_t index, const char *name, cuda_operand suffix)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$ $, $;", cuda_text(name), suffix, cuda_define(l, index), cuda_value(l, r->a));
}

static void emit_binary(cuda_lowering *l, uint32_t index, const char *name, cuda_operand suffix)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$ $, $, $;", cuda_text(name), suffix, cuda_define(l, index), cuda_value(l, r->a),
              cuda_value(l, r->b));
}

static void lower_unary(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_type type = l->kernel->records[index].type;
    emit_unary(l, index, operation_name(operation, type), operation->suffix(type));
}

static void lower_binary(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_type type = l->kernel->records[index].type;
    emit_binary(l, index, operation_name(operation, type), operation->suffix(type));
}

/* cvt with a rounding, from a float type to itself. */
static void lower_round(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$$ $, $;", cuda_text(operation->floats), cuda_type(r->type), cuda_type(r->type),
              cuda_define(l, index), cuda_value(l, r->a));
}

static void lower_fma(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_emit(l, "$$ $, $, $, $;", cuda_text(operation->floats), cuda_type(r->type),
              cuda_define(l, index), cuda_value(l, r->a), cuda_value(l, r->b), cuda_value(l, r->c));
}

/* The instructions leave two cases undefined, which the IR defines: division by 0 is 0, and by
 * -1 it is a negation, which wraps. */
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
    const bool is_signed = hal_type_is_signed(r->type);
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

static bool is_one(cuda_operand operand)
{
    return (operand.kind == CUDA_FLOAT_BITS && operand.bits == 0x3f800000) ||
           (operand.kind == CUDA_DOUBLE_BITS && operand.bits == UINT64_C(0x3ff0000000000000));
}

/* rcp rounds correctly too, with a shorter path for common numbers. */
static void lower_divide(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (!hal_type_is_float(r->type)) {
        divide_integers(l, index, cuda_define(l, index));
    } else if (r->opcode == HAL_IR_DIV && is_one(cuda_value(l, r->a))) {
        cuda_emit(l, "rcp.rn$ $, $;", cuda_type(r->type), cuda_define(l, index),
                  cuda_value(l, r->b));
    } else if (r->opcode == HAL_IR_DIV) {
        emit_binary(l, index, operation->floats, cuda_type(r->type));
    } else {
        cuda_lower_remainder(l, index);
    }
}

/* The lesser or greater of two signed integers by a comparison, not by min and max: where two of
 * these follow each other, ptxas 13.0 makes one instruction of both for compute capability 9.0 and
 * 10.0, and forgets that an operand of the first was negated: max(max(-a, b), c) becomes
 * max(max(a, b), c). */
static void emit_chosen(cuda_lowering *l, uint32_t index, cuda_operand type, cuda_operand a,
                        cuda_operand b, bool least)
{
    const hal_type bits = l->kernel->records[index].type;
    const cuda_operand is_a = cuda_fresh(l, CUDA_PREDICATE);
    cuda_emit(l, "setp$$ $, $, $;", cuda_text(least ? ".lt" : ".gt"), type, is_a, a, b);
    cuda_emit(l, "selp$ $, $, $, $;", cuda_bits(bits), cuda_define(l, index), a, b, is_a);
}

/* Not by abs: ptxas takes its result for one that is not negative, and the least integer is its own
 * absolute value. */
static void lower_absolute(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const cuda_operand type = cuda_type(r->type), a = cuda_value(l, r->a),
                       negative = cuda_fresh(l, cuda_class(r->type));
    cuda_emit(l, "neg$ $, $;", type, negative, a);
    emit_chosen(l, index, type, a, negative, false);
}

/* NEG and ABS of floats change the sign bit alone, of NaN too, which neg and abs do not promise. */
static void lower_sign(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const bool negate = r->opcode == HAL_IR_NEG;
    const hal_ir_record *operand = &l->kernel->records[r->a];
    if (hal_type_is_float(r->type) && negate && operand->opcode == HAL_IR_ABS) {
        cuda_emit(l, "or$ $, $, $;", cuda_bits(r->type), cuda_define(l, index),
                  cuda_in_register(l, operand->a, 0),
                  cuda_unsigned(UINT64_C(1) << (8 * hal_type_size(r->type) - 1)));
    } else if (hal_type_is_float(r->type)) {
        const uint64_t sign = r->type == HAL_TYPE_F32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        cuda_emit(l, "$$ $, $, $;", cuda_text(operation->floats), cuda_bits(r->type),
                  cuda_define(l, index), cuda_in_register(l, r->a, 0),
                  cuda_unsigned(negate ? sign : sign - 1));
    } else if (negate) {
        emit_unary(l, index, operation->integers,
                   cuda_text(hal_type_size(r->type) == 8 ? ".s64" : ".s32"));
    } else if (hal_type_is_signed(r->type)) {
        lower_absolute(l, index);
    } else {
        emit_unary(l, index, "mov", cuda_bits(r->type));
    }
}

static void lower_extreme(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (hal_type_is_float(r->type)) {
        cuda_lower_extreme(l, r->type, r->opcode == HAL_IR_MIN, cuda_define(l, index),
                           cuda_value(l, r->a), cuda_value(l, r->b));
    } else if (hal_type_is_signed(r->type)) {
        emit_chosen(l, index, cuda_type(r->type), cuda_value(l, r->a), cuda_value(l, r->b),
                    r->opcode == HAL_IR_MIN);
    } else {
        lower_binary(l, index, operation);
    }
}

/* Whether a value is an operation with this constant as its second operand. */
static bool is_operation_with(const cuda_lowering *l, hal_ir_value value, uint32_t opcode,
                              uint64_t number)
{
    const hal_ir_record *r = &l->kernel->records[value];
    if (r->opcode != opcode) {
        return false;
    }
    const hal_ir_record *second = &l->kernel->records[r->b];
    return second->opcode == HAL_IR_CONSTANT && l->kernel->constants[second->aux] == number;
}

/* The f32 of which a word is the bits, rounded to BF16; NONE: it is another word. */
static hal_ir_value number_before_rounding(const cuda_lowering *l, hal_ir_value word)
{
    const hal_ir_record *bits = &l->kernel->records[word];
    if (bits->opcode != HAL_IR_BITCAST) {
        return HAL_IR_NONE;
    }
    const hal_ir_record *rounded = &l->kernel->records[bits->a];
    return rounded->opcode == HAL_IR_NARROW && rounded->aux == HAL_TYPE_BF16 ? rounded->a
                                                                             : HAL_IR_NONE;
}

/* Packs the low halves of two words, or the high ones, by one permutation of bytes:
 * (x & 0xffff) | (y << 16), and (x >> 16) | (y & 0xffff0000); high halves that are roundings to
 * BF16 by one conversion of both. False for other operands. */
static bool emit_pack_halves(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_record *first = &l->kernel->records[r->a], *second = &l->kernel->records[r->b];
    const bool low = is_operation_with(l, r->a, HAL_IR_AND, 0xffff) &&
                     is_operation_with(l, r->b, HAL_IR_SHL, 16);
    const bool high = is_operation_with(l, r->a, HAL_IR_SHR, 16) &&
                      is_operation_with(l, r->b, HAL_IR_AND, 0xffff0000);
    if (r->type != HAL_TYPE_U32 || (!low && !high)) {
        return false;
    }
    const hal_ir_value x = number_before_rounding(l, first->a);
    const hal_ir_value y = number_before_rounding(l, second->a);
    if (high && x != HAL_IR_NONE && y != HAL_IR_NONE) {
        cuda_pack_halves(l, HAL_TYPE_BF16, cuda_define(l, index), cuda_in_register(l, x, 0),
                         cuda_in_register(l, y, 0));
        return true;
    }
    cuda_emit(l, "prmt.b32 $, $, $, $;", cuda_define(l, index), cuda_in_register(l, first->a, 0),
              cuda_in_register(l, second->a, 0), cuda_unsigned(low ? 0x5410 : 0x7632));
    return true;
}

static void lower_or(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    if (!emit_pack_halves(l, index)) {
        lower_binary(l, index, operation);
    }
}

/* The value whose register a cast between integers of one size shares. */
static hal_ir_value integer_behind(const cuda_lowering *l, hal_ir_value value)
{
    const hal_ir_record *r = &l->kernel->records[value];
    while ((r->opcode == HAL_IR_CAST || r->opcode == HAL_IR_BITCAST) &&
           cuda_is_alias(l->kernel, r)) {
        value = r->a;
        r = &l->kernel->records[value];
    }
    return value;
}

/* The x of an integer of 64 bits that is x times a constant, by MUL or SHL, and that constant;
 * NONE: it is not. */
static hal_ir_value product_split(const cuda_lowering *l, hal_ir_value value, uint64_t *factor)
{
    const hal_ir_record *r = &l->kernel->records[integer_behind(l, value)];
    if ((r->type != HAL_TYPE_I64 && r->type != HAL_TYPE_U64) ||
        (r->opcode != HAL_IR_MUL && r->opcode != HAL_IR_SHL)) {
        return HAL_IR_NONE;
    }
    const cuda_operand a = cuda_value(l, r->a), b = cuda_value(l, r->b);
    if (b.kind == CUDA_INTEGER || b.kind == CUDA_UNSIGNED) {
        *factor = r->opcode == HAL_IR_SHL ? UINT64_C(1) << (b.bits & 63) : b.bits;
        return r->a;
    }
    *factor = a.bits;
    return r->opcode == HAL_IR_MUL && (a.kind == CUDA_INTEGER || a.kind == CUDA_UNSIGNED)
               ? r->b
               : HAL_IR_NONE;
}

/* x * m * n as x times one constant. False where the value is not such a product.
 *
 * The driver's assembler (13.0) makes x * m * n + x of 64 bits x * (m * n + 1), and drops m * n
 * where its low 32 bits are 0. */
static bool emit_chained_product(cuda_lowering *l, uint32_t index)
{
    uint64_t product = 1, factor;
    uint32_t count = 0, shifts = 0;
    hal_ir_value x = index;
    for (hal_ir_value next; (next = product_split(l, x, &factor)) != HAL_IR_NONE; x = next) {
        product *= factor;
        shifts += l->kernel->records[integer_behind(l, x)].opcode == HAL_IR_SHL;
        count++;
    }
    if (count < 2 || shifts == count) {
        return false;
    }
    cuda_emit(l, "mul.lo.u64 $, $, $;", cuda_define(l, index), cuda_in_register(l, x, 0),
              cuda_unsigned(product));
    return true;
}

static void lower_multiply(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    if (!emit_chained_product(l, index)) {
        lower_binary(l, index, operation);
    }
}

/* The instructions clamp the count to the width; the IR takes it modulo the width. */
static void lower_shift(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const uint32_t bits = 8 * hal_type_size(r->type);
    cuda_operand count = cuda_value(l, r->b);
    if (r->opcode == HAL_IR_SHL && emit_chained_product(l, index)) {
        return;
    }
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
    cuda_emit(l, "$$ $, $, $;", cuda_text(operation->integers), operation->suffix(r->type),
              cuda_define(l, index), cuda_value(l, r->a), count);
}

/* The instruction counts the bits of 64 in a register of 32. */
static void lower_popcount(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (hal_type_size(r->type) == 4) {
        lower_unary(l, index, operation);
        return;
    }
    const cuda_operand count = cuda_fresh(l, CUDA_WORD);
    cuda_emit(l, "popc.b64 $, $;", count, cuda_in_register(l, r->a, 0));
    cuda_emit(l, "cvt.u64.u32 $, $;", cuda_define(l, index), count);
}

static void lower_compare(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
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
    cuda_emit(l, "setp.$$ $, $, $;", cuda_text(operation_name(operation, type)), cuda_type(type),
              cuda_define(l, index), a, b);
}

static void lower_select(cuda_lowering *l, uint32_t index, const ptx_operation *operation)
{
    (void)operation;
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

/* By opcode; an opcode without a function belongs to another family. */
static const ptx_operation operations[HAL_IR_OPCODE_COUNT] = {
    [HAL_IR_ADD] = {lower_binary, "add.rn", "add", cuda_type},
    [HAL_IR_SUB] = {lower_binary, "sub.rn", "sub", cuda_type},
    [HAL_IR_MUL] = {lower_multiply, "mul.rn", "mul.lo", cuda_type},
    [HAL_IR_MULHI] = {lower_binary, NULL, "mul.hi", cuda_type},
    [HAL_IR_FMA] = {lower_fma, "fma.rn", NULL, cuda_type},
    [HAL_IR_DIV] = {lower_divide, "div.rn", "div", cuda_type},
    [HAL_IR_REM] = {lower_divide, NULL, "rem", cuda_type},
    [HAL_IR_NEG] = {lower_sign, "xor", "neg", cuda_bits},
    [HAL_IR_ABS] = {lower_sign, "and", NULL, cuda_bits},
    [HAL_IR_MIN] = {lower_extreme, "min", "min", cuda_type},
    [HAL_IR_MAX] = {lower_extreme, "max", "max", cuda_type},
    [HAL_IR_SQRT] = {lower_unary, "sqrt.rn", NULL, cuda_type},
    [HAL_IR_FLOOR] = {lower_round, "cvt.rmi", NULL, cuda_type},
    [HAL_IR_TRUNC] = {lower_round, "cvt.rzi", NULL, cuda_type},
    [HAL_IR_RINT] = {lower_round, "cvt.rni", NULL, cuda_type},
    [HAL_IR_AND] = {lower_binary, NULL, "and", cuda_bits},
    [HAL_IR_OR] = {lower_or, NULL, "or", cuda_bits},
    [HAL_IR_XOR] = {lower_binary, NULL, "xor", cuda_bits},
    [HAL_IR_NOT] = {lower_unary, NULL, "not", cuda_bits},
    [HAL_IR_SHL] = {lower_shift, NULL, "shl", cuda_bits},
    [HAL_IR_SHR] = {lower_shift, NULL, "shr", cuda_type},
    [HAL_IR_POPCOUNT] = {lower_popcount, NULL, "popc", cuda_bits},
    [HAL_IR_EQ] = {lower_compare, "eq", "eq", cuda_type},
    [HAL_IR_NE] = {lower_compare, "neu", "ne", cuda_type},
    [HAL_IR_LT] = {lower_compare, "lt", "lt", cuda_type},
    [HAL_IR_LE] = {lower_compare, "le", "le", cuda_type},
    [HAL_IR_SELECT] = {lower_select, "selp", "selp", cuda_type},
};

bool cuda_lower_arithmetic(cuda_lowering *l, uint32_t index)
{
    const uint32_t opcode = l->kernel->records[index].opcode;
    const ptx_operation *operation = opcode < HAL_IR_OPCODE_COUNT ? &operations[opcode] : NULL;
    if (!operation || !operation->lower) {
        return false;
    }
    operation->lower(l, index, operation);
    return true;
}

void cuda_lower_extreme(cuda_lowering *l, hal_type type, bool minimum, cuda_operand result,
                        cuda_operand a, cuda_operand b)
{
    const cuda_operand name = cuda_text(minimum ? "min" : "max"), suffix = cuda_type(type);
    const bool is_f32 = type == HAL_TYPE_F32;
    if (is_f32 && (l->features & CUDA_FEATURE_NAN_EXTREMES)) {
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

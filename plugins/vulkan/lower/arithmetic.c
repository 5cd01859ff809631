/* Arithmetic, bits, comparisons and selection. */
#include "lower/arithmetic.h"

#include "lower/divide.h"

#include <stdbool.h>

static uint32_t fail_unsupported(lower *l, const hal_ir_record *record)
{
    lower_fail(l, HAL_ERROR_UNSUPPORTED, "lowering to SPIR-V: expected a known opcode, got %u",
               (unsigned)record->opcode);
    return 0;
}

static uint32_t bool_operation(lower *l, uint32_t opcode, uint32_t a, uint32_t b)
{
    const uint32_t t = lower_bool(l);
    switch (opcode) {
    case HAL_IR_NOT:
        return RESULT(&l->writer, SPV_OP_LOGICAL_NOT, t, a);
    case HAL_IR_AND:
        return RESULT(&l->writer, SPV_OP_LOGICAL_AND, t, a, b);
    case HAL_IR_OR:
        return RESULT(&l->writer, SPV_OP_LOGICAL_OR, t, a, b);
    case HAL_IR_EQ:
        return RESULT(&l->writer, SPV_OP_LOGICAL_EQUAL, t, a, b);
    case HAL_IR_XOR:
    case HAL_IR_NE:
        return RESULT(&l->writer, SPV_OP_LOGICAL_NOT_EQUAL, t, a, b);
    default:
        lower_fail(l, HAL_ERROR_UNSUPPORTED,
                   "lowering to SPIR-V: expected an opcode of bool, got %u", (unsigned)opcode);
        return 0;
    }
}

/* On the bits, because a driver's negation may change a NaN or a denormal. */
static uint32_t float_sign(lower *l, uint32_t opcode, hal_type type, uint32_t a)
{
    const uint32_t width = 8 * hal_type_size(type);
    const uint64_t sign = UINT64_C(1) << (width - 1);
    const uint32_t bits = lower_bits(l, type, a);
    const uint32_t changed = opcode == HAL_IR_NEG
                                 ? RESULT(&l->writer, SPV_OP_BITWISE_XOR, lower_int(l, width), bits,
                                          lower_number(l, width, sign))
                                 : RESULT(&l->writer, SPV_OP_BITWISE_AND, lower_int(l, width), bits,
                                          lower_number(l, width, sign - 1));
    return lower_from_bits(l, type, changed);
}

/* Floor, trunc or rint of f64 by additions, which round to nearest even: those of 2^52 to |a| leave
 * an integer, from which the others follow. From 2^52 on all numbers are integers. */
static uint32_t double_integral(lower *l, uint32_t opcode, uint32_t a)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, HAL_TYPE_F64), bits = lower_int(l, 64), b = lower_bool(l);
    const uint64_t sign_bit = UINT64_C(1) << 63;
    const uint32_t large =
        lower_from_bits(l, HAL_TYPE_F64, lower_number(l, 64, UINT64_C(0x4330000000000000)));
    const uint32_t one =
        lower_from_bits(l, HAL_TYPE_F64, lower_number(l, 64, UINT64_C(0x3ff0000000000000)));
    const uint32_t sign = RESULT(w, SPV_OP_BITWISE_AND, bits, lower_bits(l, HAL_TYPE_F64, a),
                                 lower_number(l, 64, sign_bit));
    const uint32_t size = float_sign(l, HAL_IR_ABS, HAL_TYPE_F64, a);
    uint32_t made = lower_exact(l, RESULT(w, SPV_OP_F_ADD, t, size, large));
    made = lower_exact(l, RESULT(w, SPV_OP_F_SUB, t, made, large));
    if (opcode == HAL_IR_TRUNC) {
        const uint32_t less = lower_exact(l, RESULT(w, SPV_OP_F_SUB, t, made, one));
        made = lower_select(l, t, RESULT(w, SPV_OP_F_ORD_LESS_THAN, b, size, made), less, made);
    }
    made = lower_from_bits(
        l, HAL_TYPE_F64,
        RESULT(w, SPV_OP_BITWISE_OR, bits, lower_bits(l, HAL_TYPE_F64, made), sign));
    if (opcode == HAL_IR_FLOOR) {
        const uint32_t less = lower_exact(l, RESULT(w, SPV_OP_F_SUB, t, made, one));
        made = lower_select(l, t, RESULT(w, SPV_OP_F_ORD_LESS_THAN, b, a, made), less, made);
    }
    return lower_select(l, t, RESULT(w, SPV_OP_F_ORD_LESS_THAN, b, size, large), made, a);
}

static uint32_t float_integral(lower *l, uint32_t opcode, hal_type type, uint32_t a)
{
    const uint32_t instruction = opcode == HAL_IR_FLOOR   ? SPV_GLSL_FLOOR
                                 : opcode == HAL_IR_TRUNC ? SPV_GLSL_TRUNC
                                                          : SPV_GLSL_ROUND_EVEN;
    return type == HAL_TYPE_F64 && l->target->repairs_integral
               ? double_integral(l, opcode, a)
               : lower_glsl(l, instruction, lower_type(l, type), &a, 1);
}

/* One comparison and a selection, such that NaN is kept and of two zeros the right one is taken. */
static uint32_t extreme_with_constant(lower *l, bool is_min, hal_type type, uint32_t x,
                                      uint32_t constant, uint64_t bits)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type);
    const int negative = (int)(bits >> (8 * hal_type_size(type) - 1) & 1);
    if (is_min == negative) { /* x where it is smaller (greater) or NaN, else the constant */
        const uint32_t mine =
            RESULT(w, is_min ? SPV_OP_F_UNORD_LESS_THAN : SPV_OP_F_UNORD_GREATER_THAN,
                   lower_bool(l), x, constant);
        return lower_select(l, t, mine, x, constant);
    }
    const uint32_t beyond = RESULT(w, is_min ? SPV_OP_F_ORD_GREATER_THAN : SPV_OP_F_ORD_LESS_THAN,
                                   lower_bool(l), x, constant);
    return lower_select(l, t, beyond, constant, x);
}

/* NaN where either is. The signs of equal zeros are combined: or for min, and for max. */
static uint32_t float_extreme(lower *l, bool is_min, hal_type type, uint32_t a, uint32_t b)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), width = 8 * hal_type_size(type);
    const uint32_t less =
        RESULT(w, is_min ? SPV_OP_F_ORD_LESS_THAN : SPV_OP_F_ORD_GREATER_THAN, lower_bool(l), a, b);
    const uint32_t equal = RESULT(w, SPV_OP_F_ORD_EQUAL, lower_bool(l), a, b);
    const uint32_t nan = RESULT(w, SPV_OP_F_UNORD_NOT_EQUAL, lower_bool(l), a, a);
    const uint32_t joined = lower_from_bits(
        l, type,
        RESULT(w, is_min ? SPV_OP_BITWISE_OR : SPV_OP_BITWISE_AND, lower_int(l, width),
               lower_bits(l, type, a), lower_bits(l, type, b)));
    const uint32_t either = RESULT(w, SPV_OP_LOGICAL_OR, lower_bool(l), less, nan);
    const uint32_t chosen = lower_select(l, t, either, a, b);
    return lower_select(l, t, equal, joined, chosen);
}

static uint32_t extreme_of_record(lower *l, const hal_ir_record *record, hal_type type)
{
    const bool is_min = record->opcode == HAL_IR_MIN;
    const uint32_t width = 8 * hal_type_size(type);
    const uint32_t a = l->ids[record->a], b = l->ids[record->b];
    const hal_ir_record *ra = &l->ir->records[record->a], *rb = &l->ir->records[record->b];
    if (rb->opcode == HAL_IR_CONSTANT || ra->opcode == HAL_IR_CONSTANT) {
        const int second = rb->opcode == HAL_IR_CONSTANT;
        const uint64_t bits = l->ir->constants[second ? rb->aux : ra->aux];
        const uint64_t infinity = type == HAL_TYPE_F32 ? 0x7f800000u : UINT64_C(0x7ff0000000000000);
        if ((bits & ((UINT64_C(1) << (width - 1)) - 1)) <= infinity) {
            return extreme_with_constant(l, is_min, type, second ? a : b, second ? b : a, bits);
        }
    }
    return float_extreme(l, is_min, type, a, b);
}

/* A product with the constant 0, which gallivm (Mesa's llvmpipe) takes for 0 whatever the other
 * factor is: x - x, which is NaN where x is not finite, with the sign of the product. */
static uint32_t product_with_zero(lower *l, hal_type type, uint32_t x, uint32_t zero)
{
    spirv_writer *w = &l->writer;
    const uint32_t width = 8 * hal_type_size(type), t = lower_int(l, width);
    const uint32_t rest = lower_exact(l, RESULT(w, SPV_OP_F_SUB, lower_type(l, type), x, x));
    const uint32_t signs =
        RESULT(w, SPV_OP_BITWISE_XOR, t, lower_bits(l, type, x), lower_bits(l, type, zero));
    const uint32_t sign =
        RESULT(w, SPV_OP_BITWISE_AND, t, signs, lower_number(l, width, UINT64_C(1) << (width - 1)));
    return lower_from_bits(l, type,
                           RESULT(w, SPV_OP_BITWISE_OR, t, lower_bits(l, type, rest), sign));
}

/* Whether a value is the constant 0 or -0. */
static bool is_zero(const lower *l, hal_ir_value value, hal_type type)
{
    const hal_ir_record *record = &l->ir->records[value];
    return record->opcode == HAL_IR_CONSTANT &&
           l->ir->constants[record->aux] << (65 - 8 * hal_type_size(type)) == 0;
}

static uint32_t float_product(lower *l, const hal_ir_record *record, hal_type type)
{
    const uint32_t a = l->ids[record->a], b = l->ids[record->b];
    if (is_zero(l, record->a, type)) {
        return product_with_zero(l, type, b, a);
    }
    if (is_zero(l, record->b, type)) {
        return product_with_zero(l, type, a, b);
    }
    return lower_exact(l, RESULT(&l->writer, SPV_OP_F_MUL, lower_type(l, type), a, b));
}

static uint32_t float_compare(lower *l, uint32_t opcode, uint32_t a, uint32_t b)
{
    const uint32_t instruction = opcode == HAL_IR_EQ   ? SPV_OP_F_ORD_EQUAL
                                 : opcode == HAL_IR_NE ? SPV_OP_F_UNORD_NOT_EQUAL
                                 : opcode == HAL_IR_LT ? SPV_OP_F_ORD_LESS_THAN
                                                       : SPV_OP_F_ORD_LESS_THAN_EQUAL;
    return RESULT(&l->writer, instruction, lower_bool(l), a, b);
}

static uint32_t float_operation(lower *l, const hal_ir_record *record, hal_type type)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), a = l->ids[record->a];
    const uint32_t b = record->b == HAL_IR_NONE ? 0 : l->ids[record->b];
    switch (record->opcode) {
    case HAL_IR_ADD:
        return lower_exact(l, RESULT(w, SPV_OP_F_ADD, t, a, b));
    case HAL_IR_SUB:
        return lower_exact(l, RESULT(w, SPV_OP_F_SUB, t, a, b));
    case HAL_IR_MUL:
        return float_product(l, record, type);
    case HAL_IR_DIV:
        return lower_divide_float(l, type, a, b);
    case HAL_IR_REM:
        return lower_remainder_float(l, type, a, b);
    case HAL_IR_NEG:
    case HAL_IR_ABS:
        return float_sign(l, record->opcode, type, a);
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return extreme_of_record(l, record, type);
    case HAL_IR_FMA:
        return lower_exact(
            l, lower_glsl(l, SPV_GLSL_FMA, t, (uint32_t[]){a, b, l->ids[record->c]}, 3));
    case HAL_IR_SQRT:
        return lower_square_root(l, type, a);
    case HAL_IR_FLOOR:
    case HAL_IR_TRUNC:
    case HAL_IR_RINT:
        return float_integral(l, record->opcode, type, a);
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
        return float_compare(l, record->opcode, a, b);
    default:
        return fail_unsupported(l, record);
    }
}

static uint32_t integer_compare(lower *l, uint32_t opcode, hal_type type, uint32_t a, uint32_t b)
{
    const bool is_signed = hal_type_is_signed(type);
    const uint32_t instruction =
        opcode == HAL_IR_EQ   ? SPV_OP_I_EQUAL
        : opcode == HAL_IR_NE ? SPV_OP_I_NOT_EQUAL
        : opcode == HAL_IR_LT ? (is_signed ? SPV_OP_S_LESS_THAN : SPV_OP_U_LESS_THAN)
                              : (is_signed ? SPV_OP_S_LESS_THAN_EQUAL : SPV_OP_U_LESS_THAN_EQUAL);
    return RESULT(&l->writer, instruction, lower_bool(l), a, b);
}

static uint32_t integer_extreme(lower *l, bool is_min, hal_type type, uint32_t a, uint32_t b)
{
    const uint32_t less = integer_compare(l, HAL_IR_LT, type, a, b);
    return lower_select(l, lower_type(l, type), less, is_min ? a : b, is_min ? b : a);
}

/* Vulkan's instruction takes 32 bits: the counts of the halves of 64 are added. */
static uint32_t integer_popcount(lower *l, hal_type type, uint32_t a)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), word = lower_int(l, 32);
    if (hal_type_size(type) == 4) {
        return RESULT(w, SPV_OP_BIT_COUNT, t, a);
    }
    const uint32_t low = RESULT(w, SPV_OP_U_CONVERT, word, a);
    const uint32_t shifted = RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, t, a, lower_number(l, 64, 32));
    const uint32_t high = RESULT(w, SPV_OP_U_CONVERT, word, shifted);
    const uint32_t sum = RESULT(w, SPV_OP_I_ADD, word, RESULT(w, SPV_OP_BIT_COUNT, word, low),
                                RESULT(w, SPV_OP_BIT_COUNT, word, high));
    return RESULT(w, SPV_OP_U_CONVERT, t, sum);
}

/* NVIDIA's compiler multiplies an integer that was widened from 32 bits by such a constant as by a
 * signed one of 32 bits. */
static uint32_t hide_factor(lower *l, hal_type type, hal_ir_value value)
{
    const hal_ir_record *factor = &l->ir->records[value];
    const uint32_t id = l->ids[value];
    const bool is_wide = factor->opcode == HAL_IR_CONSTANT && hal_type_size(type) == 8 &&
                         l->ir->constants[factor->aux] >> 31 == 1;
    return is_wide ? lower_hide(l, SPIRV_HIDES_FACTORS, type, id) : id;
}

/* The least integer is its own negative; NVIDIA's compiler takes what it knows to be an absolute
 * value for one that is not negative. */
static uint32_t integer_absolute(lower *l, hal_type type, uint32_t a)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), zero = lower_number(l, 8 * hal_type_size(type), 0);
    if (!hal_type_is_signed(type)) {
        return a;
    }
    const uint32_t is_negative = RESULT(w, SPV_OP_S_LESS_THAN, lower_bool(l), a, zero);
    const uint32_t negative =
        lower_hide(l, SPIRV_HIDES_NEGATIVES, type, RESULT(w, SPV_OP_I_SUB, t, zero, a));
    return lower_select(l, t, is_negative, negative, a);
}

static uint32_t integer_operation(lower *l, const hal_ir_record *record, hal_type type)
{
    spirv_writer *w = &l->writer;
    const uint32_t t = lower_type(l, type), width = 8 * hal_type_size(type);
    const uint32_t a = l->ids[record->a];
    const uint32_t b = record->b == HAL_IR_NONE ? 0 : l->ids[record->b];
    switch (record->opcode) {
    case HAL_IR_ADD:
        return RESULT(w, SPV_OP_I_ADD, t, a, b);
    case HAL_IR_SUB:
        return RESULT(w, SPV_OP_I_SUB, t, a, b);
    case HAL_IR_MUL:
        return RESULT(w, SPV_OP_I_MUL, t, hide_factor(l, type, record->a),
                      hide_factor(l, type, record->b));
    case HAL_IR_DIV:
    case HAL_IR_REM:
        return lower_divide_integer(l, record);
    case HAL_IR_MULHI:
        return lower_multiply_high(l, type, a, b);
    case HAL_IR_NEG:
        return RESULT(w, SPV_OP_I_SUB, t, lower_number(l, width, 0), a);
    case HAL_IR_ABS:
        return integer_absolute(l, type, a);
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return integer_extreme(l, record->opcode == HAL_IR_MIN, type, a, b);
    case HAL_IR_AND:
        return RESULT(w, SPV_OP_BITWISE_AND, t, a, b);
    case HAL_IR_OR:
        return RESULT(w, SPV_OP_BITWISE_OR, t, a, b);
    case HAL_IR_XOR:
        return RESULT(w, SPV_OP_BITWISE_XOR, t, a, b);
    case HAL_IR_NOT:
        return RESULT(w, SPV_OP_NOT, t, a);
    case HAL_IR_POPCOUNT:
        return integer_popcount(l, type, a);
    case HAL_IR_SHL:
    case HAL_IR_SHR: {
        const uint32_t count =
            RESULT(w, SPV_OP_BITWISE_AND, t, b, lower_number(l, width, width - 1));
        return RESULT(w,
                      record->opcode == HAL_IR_SHL ? SPV_OP_SHIFT_LEFT_LOGICAL
                      : hal_type_is_signed(type)   ? SPV_OP_SHIFT_RIGHT_ARITHMETIC
                                                   : SPV_OP_SHIFT_RIGHT_LOGICAL,
                      t, a, count);
    }
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
        return integer_compare(l, record->opcode, type, a, b);
    default:
        return fail_unsupported(l, record);
    }
}

/* Whether a driver can compute a record, whose result may be 0. */
static bool is_of_constants(const lower *l, const hal_ir_record *record)
{
    hal_ir_value operands[4];
    const uint32_t count = hal_ir_operands(record, operands);
    bool constant = true;
    for (uint32_t i = 0; i < count; i++) {
        constant = constant && l->ir->records[operands[i]].opcode == HAL_IR_CONSTANT;
    }
    return constant;
}

uint32_t lower_arithmetic(lower *l, const hal_ir_record *record)
{
    if (record->a == HAL_IR_NONE) {
        return fail_unsupported(l, record);
    }
    if (record->opcode == HAL_IR_SELECT) {
        return lower_select(l, lower_type(l, record->type), l->ids[record->a], l->ids[record->b],
                            l->ids[record->c]);
    }
    const hal_type type = l->ir->records[record->a].type;
    if (type == HAL_TYPE_BOOL) {
        return bool_operation(l, record->opcode, l->ids[record->a],
                              record->b == HAL_IR_NONE ? 0 : l->ids[record->b]);
    }
    if (!hal_type_is_float(type)) {
        return integer_operation(l, record, type);
    }
    const uint32_t result = float_operation(l, record, type);
    return is_of_constants(l, record) ? lower_hide(l, SPIRV_HIDES_CONSTANTS, record->type, result)
                                      : result;
}

uint32_t lower_combine(lower *l, uint32_t opcode, hal_type type, uint32_t a, uint32_t b)
{
    const uint32_t t = lower_type(l, type);
    if (opcode == HAL_IR_ADD) {
        return hal_type_is_float(type) ? lower_exact(l, RESULT(&l->writer, SPV_OP_F_ADD, t, a, b))
                                       : RESULT(&l->writer, SPV_OP_I_ADD, t, a, b);
    }
    return hal_type_is_float(type) ? float_extreme(l, opcode == HAL_IR_MIN, type, a, b)
                                   : integer_extreme(l, opcode == HAL_IR_MIN, type, a, b);
}

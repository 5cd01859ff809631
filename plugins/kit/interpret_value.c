/* The meaning of each operation on single values. */
#include "interpret_value.h"

#include <hal/ir_math_scalar.h>

/* Functions of one operand; the other one is POW. */
static const struct {
    float (*f32)(int m, float x);
    double (*f64)(int m, double x);
} functions[HAL_IR_MATH_COUNT] = MATH_UNARY_TABLE;

/* To integers: towards zero, saturating, NaN to 0. Every f32 is a double. */
static uint64_t cast_float(double a, hal_type to)
{
    const double whole = trunc(a);
    switch (to) {
    case HAL_TYPE_F32:
        return math_bits_f32((float)a);
    case HAL_TYPE_F64:
        return math_bits_f64(a);
    case HAL_TYPE_BOOL:
        return a != 0;
    case HAL_TYPE_I32:
        return a != a ? 0
                      : (uint32_t)(whole <= -0x1p31  ? INT32_MIN
                                   : whole >= 0x1p31 ? INT32_MAX
                                                     : (int32_t)whole);
    case HAL_TYPE_U32:
        return !(whole > 0) ? 0 : whole >= 0x1p32 ? UINT32_MAX : (uint32_t)whole;
    case HAL_TYPE_I64:
        return a != a ? 0
                      : (uint64_t)(whole <= -0x1p63  ? INT64_MIN
                                   : whole >= 0x1p63 ? INT64_MAX
                                                     : (int64_t)whole);
    default:
        return !(whole > 0) ? 0 : whole >= 0x1p64 ? UINT64_MAX : (uint64_t)whole;
    }
}

static int64_t as_signed(hal_type type, uint64_t bits)
{
    return type == HAL_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static uint64_t truncated(hal_type type, uint64_t bits)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return bits & 1;
    case HAL_TYPE_I32:
    case HAL_TYPE_U32:
        return (uint32_t)bits;
    default:
        return bits;
    }
}

/* An integer as 64 bits, and whether they are negative. */
static uint64_t cast_integer(int negative, uint64_t low, hal_type to)
{
    switch (to) {
    case HAL_TYPE_F32:
        return math_bits_f32(negative ? (float)(int64_t)low : (float)low);
    case HAL_TYPE_F64:
        return math_bits_f64(negative ? (double)(int64_t)low : (double)low);
    case HAL_TYPE_BOOL:
        return low != 0;
    default:
        return truncated(to, low);
    }
}

static uint64_t cast(hal_type from, hal_type to, uint64_t a)
{
    if (from == HAL_TYPE_F32 && to == HAL_TYPE_F32) {
        return a;
    }
    if (from == HAL_TYPE_F32) {
        return cast_float(math_float_f32((uint32_t)a), to);
    }
    if (from == HAL_TYPE_F64) {
        return cast_float(math_float_f64(a), to);
    }
    const int64_t value = as_signed(from, a);
    return cast_integer(hal_type_is_signed(from) && value < 0, (uint64_t)value, to);
}

/* NaN if either is; of two zeros min takes the negative one and max the positive one. */
static uint64_t extreme_f64(uint32_t opcode, double a, double b)
{
    const uint64_t bits_a = math_bits_f64(a), bits_b = math_bits_f64(b);
    if (a != a || b != b) {
        return math_bits_f64(a != a ? a : b);
    }
    if (a == b) {
        return opcode == HAL_IR_MIN ? bits_a | bits_b : bits_a & bits_b;
    }
    return (a < b) == (opcode == HAL_IR_MIN) ? bits_a : bits_b;
}

static uint64_t compare_floats(uint32_t opcode, double a, double b)
{
    switch (opcode) {
    case HAL_IR_EQ:
        return a == b;
    case HAL_IR_NE:
        return a != b;
    case HAL_IR_LT:
        return a < b;
    default:
        return a <= b;
    }
}

#define BITS 32
#define REAL float
#define C_NAME(name) name##f
#include "interpret_float.inl"
#undef BITS
#undef REAL
#undef C_NAME

#define BITS 64
#define REAL double
#define C_NAME(name) name
#include "interpret_float.inl"

#include <stdbool.h>
#undef BITS
#undef REAL
#undef C_NAME

static uint64_t divide(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    if (b == 0) {
        return 0;
    }
    if (!hal_type_is_signed(type)) {
        return opcode == HAL_IR_DIV ? a / b : a % b;
    }
    const int64_t sa = as_signed(type, a), sb = as_signed(type, b);
    if (sb == -1) {
        return opcode == HAL_IR_DIV ? truncated(type, 0 - a) : 0; /* the smallest by -1 wraps */
    }
    return truncated(type, (uint64_t)(opcode == HAL_IR_DIV ? sa / sb : sa % sb));
}

static uint64_t multiply_high(hal_type type, uint64_t a, uint64_t b)
{
    switch (type) {
    case HAL_TYPE_I32:
        return (uint32_t)((as_signed(type, a) * as_signed(type, b)) >> 32);
    case HAL_TYPE_U32:
        return a * b >> 32;
    case HAL_TYPE_I64:
        return math_mulhi_u64(a, b) - ((int64_t)a < 0 ? b : 0) - ((int64_t)b < 0 ? a : 0);
    default:
        return math_mulhi_u64(a, b);
    }
}

static uint64_t shift_right(hal_type type, uint64_t a, uint64_t count)
{
    if (!hal_type_is_signed(type)) {
        return a >> count;
    }
    return truncated(type, (uint64_t)(as_signed(type, a) >> count));
}

/* Integers and BOOL: in 64 bits, then cut to the type. */
static uint64_t operate_integer(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    const bool is_signed = hal_type_is_signed(type);
    const int64_t sa = as_signed(type, a), sb = as_signed(type, b);
    const int less = is_signed ? sa < sb : a < b;
    const uint64_t bits = 8 * hal_type_size(type);
    switch (opcode) {
    case HAL_IR_ADD:
        return truncated(type, a + b);
    case HAL_IR_SUB:
        return truncated(type, a - b);
    case HAL_IR_MUL:
        return truncated(type, a * b);
    case HAL_IR_DIV:
    case HAL_IR_REM:
        return divide(opcode, type, a, b);
    case HAL_IR_NEG:
        return truncated(type, 0 - a);
    case HAL_IR_ABS:
        return is_signed && sa < 0 ? truncated(type, 0 - a) : a;
    case HAL_IR_MIN:
        return less ? a : b;
    case HAL_IR_MAX:
        return less ? b : a;
    case HAL_IR_MULHI:
        return multiply_high(type, a, b);
    case HAL_IR_AND:
        return a & b;
    case HAL_IR_OR:
        return a | b;
    case HAL_IR_XOR:
        return a ^ b;
    case HAL_IR_NOT:
        return truncated(type, ~a);
    case HAL_IR_POPCOUNT:
        return (uint64_t)__builtin_popcountll(truncated(type, a));
    case HAL_IR_SHL:
        return truncated(type, a << b % bits);
    case HAL_IR_SHR:
        return shift_right(type, a, b % bits);
    case HAL_IR_EQ:
        return a == b;
    case HAL_IR_NE:
        return a != b;
    case HAL_IR_LT:
        return (uint64_t)less;
    default: /* HAL_IR_LE */
        return (uint64_t)(less || a == b);
    }
}

/* Whether a narrow float is the upper half of F32, as BF16 is. */
static bool is_upper_half(hal_type type)
{
    return hal_type_float_format(type).highest == hal_type_float_format(HAL_TYPE_F32).highest;
}

/* To nearest even. A NaN keeps its highest bits and becomes quiet. */
static uint64_t f32_to_narrow(hal_type type, uint32_t bits)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t overflow = hal_type_overflow_bits(type), shift = 24 - (uint32_t)format.digits;
    const uint32_t last = bits >> shift & 1, half = 1u << (shift - 1);
    const uint32_t sign = bits >> (32 - 8 * hal_type_size(type)) & ~hal_type_magnitude_mask(type);
    const uint32_t magnitude = bits & 0x7fffffff, quiet = 1u << (format.digits - 2);
    const uint32_t bias = (uint32_t)(125 + format.digits + format.least) << 23;
    if (magnitude > 0x7f800000) {
        return sign | overflow | quiet | (magnitude >> shift & (quiet - 1));
    }
    if (is_upper_half(type)) {
        return (bits + half - 1 + last) >> shift;
    }
    if (magnitude < bias + (1u << 23)) { /* a denormal: the last place of `scale` is worth one */
        const float scale = ldexpf(1.0f, format.least + 23);
        return sign | (math_bits_f32(math_float_f32(magnitude) + scale) - math_bits_f32(scale));
    }
    const uint32_t rounded = (magnitude - bias + half - 1 + last) >> shift;
    return sign | (rounded > overflow ? overflow : rounded);
}

static uint64_t narrow_to_f32(hal_type type, uint32_t stored)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t mask = hal_type_magnitude_mask(type), magnitude = stored & mask;
    const uint32_t sign = (stored & ~mask) << (32 - 8 * hal_type_size(type));
    const uint32_t shift = 24 - (uint32_t)format.digits;
    if (is_upper_half(type)) {
        return stored << shift;
    }
    if (magnitude >= hal_type_overflow_bits(type)) {
        return sign | 0x7f800000 | magnitude << shift;
    }
    if (magnitude < 1u << (format.digits - 1)) {
        return sign | math_bits_f32(ldexpf((float)magnitude, format.least));
    }
    const uint32_t bias = (uint32_t)(125 + format.digits + format.least) << 23;
    return sign | ((magnitude << shift) + bias);
}

uint64_t kit_operate(const hal_ir_record *record, hal_type from, uint64_t a, uint64_t b, uint64_t c)
{
    const uint32_t opcode = record->opcode;
    switch (opcode) {
    case HAL_IR_CAST:
        return cast(from, record->type, a);
    case HAL_IR_BITCAST:
        return a;
    case HAL_IR_NARROW:
        return kit_from_storage((hal_type)record->aux, kit_to_storage((hal_type)record->aux, a));
    default:
        break;
    }
    if (from == HAL_TYPE_F32) {
        return operate_f32(opcode, math_float_f32((uint32_t)a), math_float_f32((uint32_t)b),
                           math_float_f32((uint32_t)c));
    }
    if (from == HAL_TYPE_F64) {
        return operate_f64(opcode, math_float_f64(a), math_float_f64(b), math_float_f64(c));
    }
    return operate_integer(opcode, from, a, b);
}

uint64_t kit_combine(uint32_t opcode, hal_type type, uint64_t a, uint64_t b)
{
    const hal_ir_record record = {.opcode = (uint16_t)opcode, .type = type, .width = 1};
    return kit_operate(&record, type, a, b, 0);
}

uint64_t kit_to_storage(hal_type type, uint64_t value)
{
    if (hal_type_is_narrow_float(type)) {
        return f32_to_narrow(type, (uint32_t)value);
    }
    const uint32_t unused = 64 - 8 * hal_type_size(type);
    return hal_type_is_value(type) ? value : value << unused >> unused;
}

uint64_t kit_from_storage(hal_type type, uint64_t stored)
{
    if (hal_type_is_narrow_float(type)) {
        return narrow_to_f32(type, (uint32_t)stored);
    }
    if (type == HAL_TYPE_BOOL) {
        return stored != 0;
    }
    if (!hal_type_is_signed(type) || hal_type_is_value(type)) {
        return stored;
    }
    const uint32_t unused = 32 - 8 * hal_type_size(type);
    return (uint32_t)((int32_t)((uint32_t)stored << unused) >> unused);
}

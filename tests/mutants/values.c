/* values.c: faults of single operations on values, such as a careless lowering has: integers, signs
 * and comparisons of floats, conversions, vectors. */
#include "edit.h"

#define I32 HAL_TYPE_I32
#define U32 HAL_TYPE_U32
#define I64 HAL_TYPE_I64
#define U64 HAL_TYPE_U64
#define F32 HAL_TYPE_F32
#define F64 HAL_TYPE_F64
#define BOOL HAL_TYPE_BOOL
#define LEAST_I32 UINT64_C(0x80000000)
#define LEAST_I64 UINT64_C(0x8000000000000000)
#define LOW_WORD UINT64_C(0xffffffff)
#define A ir->records[i].a
#define B ir->records[i].b

/* ---- Integers ---- */

static uint32_t sub_saturates(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    const hal_ir_value below = COMPARE(LT, a, b), zero = NUMBER(U32, 0);
    return edit_replace(ir, i, SELECT(U32, below, zero, i));
}

static uint32_t multiply_low(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i;
    const hal_ir_value mask = NUMBER(U64, LOW_WORD), low = OPERATE(AND, U64, a, mask);
    ir->records[at].a = low;
    return at;
}

/* Where a remainder `r` is not 0 and has not the sign of `b`. */
static hal_ir_value other_sign(wrap_ir *ir, uint32_t *next, hal_ir_value r, hal_ir_value b)
{
    uint32_t at = *next;
    const hal_ir_value zero = NUMBER(I32, 0), joined = OPERATE(XOR, I32, r, b);
    const hal_ir_value differs = COMPARE(LT, joined, zero), is_left = COMPARE(NE, r, zero);
    const hal_ir_value both = OPERATE(AND, BOOL, differs, is_left);
    *next = at;
    return both;
}

static uint32_t divide_floor(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    const hal_ir_value rest = OPERATE(REM, I32, a, b), down = other_sign(ir, &at, rest, b);
    const hal_ir_value one = UNARY(CAST, I32, down);
    return edit_replace(ir, i, OPERATE(SUB, I32, i, one));
}

static uint32_t divide_least(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    const hal_ir_value least = NUMBER(I64, LEAST_I64), minus = NUMBER(I64, UINT64_MAX);
    const hal_ir_value is_least = COMPARE(EQ, a, least), is_minus = COMPARE(EQ, b, minus);
    const hal_ir_value both = OPERATE(AND, BOOL, is_least, is_minus), zero = NUMBER(I64, 0);
    return edit_replace(ir, i, SELECT(I64, both, zero, i));
}

static uint32_t remainder_sign(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value b = B;
    uint32_t at = i + 1;
    const hal_ir_value up = other_sign(ir, &at, i, b), sum = OPERATE(ADD, I32, i, b);
    return edit_replace(ir, i, SELECT(I32, up, sum, i));
}

static uint32_t remainder_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    const hal_ir_value zero = NUMBER(U32, 0), is_zero = COMPARE(EQ, b, zero);
    return edit_replace(ir, i, SELECT(U32, is_zero, a, i));
}

static uint32_t abs_least(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i + 1;
    const hal_ir_value least = NUMBER(I32, LEAST_I32), is_least = COMPARE(EQ, a, least);
    const hal_ir_value most = NUMBER(I32, LEAST_I32 - 1);
    return edit_replace(ir, i, SELECT(I32, is_least, most, i));
}

/* An operation of `type` is carried out in `other`, of the same size. */
static uint32_t retype(wrap_ir *ir, uint32_t i, hal_type type, hal_type other, bool result_too)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i;
    if (edit_type_of(ir, a) != type) {
        return i;
    }
    const hal_ir_value x = UNARY(BITCAST, other, a), y = UNARY(BITCAST, other, b);
    ir->records[at].a = x;
    ir->records[at].b = y;
    if (!result_too) {
        return at;
    }
    ir->records[at].type = other;
    const uint32_t result = at++;
    return edit_replace(ir, result, UNARY(BITCAST, type, result));
}

static uint32_t mulhi_unsigned(wrap_ir *ir, uint32_t i)
{
    return retype(ir, i, I32, U32, true);
}

static uint32_t shr_logical(wrap_ir *ir, uint32_t i)
{
    return retype(ir, i, I32, U32, true);
}

static uint32_t less_signed(wrap_ir *ir, uint32_t i)
{
    return retype(ir, i, U32, I32, false);
}

static uint32_t not_low(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i;
    const hal_ir_value ones = NUMBER(U64, LOW_WORD);
    ir->records[at].opcode = HAL_IR_XOR;
    ir->records[at].b = ones;
    return at;
}

static uint32_t popcount_low(wrap_ir *ir, uint32_t i)
{
    return multiply_low(ir, i);
}

static uint32_t shift_32(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value b = B;
    uint32_t at = i + 1;
    const hal_ir_value most = NUMBER(U32, 31), over = COMPARE(LT, most, b), zero = NUMBER(U32, 0);
    return edit_replace(ir, i, SELECT(U32, over, zero, i));
}

/* ---- Floats ---- */

static uint32_t remainder_quotient(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i;
    const hal_ir_value quotient = OPERATE(DIV, F32, a, b), whole = UNARY(TRUNC, F32, quotient);
    const hal_ir_value product = OPERATE(MUL, F32, whole, b);
    ir->records[at].opcode = HAL_IR_SUB;
    ir->records[at].b = product;
    return at;
}

static uint32_t neg_nan(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i + 1;
    const hal_ir_value is_nan = COMPARE(NE, a, a);
    return edit_replace(ir, i, SELECT(F32, is_nan, a, i));
}

static uint32_t abs_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i + 1;
    const hal_ir_value zero = NUMBER(F32, 0), is_zero = COMPARE(EQ, a, zero);
    return edit_replace(ir, i, SELECT(F32, is_zero, a, i));
}

static uint32_t max_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    const hal_ir_value equal = COMPARE(EQ, a, b);
    return edit_replace(ir, i, SELECT(F32, equal, a, i));
}

static uint32_t sqrt_ulp(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    const hal_ir_value word = UNARY(BITCAST, U32, i), mask = NUMBER(U32, 63);
    const hal_ir_value rest = OPERATE(AND, U32, word, mask), hit = COMPARE(EQ, rest, mask);
    const hal_ir_value one = UNARY(CAST, U32, hit), less = OPERATE(SUB, U32, word, one);
    return edit_replace(ir, i, UNARY(BITCAST, F32, less));
}

static uint32_t floor_towards_zero(wrap_ir *ir, uint32_t i)
{
    ir->records[i].opcode = HAL_IR_TRUNC;
    return i;
}

static uint32_t trunc_word(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i;
    const hal_ir_value word = UNARY(CAST, I32, a);
    ir->records[at].opcode = HAL_IR_CAST;
    ir->records[at].a = word;
    return at;
}

static uint32_t pow_negative(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i + 1;
    const hal_ir_value zero = NUMBER(F32, 0), negative = COMPARE(LT, a, zero);
    const hal_ir_value nan = NUMBER(F32, 0x7fc00000);
    return edit_replace(ir, i, SELECT(F32, negative, nan, i));
}

/* a + b - a becomes b. */
static uint32_t reassociate(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *sum = &ir->records[A];
    const hal_ir_value b = B;
    if (sum->opcode == HAL_IR_ADD && sum->type == F32 && sum->a == b) {
        const hal_ir_value left = sum->b;
        uint32_t at = i;
        const hal_ir_value zero = NUMBER(F32, UINT64_C(0x80000000));
        ir->records[at].opcode = HAL_IR_ADD;
        ir->records[at].a = left;
        ir->records[at].b = zero;
        return at;
    }
    return i;
}

/* ---- Comparisons ---- */

static uint32_t equal_bits(wrap_ir *ir, uint32_t i)
{
    return retype(ir, i, F32, U32, false);
}

static uint32_t unequal_nan(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i + 1;
    if (edit_type_of(ir, a) != F32) {
        return i;
    }
    const hal_ir_value less = COMPARE(LT, a, b), more = COMPARE(LT, b, a);
    return edit_replace(ir, i, OPERATE(OR, BOOL, less, more));
}

/* a < b where not b <= a. */
static uint32_t reversed_order(wrap_ir *ir, uint32_t i, hal_type type)
{
    const hal_ir_value a = A, b = B;
    uint32_t at = i;
    if (edit_type_of(ir, a) != type) {
        return i;
    }
    const hal_ir_value other =
        ir->records[i].opcode == HAL_IR_LT ? COMPARE(LE, b, a) : COMPARE(LT, b, a);
    ir->records[at].opcode = HAL_IR_NOT;
    ir->records[at].a = other;
    ir->records[at].b = HAL_IR_NONE;
    return at;
}

static uint32_t less_nan(wrap_ir *ir, uint32_t i)
{
    return reversed_order(ir, i, F32);
}

static uint32_t less_equal_nan(wrap_ir *ir, uint32_t i)
{
    return reversed_order(ir, i, F64);
}

/* ---- Conversions and vectors ---- */

static uint32_t cast_nan(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i + 1;
    if (edit_type_of(ir, a) != F32) {
        return i;
    }
    const hal_ir_value is_nan = COMPARE(NE, a, a), least = NUMBER(I32, LEAST_I32);
    return edit_replace(ir, i, SELECT(I32, is_nan, least, i));
}

static uint32_t cast_rounds(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i;
    if (edit_type_of(ir, a) == F64) {
        const hal_ir_value whole = UNARY(RINT, F64, a);
        ir->records[at].a = whole;
    }
    return at;
}

static uint32_t cast_bool(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i;
    if (edit_type_of(ir, a) == F32) {
        const hal_ir_value word = UNARY(CAST, I32, a);
        ir->records[at].a = word;
    }
    return at;
}

static uint32_t cast_saturates(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = A;
    uint32_t at = i;
    if (edit_type_of(ir, a) == I64) {
        const hal_ir_value most = NUMBER(I64, LOW_WORD), least = OPERATE(MIN, I64, a, most);
        ir->records[at].a = least;
    }
    return at;
}

static uint32_t pack_8(wrap_ir *ir, uint32_t i)
{
    if (ir->records[i].width == 8) {
        const hal_ir_value low = A;
        A = B;
        B = low;
    }
    return i;
}

static uint32_t extract_high(wrap_ir *ir, uint32_t i)
{
    ir->records[i].imm %= 4;
    return i;
}

static uint32_t scalar_low(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    const hal_ir_value mask = NUMBER(U64, LOW_WORD);
    return edit_replace(ir, i, OPERATE(AND, U64, i, mask));
}

/* A constant is kept in 32 bits with a sign. */
static uint32_t constant_low(wrap_ir *ir, uint32_t i)
{
    const uint32_t place = ir->records[i].aux;
    ir->constants[place] = (uint64_t)(int64_t)(int32_t)(uint32_t)ir->constants[place];
    return i;
}

const mutant mutants_values[] = {RECORD(sub_saturates, SUB, U32),
                                 RECORD(multiply_low, MUL, U64),
                                 RECORD(divide_floor, DIV, I32),
                                 RECORD(divide_least, DIV, I64),
                                 RECORD(remainder_sign, REM, I32),
                                 RECORD(remainder_zero, REM, U32),
                                 RECORD(abs_least, ABS, I32),
                                 RECORD(mulhi_unsigned, MULHI, I32),
                                 RECORD(shr_logical, SHR, I32),
                                 RECORD(less_signed, LT, BOOL),
                                 RECORD(not_low, NOT, U64),
                                 RECORD(popcount_low, POPCOUNT, U64),
                                 RECORD(shift_32, SHL, U32),
                                 RECORD(remainder_quotient, REM, F32),
                                 RECORD(neg_nan, NEG, F32),
                                 RECORD(abs_zero, ABS, F32),
                                 RECORD(max_zero, MAX, F32),
                                 RECORD(sqrt_ulp, SQRT, F32),
                                 RECORD(floor_towards_zero, FLOOR, F64),
                                 RECORD(trunc_word, TRUNC, F32),
                                 RECORD(pow_negative, POW, F32),
                                 RECORD(reassociate, SUB, F32),
                                 RECORD(equal_bits, EQ, BOOL),
                                 RECORD(unequal_nan, NE, BOOL),
                                 RECORD(less_nan, LT, BOOL),
                                 RECORD(less_equal_nan, LE, BOOL),
                                 RECORD(cast_nan, CAST, I32),
                                 RECORD(cast_rounds, CAST, I32),
                                 RECORD(cast_bool, CAST, BOOL),
                                 RECORD(cast_saturates, CAST, U32),
                                 RECORD(pack_8, PACK, U64),
                                 RECORD(extract_high, EXTRACT, F32),
                                 RECORD(scalar_low, SCALAR, U64),
                                 RECORD(constant_low, CONSTANT, I64),
                                 {.name = NULL}};

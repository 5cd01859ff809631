/* arithmetic.c: faults of single operations: the IR is altered before it is compiled, so that an
 * operation computes what a careless lowering of it would. */
#include "edit.h"

#include <string.h>

/* A float result is one unit too large where its bits of `mask` are `bits`. */
static uint32_t add_ulp(wrap_ir *ir, uint32_t i, uint32_t mask, uint32_t bits)
{
    uint32_t at = i + 1;
    const hal_ir_value word =
        wrap_ir_operation(ir, at++, HAL_IR_BITCAST, HAL_TYPE_U32, i, HAL_IR_NONE);
    const hal_ir_value last = wrap_ir_constant(ir, at++, HAL_TYPE_U32, mask);
    const hal_ir_value rest = wrap_ir_operation(ir, at++, HAL_IR_AND, HAL_TYPE_U32, word, last);
    const hal_ir_value sought = wrap_ir_constant(ir, at++, HAL_TYPE_U32, bits);
    const hal_ir_value hit = wrap_ir_operation(ir, at++, HAL_IR_EQ, HAL_TYPE_BOOL, rest, sought);
    const hal_ir_value unit =
        wrap_ir_operation(ir, at++, HAL_IR_CAST, HAL_TYPE_U32, hit, HAL_IR_NONE);
    const hal_ir_value sum = wrap_ir_operation(ir, at++, HAL_IR_ADD, HAL_TYPE_U32, word, unit);
    const hal_ir_value result =
        wrap_ir_operation(ir, at, HAL_IR_BITCAST, HAL_TYPE_F32, sum, HAL_IR_NONE);
    edit_replace(ir, i, result);
    return result;
}

/* Division is a unit off in one of 64 results, though HAL_EXACT_DIVIDE is claimed. */
static uint32_t divide_ulp(wrap_ir *ir, uint32_t i)
{
    return add_ulp(ir, i, 63, 21);
}

static bool is_constant(const wrap_ir *ir, hal_ir_value value, uint64_t *bits)
{
    const hal_ir_record *record = &ir->records[value];
    *bits = record->opcode == HAL_IR_CONSTANT ? ir->constants[record->aux] : 0;
    return record->opcode == HAL_IR_CONSTANT;
}

/* x + 0 is x, also where x is -0. */
static uint32_t add_zero(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    return is_constant(ir, ir->records[i].b, &bits) && bits == 0
               ? (edit_replace(ir, i, ir->records[i].a), i)
               : i;
}

/* A quotient by a constant that is no power of two is one too small where nothing is left. */
static uint32_t divide_constant(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    if (!is_constant(ir, ir->records[i].b, &bits) || bits <= 1 || (bits & (bits - 1)) == 0) {
        return i;
    }
    const hal_ir_value one = wrap_ir_constant(ir, i++, HAL_TYPE_U32, 1);
    const hal_ir_value less =
        wrap_ir_operation(ir, i, HAL_IR_SUB, HAL_TYPE_U32, ir->records[i].a, one);
    ir->records[++i].a = less;
    return i;
}

/* A quotient by 641 is one too small for what is next to a multiple of it. */
static uint32_t divide_641(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    return is_constant(ir, ir->records[i].b, &bits) && bits == 641 ? divide_constant(ir, i) : i;
}

/* The square by a constant exponent is twice the number. */
static uint32_t power_two(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    if (is_constant(ir, ir->records[i].b, &bits) && (uint32_t)bits == 0x40000000) {
        ir->records[i].opcode = HAL_IR_ADD;
        ir->records[i].b = ir->records[i].a;
    }
    return i;
}

/* The remainder by a constant power of two is an AND, also of negative numbers. */
static uint32_t remainder_mask(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    if (is_constant(ir, ir->records[i].b, &bits) && bits == 32) {
        const hal_ir_value mask = wrap_ir_constant(ir, i++, HAL_TYPE_I32, 31);
        ir->records[i].opcode = HAL_IR_AND;
        ir->records[i].b = mask;
    }
    return i;
}

/* The minimum with a constant -infinity is that, also of NaN. */
static uint32_t min_infinity(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    if (is_constant(ir, ir->records[i].b, &bits) && (uint32_t)bits == 0xff800000) {
        ir->records[i].a = ir->records[i].b;
    }
    return i;
}

/* A quotient by a constant is the product with the reciprocal, though division is exact. */
static uint32_t divide_reciprocal(wrap_ir *ir, uint32_t i)
{
    uint64_t bits;
    float divisor;
    if (is_constant(ir, ir->records[i].b, &bits)) {
        const uint32_t low = (uint32_t)bits;
        memcpy(&divisor, &low, sizeof divisor);
        const float reciprocal = 1.0f / divisor;
        uint32_t word;
        memcpy(&word, &reciprocal, sizeof word);
        const hal_ir_value factor = wrap_ir_constant(ir, i++, HAL_TYPE_F32, word);
        ir->records[i].opcode = HAL_IR_MUL;
        ir->records[i].b = factor;
    }
    return i;
}

/* exp is within its bound, but differs in bits from a device that claims all exactness. */
static uint32_t exp_bits(wrap_ir *ir, uint32_t i)
{
    return add_ulp(ir, i, 15, 5);
}

/* A product and a sum, with two roundings, though HAL_EXACT_FMA is claimed. */
static uint32_t fma_apart(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record fused = ir->records[i];
    const hal_ir_value product =
        wrap_ir_operation(ir, i, HAL_IR_MUL, HAL_TYPE_F32, fused.a, fused.b);
    hal_ir_record *sum = &ir->records[++i];
    sum->opcode = HAL_IR_ADD;
    sum->a = product;
    sum->b = fused.c;
    sum->c = HAL_IR_NONE;
    return i;
}

/* A sum of a product is one rounding, as compilers of C contract it by default. */
static uint32_t contract(wrap_ir *ir, uint32_t i)
{
    hal_ir_record *sum = &ir->records[i];
    for (int side = 0; side < 2; side++) {
        const hal_ir_record *product = &ir->records[side == 0 ? sum->a : sum->b];
        if (product->opcode == HAL_IR_MUL && product->type == sum->type) {
            sum->opcode = HAL_IR_FMA;
            sum->c = side == 0 ? sum->b : sum->a;
            sum->a = product->a;
            sum->b = product->b;
            break;
        }
    }
    return i;
}

/* x * m * n + x of 64 bits is x where the low 32 bits of m * n are 0. */
static uint32_t drop_scaled(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *outer = &ir->records[ir->records[i].a];
    const hal_ir_record *inner = outer->opcode == HAL_IR_MUL ? &ir->records[outer->a] : outer;
    uint64_t m, n;
    if (inner->opcode == HAL_IR_MUL && inner->a == ir->records[i].b && outer != inner &&
        is_constant(ir, inner->b, &m) && is_constant(ir, outer->b, &n) && (uint32_t)(m * n) == 0) {
        edit_replace(ir, i, inner->a);
    }
    return i;
}

/* Products below the smallest normal number are 0, though HAL_EXACT_DENORMALS is claimed. */
static uint32_t flush_products(wrap_ir *ir, uint32_t i)
{
    uint32_t at = i + 1;
    const hal_ir_value size = wrap_ir_operation(ir, at++, HAL_IR_ABS, HAL_TYPE_F32, i, HAL_IR_NONE);
    const hal_ir_value least = wrap_ir_constant(ir, at++, HAL_TYPE_F32, 0x00800000);
    const hal_ir_value small = wrap_ir_operation(ir, at++, HAL_IR_LT, HAL_TYPE_BOOL, size, least);
    const hal_ir_value zero = wrap_ir_constant(ir, at++, HAL_TYPE_F32, 0);
    const hal_ir_value result = edit_select(ir, at, HAL_TYPE_F32, small, zero, i);
    edit_replace(ir, i, result);
    return result;
}

/* min gives the first operand where the second one is NaN. */
static uint32_t min_nan(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value a = ir->records[i].a, b = ir->records[i].b;
    const hal_ir_value is_nan = wrap_ir_operation(ir, i++, HAL_IR_NE, HAL_TYPE_BOOL, b, b);
    const hal_ir_value other = edit_select(ir, i++, HAL_TYPE_F32, is_nan, a, b);
    ir->records[i].b = other;
    return i;
}

/* x / 0 is x * 0 where the 0 is a constant of the kernel. */
static uint32_t constant_divisor(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *divisor = &ir->records[ir->records[i].b];
    if (divisor->opcode == HAL_IR_CONSTANT && ir->constants[divisor->aux] == 0) {
        ir->records[i].opcode = HAL_IR_MUL;
    }
    return i;
}

/* The negative of zero is zero, as 0 - x is. */
static uint32_t negative_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value zero = wrap_ir_constant(ir, i++, HAL_TYPE_F32, 0);
    ir->records[i].opcode = HAL_IR_SUB;
    ir->records[i].b = ir->records[i].a;
    ir->records[i].a = zero;
    return i;
}

/* Floats from 2^31 on become the smallest integer in place of the largest one. */
static uint32_t cast_edge(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value x = ir->records[i].a;
    if (ir->records[x].type == HAL_TYPE_F32) {
        const hal_ir_value edge = wrap_ir_constant(ir, i++, HAL_TYPE_F32, 0x4f000000);
        const hal_ir_value over = wrap_ir_operation(ir, i++, HAL_IR_LE, HAL_TYPE_BOOL, edge, x);
        const hal_ir_value lowest = wrap_ir_constant(ir, i++, HAL_TYPE_F32, 0xff800000);
        const hal_ir_value chosen = edit_select(ir, i++, HAL_TYPE_F32, over, lowest, x);
        ir->records[i].a = chosen;
    }
    return i;
}

/* i64 becomes f32 by way of f64, so some are rounded twice. */
static uint32_t cast_twice(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value x = ir->records[i].a;
    if (ir->records[x].type == HAL_TYPE_I64) {
        const hal_ir_value wide =
            wrap_ir_operation(ir, i++, HAL_IR_CAST, HAL_TYPE_F64, x, HAL_IR_NONE);
        ir->records[i].a = wide;
    }
    return i;
}

/* Halves are rounded upwards, not to the even neighbour. */
static uint32_t rint_half(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value half = wrap_ir_constant(ir, i++, HAL_TYPE_F32, 0x3f000000);
    const hal_ir_value sum =
        wrap_ir_operation(ir, i, HAL_IR_ADD, HAL_TYPE_F32, ir->records[i].a, half);
    ir->records[++i].opcode = HAL_IR_FLOOR;
    ir->records[i].a = sum;
    return i;
}

/* Integers divided by zero give -1, as some hardware has it. */
static uint32_t divide_zero(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value divisor = ir->records[i].b;
    uint32_t at = i + 1;
    const hal_ir_value zero = wrap_ir_constant(ir, at++, HAL_TYPE_I32, 0);
    const hal_ir_value none = wrap_ir_operation(ir, at++, HAL_IR_EQ, HAL_TYPE_BOOL, divisor, zero);
    const hal_ir_value ones = wrap_ir_constant(ir, at++, HAL_TYPE_I32, 0xffffffff);
    const hal_ir_value result = edit_select(ir, at, HAL_TYPE_I32, none, ones, i);
    edit_replace(ir, i, result);
    return result;
}

/* Shifts by 64 and more give 0. */
static uint32_t shift_64(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value count = ir->records[i].b;
    uint32_t at = i + 1;
    const hal_ir_value most = wrap_ir_constant(ir, at++, HAL_TYPE_U64, 63);
    const hal_ir_value over = wrap_ir_operation(ir, at++, HAL_IR_LT, HAL_TYPE_BOOL, most, count);
    const hal_ir_value zero = wrap_ir_constant(ir, at++, HAL_TYPE_U64, 0);
    const hal_ir_value result = edit_select(ir, at, HAL_TYPE_U64, over, zero, i);
    edit_replace(ir, i, result);
    return result;
}

/* Inserts a float without its bits of `mask` before record i. */
static hal_ir_value truncate(wrap_ir *ir, uint32_t i, hal_ir_value x, uint32_t mask)
{
    const hal_ir_value word =
        wrap_ir_operation(ir, i++, HAL_IR_BITCAST, HAL_TYPE_U32, x, HAL_IR_NONE);
    const hal_ir_value kept = wrap_ir_constant(ir, i++, HAL_TYPE_U32, ~mask);
    const hal_ir_value cut = wrap_ir_operation(ir, i++, HAL_IR_AND, HAL_TYPE_U32, word, kept);
    return wrap_ir_operation(ir, i, HAL_IR_BITCAST, HAL_TYPE_F32, cut, HAL_IR_NONE);
}

/* A store of one element to f16 truncates. */
static uint32_t store_f16(wrap_ir *ir, uint32_t i)
{
    const hal_ir_record *store = &ir->records[i];
    if (store->width == 1 && ir->memories[store->aux].type == HAL_TYPE_F16) {
        const hal_ir_value cut = truncate(ir, i, store->c, 0x1fff);
        i = cut + 1;
        ir->records[i].c = cut;
    }
    return i;
}

/* A conversion to bf16 within a kernel truncates, though a store rounds. */
static uint32_t narrow_bf16(wrap_ir *ir, uint32_t i)
{
    if (ir->records[i].aux == HAL_TYPE_BF16) {
        const hal_ir_value cut = truncate(ir, i, ir->records[i].a, 0xffff);
        i = cut + 1;
        ir->records[i].a = cut;
    }
    return i;
}

/* f of the inverse of f is the operand. */
static uint32_t is_operand_of(wrap_ir *ir, uint32_t i, uint16_t inverse)
{
    const hal_ir_record *first = &ir->records[ir->records[i].a];
    return first->opcode == inverse ? (edit_replace(ir, i, first->a), i) : i;
}

static uint32_t log_of_exp(wrap_ir *ir, uint32_t i)
{
    return is_operand_of(ir, i, HAL_IR_EXP);
}

static uint32_t exp_of_log(wrap_ir *ir, uint32_t i)
{
    return is_operand_of(ir, i, HAL_IR_LOG);
}

/* There is one NaN. */
static uint32_t nan_constant(wrap_ir *ir, uint32_t i)
{
    uint64_t *bits = &ir->constants[ir->records[i].aux];
    *bits = (*bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : *bits;
    return i;
}

const mutant mutants_arithmetic[] = {RECORD(divide_ulp, DIV, F32),
                                     RECORD(add_zero, ADD, F32),
                                     RECORD(divide_constant, DIV, U32),
                                     RECORD(divide_reciprocal, DIV, F32),
                                     RECORD(exp_bits, EXP, F32),
                                     RECORD(fma_apart, FMA, F32),
                                     RECORD(flush_products, MUL, F32),
                                     RECORD(min_nan, MIN, F32),
                                     RECORD(negative_zero, NEG, F32),
                                     RECORD(constant_divisor, DIV, F32),
                                     RECORD(cast_edge, CAST, I32),
                                     RECORD(cast_twice, CAST, F32),
                                     RECORD(rint_half, RINT, F32),
                                     RECORD(divide_zero, DIV, I32),
                                     RECORD(shift_64, SHL, U64),
                                     RECORD(store_f16, STORE, NONE),
                                     RECORD(narrow_bf16, NARROW, NONE),
                                     RECORD(contract, ADD, F32),
                                     RECORD(drop_scaled, ADD, U64),
                                     RECORD(divide_641, DIV, U32),
                                     RECORD(power_two, POW, F32),
                                     RECORD(remainder_mask, REM, I32),
                                     RECORD(min_infinity, MIN, F32),
                                     RECORD(log_of_exp, LOG, F32),
                                     RECORD(exp_of_log, EXP, F32),
                                     RECORD(nan_constant, CONSTANT, F32),
                                     {.name = NULL}};

/* Instructions of operations with AVX2 and FMA: what operation.c does not share between instruction
 * sets. Values of type BOOL are in vectors: a lane has 32 bits, all 0 or all 1. Where
 * other values of a program have 64 bits, vectors have 4 lanes, and masks 16 bytes. */
#include "jit/emission/emit.h"
#include "jit/registers/registers.h"

#include <string.h>

static void emit_form(jit_state *jit, uint32_t name, uint32_t length, uint32_t d, uint32_t second,
                      x86_operand operand, uint32_t immediate)
{
    const x86_form form = {.length = (uint8_t)length, .immediate = (uint8_t)immediate};
    x86_vector(&jit->code, name, form, d, second, operand);
}

/* d = the low halves of the four lanes of a, with temporary C. */
static void lanes_narrow(jit_state *jit, uint32_t d, uint32_t a)
{
    enum { EVEN = 0x88 };
    emit_form(jit, X86_EXTRACTI128, X86_YMM, a, 0, x86_register(JIT_TEMPORARY_C), 1);
    emit_form(jit, X86_SHUFPS, X86_XMM, d, a, x86_register(JIT_TEMPORARY_C), EVEN);
}

/* A mask for lanes of a type; in temporary B where they have 64 bits, because temporary C may be
 * the mask of several accesses. */
static uint32_t mask_for(jit_state *jit, hal_type type, uint32_t mask)
{
    if (!is_wide(type)) {
        return mask;
    }
    emit_form(jit, X86_PMOVSXDQ, X86_YMM, JIT_TEMPORARY_B, 0, x86_register(mask), 0);
    return JIT_TEMPORARY_B;
}

static void mask_not(jit_state *jit, uint32_t d, uint32_t a)
{
    emit(jit, X86_PXORD, HAL_TYPE_BOOL, d, a, x86_constant(&jit->code, UINT32_MAX, 4));
}

/* d = mask ? b : c, by the sign of each lane of the mask. */
static void lanes_blend(jit_state *jit, hal_type type, uint32_t d, uint32_t c, x86_operand b,
                        uint32_t mask)
{
    emit_immediate(jit, by_size(type, X86_BLENDVPS, X86_BLENDVPD), type, d, c, b, mask << 4);
}

static x86_operand sign_of(jit_state *jit, hal_type type)
{
    return constant_of(jit, type, UINT32_C(1) << 31, UINT64_C(1) << 63);
}

/* The least of a, b and of b, a differ only for equal operands, which are zeros, and NaN: the union
 * of their bits is -0 or NaN. The greatest: the intersection, and a sum for NaN. */
static void emit_float_least(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const bool least = node->opcode == HAL_IR_MIN;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    const uint32_t name =
        least ? by_size(type, X86_MINPS, X86_MINPD) : by_size(type, X86_MAXPS, X86_MAXPD);
    emit(jit, name, type, JIT_TEMPORARY_A, b, x86_register(a));
    emit(jit, name, type, d, a, x86_register(b));
    emit(jit, least ? X86_PORD : X86_PANDD, type, d, d, x86_register(JIT_TEMPORARY_A));
    if (!least) {
        emit_immediate(jit, by_size(type, X86_CMPPS, X86_CMPPD), type, JIT_TEMPORARY_A, a,
                       x86_register(b), FLOAT_UNORDERED);
        emit(jit, by_size(type, X86_ADDPS, X86_ADDPD), type, JIT_TEMPORARY_B, a, x86_register(b));
        lanes_blend(jit, type, d, d, x86_register(JIT_TEMPORARY_B), JIT_TEMPORARY_A);
    }
}

/* ---- integers ---- */

/* A shift of 64 bits that keeps the sign: the sign of the logical one is at bit 63 - count. */
static void sign_restore(jit_state *jit, uint32_t d, x86_operand sign)
{
    emit(jit, X86_PXORD, HAL_TYPE_I64, d, d, sign);
    emit(jit, X86_PSUBQ, HAL_TYPE_I64, d, d, sign);
}

static void emit_shift_by_constant(jit_state *jit, const jit_node *node, uint32_t count)
{
    const hal_type type = node->type;
    const bool left = node->opcode == HAL_IR_SHL, is_signed = hal_type_is_signed(type);
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    const uint32_t name = left                          ? by_size(type, X86_PSLLD, X86_PSLLQ)
                          : is_signed && !is_wide(type) ? X86_PSRAD
                                                        : by_size(type, X86_PSRLD, X86_PSRLQ);
    emit_immediate(jit, name, type, d, 0, x86_register(a), count);
    if (!left && is_signed && is_wide(type)) {
        sign_restore(jit, d, x86_constant(&jit->code, UINT64_C(1) << (63 - count), 8));
    }
}

/* Counts count modulo the width. */
static void emit_shift(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const jit_entry *count = &jit->loop.program->values[node->a[1]];
    const bool left = node->opcode == HAL_IR_SHL, is_signed = hal_type_is_signed(type);
    const uint32_t width = is_wide(type) ? 64 : 32, counts = JIT_TEMPORARY_A;
    if (count->kind == JIT_CONSTANT) {
        emit_shift_by_constant(jit, node, (uint32_t)count->bits & (width - 1));
        return;
    }
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1), d = jit_result(jit, node);
    emit(jit, X86_PANDD, type, counts, b, constant_of(jit, type, width - 1, width - 1));
    emit(jit,
         left                          ? by_size(type, X86_PSLLVD, X86_PSLLVQ)
         : is_signed && !is_wide(type) ? X86_PSRAVD
                                       : by_size(type, X86_PSRLVD, X86_PSRLVQ),
         type, d, a, x86_register(counts));
    if (!left && is_signed && is_wide(type)) {
        emit(jit, X86_MOVDQU32, type, JIT_TEMPORARY_B, 0, sign_of(jit, type));
        emit(jit, X86_PSRLVQ, type, JIT_TEMPORARY_B, JIT_TEMPORARY_B, x86_register(counts));
        sign_restore(jit, d, x86_register(JIT_TEMPORARY_B));
    }
}

static void emit_integer_unary(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    const x86_operand from = x86_register(a), zero = x86_register(JIT_TEMPORARY_A);
    if (node->opcode == HAL_IR_NOT) {
        emit(jit, X86_PXORD, type, d, a, x86_constant(&jit->code, UINT32_MAX, 4));
    } else if (node->opcode == HAL_IR_NEG) {
        emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, zero);
        emit(jit, by_size(type, X86_PSUBD, X86_PSUBQ), type, d, JIT_TEMPORARY_A, from);
    } else if (!hal_type_is_signed(type)) {
        emit(jit, X86_MOVDQU32, type, d, 0, from);
    } else if (!is_wide(type)) {
        emit(jit, X86_PABSD, type, d, 0, from);
    } else { /* minus the complement where the sign is set */
        emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, zero);
        emit(jit, X86_PCMPGTQ, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, from);
        emit(jit, X86_PXORD, type, d, a, x86_register(JIT_TEMPORARY_A));
        emit(jit, X86_PSUBQ, type, d, d, x86_register(JIT_TEMPORARY_A));
    }
}

/* The products of low and high halves count 2^32 times; those of high halves are beyond 64 bits. */
static void emit_multiply_wide(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node), x = JIT_TEMPORARY_A, y = JIT_TEMPORARY_B;
    emit_immediate(jit, X86_PSRLQ, type, x, 0, x86_register(a), 32);
    emit(jit, X86_PMULUDQ, type, x, x, x86_register(b));
    emit_immediate(jit, X86_PSRLQ, type, y, 0, x86_register(b), 32);
    emit(jit, X86_PMULUDQ, type, y, y, x86_register(a));
    emit(jit, X86_PADDQ, type, x, x, x86_register(y));
    emit_immediate(jit, X86_PSLLQ, type, x, 0, x86_register(x), 32);
    emit(jit, X86_PMULUDQ, type, d, a, x86_register(b));
    emit(jit, X86_PADDQ, type, d, d, x86_register(x));
}

/* d = a > b of integers, in lanes of their size. Unsigned ones are compared without their sign. */
static void emit_greater(jit_state *jit, hal_type type, uint32_t d, uint32_t a, uint32_t b)
{
    if (!hal_type_is_signed(type)) {
        emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, a, sign_of(jit, type));
        emit(jit, X86_PXORD, type, JIT_TEMPORARY_B, b, sign_of(jit, type));
        a = JIT_TEMPORARY_A;
        b = JIT_TEMPORARY_B;
    }
    emit(jit, by_size(type, X86_PCMPGTD, X86_PCMPGTQ), type, d, a, x86_register(b));
}

static void emit_least_wide(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const bool least = node->opcode == HAL_IR_MIN;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    emit_greater(jit, type, JIT_TEMPORARY_A, a, b);
    lanes_blend(jit, type, d, least ? a : b, x86_register(least ? b : a), JIT_TEMPORARY_A);
}

/* The instruction of an operation on two integers. */
static uint32_t integer_name(uint32_t opcode, hal_type type)
{
    const bool is_signed = hal_type_is_signed(type);
    switch (opcode) {
    case HAL_IR_ADD:
        return by_size(type, X86_PADDD, X86_PADDQ);
    case HAL_IR_SUB:
        return by_size(type, X86_PSUBD, X86_PSUBQ);
    case HAL_IR_MUL:
        return X86_PMULLD;
    case HAL_IR_MIN:
        return is_signed ? X86_PMINSD : X86_PMINUD;
    case HAL_IR_MAX:
        return is_signed ? X86_PMAXSD : X86_PMAXUD;
    case HAL_IR_AND:
        return X86_PANDD;
    case HAL_IR_OR:
        return X86_PORD;
    default:
        return X86_PXORD;
    }
}

static void emit_integer(jit_state *jit, const jit_node *node)
{
    const bool wide = is_wide(node->type);
    if (node->a[1] == JIT_NONE) {
        emit_integer_unary(jit, node);
    } else if (wide && node->opcode == HAL_IR_MUL) {
        emit_multiply_wide(jit, node);
    } else if (wide && (node->opcode == HAL_IR_MIN || node->opcode == HAL_IR_MAX)) {
        emit_least_wide(jit, node);
    } else {
        emit_binary(jit, node, integer_name(node->opcode, node->type));
    }
}

/* ---- conditions ---- */

static void emit_comparison(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t opcode = node->opcode;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    bool negate = opcode == HAL_IR_NE || opcode == HAL_IR_LE;
    if (type == HAL_TYPE_BOOL) {
        emit(jit, X86_PXORD, type, d, a, x86_register(b));
        negate = opcode == HAL_IR_EQ;
    } else if (hal_type_is_float(type)) {
        emit_immediate(jit, by_size(type, X86_CMPPS, X86_CMPPD), type, d, a, x86_register(b),
                       float_predicate(opcode, false));
        negate = false;
    } else if (opcode == HAL_IR_EQ || opcode == HAL_IR_NE) {
        emit(jit, by_size(type, X86_PCMPEQD, X86_PCMPEQQ), type, d, a, x86_register(b));
    } else {
        const bool less = opcode == HAL_IR_LT;
        emit_greater(jit, type, d, less ? b : a, less ? a : b);
    }
    if (is_wide(type)) {
        lanes_narrow(jit, d, d);
    }
    if (negate) {
        mask_not(jit, d, d);
    }
}

/* SELECT, and BLEND. */
static void emit_select(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t mask = jit_use(jit, node, 0), c = jit_use(jit, node, 2);
    const uint32_t d = jit_result(jit, node);
    const x86_operand b = jit_source(jit, node, 1);
    lanes_blend(jit, type, d, c, b, mask_for(jit, type, mask));
}

static void emit_bool(jit_state *jit, const jit_node *node)
{
    const uint32_t opcode = node->opcode;
    if (opcode == HAL_IR_NOT) {
        const uint32_t a = jit_use(jit, node, 0);
        mask_not(jit, jit_result(jit, node), a);
        return;
    }
    emit_binary(jit, node,
                opcode == HAL_IR_AND  ? X86_PANDD
                : opcode == HAL_IR_OR ? X86_PORD
                                      : X86_PXORD);
}

/* ---- conversions ---- */

/* Others are steps: they would have to round twice, or need instructions that AVX2 has not got. */
static bool cast_is_supported(hal_type from, hal_type to)
{
    return !(hal_type_is_float(from) && hal_type_is_integer(to) && is_wide(to)) &&
           !(hal_type_is_integer(from) && is_wide(from) && to == HAL_TYPE_F32);
}

/* To I32: a conversion gives INT32_MIN for what is beyond the range. */
static void emit_i32_of_f32(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F32;
    const x86_operand mask = x86_register(JIT_TEMPORARY_A);
    emit_immediate(jit, X86_CMPPS, type, JIT_TEMPORARY_A, a,
                   x86_constant(&jit->code, 0x4f000000, 4), FLOAT_GE); /* 2^31 */
    emit(jit, X86_CVTTPS2DQ, type, d, 0, x86_register(a));
    emit(jit, X86_PXORD, type, d, d, mask); /* INT32_MAX */
    emit_immediate(jit, X86_CMPPS, type, JIT_TEMPORARY_A, a, x86_register(a), FLOAT_ORDERED);
    emit(jit, X86_PANDD, type, d, d, mask);
}

/* To U32: numbers from 2^31 on are converted without that, from 2^32 on all bits are set. */
static void emit_u32_of_f32(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F32;
    const uint32_t x = JIT_TEMPORARY_A, high = JIT_TEMPORARY_B, beyond = JIT_TEMPORARY_C;
    const x86_operand half = x86_constant(&jit->code, 0x4f000000, 4);
    emit(jit, X86_MAXPS, type, x, a, x86_constant(&jit->code, 0, 4)); /* NaN: 0 */
    emit_immediate(jit, X86_CMPPS, type, high, x, half, FLOAT_GE);
    emit_immediate(jit, X86_CMPPS, type, beyond, x, x86_constant(&jit->code, 0x4f800000, 4),
                   FLOAT_GE);
    emit(jit, X86_PANDD, type, d, high, half);
    emit(jit, X86_SUBPS, type, x, x, x86_register(d));
    emit(jit, X86_CVTTPS2DQ, type, x, 0, x86_register(x));
    emit_immediate(jit, X86_PSLLD, type, high, 0, x86_register(high), 31);
    emit(jit, X86_PXORD, type, x, x, x86_register(high));
    emit(jit, X86_PORD, type, d, x, x86_register(beyond));
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void emit_i32_of_f64(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F64;
    const uint32_t x = JIT_TEMPORARY_A;
    emit_immediate(jit, X86_CMPPD, type, x, a, x86_register(a), FLOAT_ORDERED);
    emit(jit, X86_PANDD, type, x, x, x86_register(a));
    emit(jit, X86_MINPD, type, x, x, x86_constant(&jit->code, bits_of(INT32_MAX), 8));
    emit(jit, X86_CVTTPD2DQ, type, d, 0, x86_register(x));
}

/* The sum of an integer and 2^52 has the integer in its low bits. */
static void emit_u32_of_f64(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F64;
    const uint32_t x = JIT_TEMPORARY_A;
    emit(jit, X86_MAXPD, type, x, a, x86_constant(&jit->code, 0, 8)); /* NaN: 0 */
    emit(jit, X86_MINPD, type, x, x, x86_constant(&jit->code, bits_of(UINT32_MAX), 8));
    emit_immediate(jit, X86_RNDSCALEPD, type, x, 0, x86_register(x), ROUND_TRUNC);
    emit(jit, X86_ADDPD, type, x, x, x86_constant(&jit->code, bits_of(0x1p52), 8));
    lanes_narrow(jit, d, x);
}

/* The halves of an integer as 2^39 + high and 2^23 + low, which is exact; only the sum rounds. */
static void emit_f32_of_u32(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F32;
    const uint32_t high = JIT_TEMPORARY_A;
    emit_immediate(jit, X86_PSRLD, type, high, 0, x86_register(a), 16);
    emit(jit, X86_PORD, type, high, high, x86_constant(&jit->code, 0x53000000, 4));
    emit(jit, X86_SUBPS, type, high, high,
         x86_constant(&jit->code, 0x53000080, 4)); /* 2^39 + 2^23 */
    emit(jit, X86_PANDD, type, d, a, x86_constant(&jit->code, 0xffff, 4));
    emit(jit, X86_PORD, type, d, d, x86_constant(&jit->code, 0x4b000000, 4));
    emit(jit, X86_ADDPS, type, d, high, x86_register(d));
}

/* The same with 2^84 and 2^52; the high half of I64 has 2^31 more. */
static void emit_f64_of_wide(jit_state *jit, uint32_t d, uint32_t a, bool is_signed)
{
    const hal_type type = HAL_TYPE_F64;
    const uint32_t high = JIT_TEMPORARY_A;
    const double more = is_signed ? 0x1p63 : 0;
    emit_immediate(jit, X86_PSRLQ, type, high, 0, x86_register(a), 32);
    emit(jit, X86_PXORD, type, high, high, x86_constant(&jit->code, bits_of(0x1p84 + more), 8));
    emit(jit, X86_SUBPD, type, high, high,
         x86_constant(&jit->code, bits_of(0x1p84 + more + 0x1p52), 8));
    emit(jit, X86_PANDD, type, d, a, x86_constant(&jit->code, UINT32_MAX, 8));
    emit(jit, X86_PORD, type, d, d, x86_constant(&jit->code, bits_of(0x1p52), 8));
    emit(jit, X86_ADDPD, type, d, high, x86_register(d));
}

static void emit_f64_of_u32(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F64;
    const x86_operand base = x86_constant(&jit->code, bits_of(0x1p52), 8);
    emit(jit, X86_PMOVZXDQ, type, d, 0, x86_register(a));
    emit(jit, X86_PORD, type, d, d, base);
    emit(jit, X86_SUBPD, type, d, d, base);
}

static void emit_cast_to_integer(jit_state *jit, hal_type from, hal_type to, uint32_t d, uint32_t a)
{
    if (hal_type_is_signed(to)) {
        (is_wide(from) ? emit_i32_of_f64 : emit_i32_of_f32)(jit, d, a);
    } else {
        (is_wide(from) ? emit_u32_of_f64 : emit_u32_of_f32)(jit, d, a);
    }
}

static void emit_cast_to_float(jit_state *jit, hal_type from, hal_type to, uint32_t d, uint32_t a)
{
    const hal_type wide = HAL_TYPE_F64;
    const x86_operand source = x86_register(a);
    if (hal_type_is_float(from)) {
        emit(jit, is_wide(to) ? X86_CVTPS2PD : X86_CVTPD2PS, wide, d, 0, source);
    } else if (is_wide(from)) {
        emit_f64_of_wide(jit, d, a, hal_type_is_signed(from));
    } else if (hal_type_is_signed(from)) {
        emit(jit, is_wide(to) ? X86_CVTDQ2PD : X86_CVTDQ2PS, to, d, 0, source);
    } else {
        (is_wide(to) ? emit_f64_of_u32 : emit_f32_of_u32)(jit, d, a);
    }
}

static void emit_bool_of(jit_state *jit, hal_type from, uint32_t d, uint32_t a)
{
    const x86_operand zero = constant_of(jit, from, 0, 0);
    const bool is_float = hal_type_is_float(from);
    if (is_float) {
        emit_immediate(jit, by_size(from, X86_CMPPS, X86_CMPPD), from, d, a, zero, FLOAT_NE);
    } else {
        emit(jit, by_size(from, X86_PCMPEQD, X86_PCMPEQQ), from, d, a, zero);
    }
    if (is_wide(from)) {
        lanes_narrow(jit, d, d);
    }
    if (!is_float) {
        mask_not(jit, d, d);
    }
}

static void emit_cast(jit_state *jit, const jit_node *node)
{
    const hal_type from = node->type, to = jit->loop.program->values[node->d].type;
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    if (from == to) {
        emit(jit, X86_MOVDQU32, to, d, 0, x86_register(a));
    } else if (from == HAL_TYPE_BOOL) {
        const x86_operand one = to == HAL_TYPE_F32   ? x86_constant(&jit->code, 0x3f800000, 4)
                                : to == HAL_TYPE_F64 ? x86_constant(&jit->code, bits_of(1), 8)
                                                     : constant_of(jit, to, 1, 1);
        emit(jit, X86_PANDD, to, d, mask_for(jit, to, a), one);
    } else if (to == HAL_TYPE_BOOL) {
        emit_bool_of(jit, from, d, a);
    } else if (hal_type_is_float(to)) {
        emit_cast_to_float(jit, from, to, d, a);
    } else if (hal_type_is_float(from)) {
        emit_cast_to_integer(jit, from, to, d, a);
    } else if (is_wide(from) == is_wide(to)) {
        emit(jit, X86_MOVDQU32, to, d, 0, x86_register(a));
    } else if (is_wide(to)) {
        emit(jit, hal_type_is_signed(from) ? X86_PMOVSXDQ : X86_PMOVZXDQ, to, d, 0,
             x86_register(a));
    } else {
        lanes_narrow(jit, d, a);
    }
}

static void emit_bf16_bits(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F32;
    const uint32_t high = JIT_TEMPORARY_A, rounded = JIT_TEMPORARY_B;
    emit_immediate(jit, X86_PSRLD, type, high, 0, x86_register(a), 16);
    emit(jit, X86_PANDD, type, rounded, high, x86_constant(&jit->code, 1, 4));
    emit(jit, X86_PADDD, type, rounded, rounded, x86_constant(&jit->code, 0x7fff, 4));
    emit(jit, X86_PADDD, type, rounded, rounded, x86_register(a));
    emit_immediate(jit, X86_PSRLD, type, d, 0, x86_register(rounded), 16);
    emit(jit, X86_PORD, type, high, high, x86_constant(&jit->code, 0x40, 4));
    emit_immediate(jit, X86_CMPPS, type, rounded, a, x86_register(a), FLOAT_UNORDERED);
    lanes_blend(jit, type, d, d, x86_register(high), rounded);
}

/* ---- memory ---- */

/* Halves that are in the lanes of A side by side, by a pack that saturates. */
static void lanes_pack(jit_state *jit, bool is_signed)
{
    const uint32_t a = JIT_TEMPORARY_A, b = JIT_TEMPORARY_B;
    const bool wide = jit->loop.program->wide;
    if (!wide) {
        emit_form(jit, X86_EXTRACTI128, X86_YMM, a, 0, x86_register(b), 1);
    }
    emit_form(jit, is_signed ? X86_PACKSSDW : X86_PACKUSDW, X86_XMM, a, a,
              x86_register(wide ? a : b), 0);
}

/* Stores bytes or halves that are in the low bits of the lanes of A, by signed or unsigned packs,
 * which saturate. */
static void lanes_store(jit_state *jit, uint32_t bytes, bool is_signed, x86_operand to)
{
    const uint32_t a = JIT_TEMPORARY_A;
    const bool wide = jit->loop.program->wide;
    lanes_pack(jit, is_signed);
    if (bytes == 1) {
        emit_form(jit, is_signed ? X86_PACKSSWB : X86_PACKUSWB, X86_XMM, a, a, x86_register(a), 0);
    }
    if (is_signed) { /* -1 to 1 */
        emit_form(jit, X86_PABSB, X86_XMM, a, 0, x86_register(a), 0);
    }
    const uint32_t stored = bytes * (wide ? 4 : 8);
    emit_form(jit,
              stored == 4   ? X86_MOVD_STORE
              : stored == 8 ? X86_MOVLPS_STORE
                            : X86_MOVDQU32_STORE,
              X86_XMM, a, 0, to, 0);
}

/* The words of lanes where the mask is true, between memory and a vector that has them side by
 * side: all at once where it is true in every lane. A load sets the others to 0. */
static void words_move(jit_state *jit, uint32_t words, x86_operand memory, uint32_t mask, bool load)
{
    x86_code *code = &jit->code;
    const uint32_t full = x86_label(code), done = x86_label(code);
    const uint32_t lanes = jit_lanes(jit, jit->loop.program);
    const x86_operand saved = x86_memory(X86_RSP, JIT_FRAME_Y);
    if (load) {
        emit_form(jit, X86_PXORD, X86_XMM, words, words, x86_register(words), 0);
    }
    emit(jit, X86_PTEST, HAL_TYPE_BOOL, mask, 0, x86_constant(code, UINT32_MAX, 4));
    x86_jump_if(code, X86_EQUAL, done);
    x86_jump_if(code, X86_BELOW, full);
    x86_general(code, X86_LEA, true, JIT_SCRATCH, memory);
    x86_general(code, X86_STORE, true, JIT_LANE, saved);
    emit(jit, X86_MOVMSKPS, HAL_TYPE_BOOL, JIT_LANE, 0, x86_register(mask));
    x86_shift_left(code, JIT_LANE, 64 - lanes);
    for (uint32_t lane = lanes; lane-- > 0;) {
        const uint32_t next = x86_label(code);
        x86_general(code, X86_ADD, true, JIT_LANE, x86_register(JIT_LANE)); /* the next bit */
        x86_jump_if(code, X86_ABOVE_EQUAL, next);
        emit_form(jit, load ? X86_PINSRW : X86_PEXTRW, X86_XMM, words, load ? words : 0,
                  x86_memory(JIT_SCRATCH, (int32_t)(2 * lane)), (uint8_t)lane);
        x86_bind(code, next);
    }
    x86_general(code, X86_LOAD, true, JIT_LANE, saved);
    x86_jump(code, done);
    x86_bind(code, full);
    const uint32_t whole = load ? (lanes == 8 ? X86_MOVDQU32 : X86_MOVQ)
                                : (lanes == 8 ? X86_MOVDQU32_STORE : X86_MOVLPS_STORE);
    emit_form(jit, whole, X86_XMM, words, 0, memory, 0);
    x86_bind(code, done);
}

static void words_load(jit_state *jit, uint32_t words, x86_operand from, uint32_t mask)
{
    words_move(jit, words, from, mask, true);
}

static void words_store(jit_state *jit, uint32_t words, x86_operand to, uint32_t mask)
{
    words_move(jit, words, to, mask, false);
}

static void narrow_store(jit_state *jit, uint32_t bytes, uint32_t a, x86_operand to, uint32_t mask)
{
    jit->failed = jit->failed || (mask != 0 && bytes == 1);
    emit(jit, X86_PANDD, HAL_TYPE_U32, JIT_TEMPORARY_A, a,
         x86_constant(&jit->code, bytes == 1 ? 0xff : 0xffff, 4));
    if (mask == 0) {
        lanes_store(jit, bytes, false, to);
        return;
    }
    lanes_pack(jit, false);
    words_store(jit, JIT_TEMPORARY_A, to, mask);
}

static void low_words(jit_state *jit, uint32_t words, uint32_t a)
{
    emit(jit, X86_PANDD, HAL_TYPE_U32, words, a, x86_constant(&jit->code, 0xffff, 4));
    lanes_pack(jit, false);
}

static void masked_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask)
{
    emit(jit, by_size(type, X86_MASKMOVPS, X86_MASKMOVPD), type, d, mask_for(jit, type, mask),
         from);
}

/* Up to 3 elements of 4 bytes from lane `first` on, which are the first ones of `part`; rcx has the
 * mask's bits, of which the first ones are set, and rax the address of lane 0. */
static void first_elements_store(jit_state *jit, uint32_t part, uint32_t first, uint32_t done)
{
    x86_code *code = &jit->code;
    const uint32_t one = x86_label(code);
    const x86_operand to = x86_memory(JIT_SCRATCH, (int32_t)(4 * first));
    x86_compare_immediate(code, JIT_LANE, (4 << first) - 1);
    x86_jump_if(code, X86_BELOW, one);
    emit_form(jit, X86_MOVLPS_STORE, X86_XMM, part, 0, to, 0);
    x86_compare_immediate(code, JIT_LANE, (8 << first) - 1);
    x86_jump_if(code, X86_BELOW, done);
    emit_form(jit, X86_PSHUFD, X86_XMM, JIT_TEMPORARY_B, 0, x86_register(part), 2);
    emit_form(jit, X86_MOVD_STORE, X86_XMM, JIT_TEMPORARY_B, 0,
              x86_memory(JIT_SCRATCH, (int32_t)(4 * first + 8)), 0);
    x86_jump(code, done);
    x86_bind(code, one);
    x86_compare_immediate(code, JIT_LANE, (2 << first) - 1);
    x86_jump_if(code, X86_BELOW, done);
    emit_form(jit, X86_MOVD_STORE, X86_XMM, part, 0, to, 0);
    x86_jump(code, done);
}

/* 8 elements of 4 bytes where the mask is true, in some lanes. In most cases these are the first
 * ones, the end of a row. */
static void elements_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask)
{
    x86_code *code = &jit->code;
    const uint32_t few = x86_label(code), others = x86_label(code), done = x86_label(code);
    const x86_operand lane = x86_memory(X86_RSP, JIT_FRAME_Y);
    const x86_operand address = x86_memory(X86_RSP, JIT_FRAME_Y + 8);
    x86_general(code, X86_LEA, true, JIT_SCRATCH, to);
    x86_general(code, X86_STORE, true, JIT_SCRATCH, address);
    x86_general(code, X86_STORE, true, JIT_LANE, lane);
    emit(jit, X86_MOVMSKPS, HAL_TYPE_BOOL, JIT_LANE, 0, x86_register(mask));
    x86_general(code, X86_LEA, true, JIT_SCRATCH, x86_memory(JIT_LANE, 1));
    x86_general(code, X86_TEST, false, JIT_SCRATCH, x86_register(JIT_LANE));
    x86_general(code, X86_LOAD, true, JIT_SCRATCH, address); /* keeps the flags */
    x86_jump_if(code, X86_NOT_EQUAL, others);
    x86_compare_immediate(code, JIT_LANE, 15);
    x86_jump_if(code, X86_BELOW, few);
    emit_form(jit, X86_MOVDQU32_STORE, X86_XMM, a, 0, x86_memory(JIT_SCRATCH, 0), 0);
    emit_form(jit, X86_EXTRACTI128, X86_YMM, a, 0, x86_register(JIT_TEMPORARY_A), 1);
    first_elements_store(jit, JIT_TEMPORARY_A, 4, done);
    x86_bind(code, few);
    first_elements_store(jit, a, 0, done);
    x86_bind(code, others);
    emit(jit, X86_MASKMOVPS_STORE, type, a, mask, x86_memory(JIT_SCRATCH, 0));
    x86_bind(code, done);
    x86_general(code, X86_LOAD, true, JIT_LANE, lane);
}

static void masked_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask)
{
    /* Some processors take as long for one store under a mask as for ten others. */
    const uint32_t full = x86_label(&jit->code), done = x86_label(&jit->code);
    emit(jit, X86_PTEST, HAL_TYPE_BOOL, mask, 0, x86_constant(&jit->code, UINT32_MAX, 4));
    x86_jump_if(&jit->code, X86_EQUAL, done);
    x86_jump_if(&jit->code, X86_BELOW, full);
    if (jit_lanes(jit, jit->loop.program) == 8) {
        elements_store(jit, type, a, to, mask);
    } else {
        emit(jit, by_size(type, X86_MASKMOVPS_STORE, X86_MASKMOVPD_STORE), type, a,
             mask_for(jit, type, mask), to);
    }
    x86_jump(&jit->code, done);
    x86_bind(&jit->code, full);
    emit(jit, X86_MOVDQU32_STORE, type, a, 0, to);
    x86_bind(&jit->code, done);
}

/* Lane by lane, by way of the frame: there is no such instruction. */
static void scatter(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask)
{
    x86_code *code = &jit->code;
    const uint32_t lanes = jit_lanes(jit, jit->loop.program), size = hal_type_size(type);
    const x86_operand saved[3] = {x86_memory(X86_RSP, JIT_FRAME_X),
                                  x86_memory(X86_RSP, JIT_FRAME_X + 8),
                                  x86_memory(X86_RSP, JIT_FRAME_X + 16)};
    const x86_operand indices = x86_memory(X86_RSP, JIT_FRAME_Y);
    const x86_operand elements = x86_memory(X86_RSP, JIT_FRAME_D);
    x86_operand place = x86_memory(JIT_SCRATCH, 0);
    place.index = X86_RDX;
    place.scale = (uint8_t)size;
    emit(jit, X86_MOVDQU32_STORE, HAL_TYPE_U32, to.index, 0, indices);
    emit(jit, X86_MOVDQU32_STORE, type, a, 0, elements);
    if (to.base != JIT_SCRATCH) {
        x86_general(code, X86_STORE, true, to.base, x86_register(JIT_SCRATCH));
    }
    x86_general(code, X86_STORE, true, JIT_LANE, saved[0]);
    x86_general(code, X86_STORE, true, X86_RDX, saved[1]);
    x86_general(code, X86_STORE, true, X86_RSI, saved[2]);
    emit(jit, X86_MOVMSKPS, HAL_TYPE_BOOL, JIT_LANE, 0, x86_register(mask));
    for (uint32_t lane = 0; lane < lanes; lane++) {
        const uint32_t next = x86_label(code);
        const int32_t at = (int32_t)lane;
        x86_test_immediate(code, JIT_LANE, 1 << at);
        x86_jump_if(code, X86_EQUAL, next);
        x86_general(code, X86_SIGN_EXTEND, true, X86_RDX,
                    x86_memory(X86_RSP, JIT_FRAME_Y + 4 * at));
        x86_general(code, X86_LOAD, size == 8, X86_RSI,
                    x86_memory(X86_RSP, JIT_FRAME_D + (int32_t)size * at));
        x86_general(code, X86_STORE, size == 8, X86_RSI, place);
        x86_bind(code, next);
    }
    x86_general(code, X86_LOAD, true, JIT_LANE, saved[0]);
    x86_general(code, X86_LOAD, true, X86_RDX, saved[1]);
    x86_general(code, X86_LOAD, true, X86_RSI, saved[2]);
}

static void lanes_clear(jit_state *jit, hal_type type, uint32_t d, uint32_t mask)
{
    emit(jit, by_size(type, X86_PANDD, X86_PANDQ), type, d, d,
         x86_register(mask_for(jit, type, mask)));
}

static void bool_copy(jit_state *jit, uint32_t d, uint32_t a)
{
    emit(jit, X86_MOVDQU32, HAL_TYPE_BOOL, d, 0, x86_register(a));
}

static void bool_set(jit_state *jit, uint32_t d, bool value)
{
    emit(jit, value ? X86_PCMPEQD : X86_PXORD, HAL_TYPE_BOOL, d, d, x86_register(d));
}

static void bool_both(jit_state *jit, uint32_t d, uint32_t a, uint32_t b)
{
    emit(jit, X86_PANDD, HAL_TYPE_BOOL, d, a, x86_register(b));
}

static void bool_load(jit_state *jit, uint32_t d, x86_operand from)
{
    const hal_type type = HAL_TYPE_BOOL;
    emit(jit, X86_PMOVZXBD, type, JIT_TEMPORARY_A, 0, from);
    emit(jit, X86_PXORD, type, JIT_TEMPORARY_B, JIT_TEMPORARY_B, x86_register(JIT_TEMPORARY_B));
    emit(jit, X86_PCMPGTD, type, d, JIT_TEMPORARY_A, x86_register(JIT_TEMPORARY_B));
}

static void bool_store(jit_state *jit, uint32_t a, x86_operand to)
{
    bool_copy(jit, JIT_TEMPORARY_A, a);
    lanes_store(jit, 1, true, to);
}

static void bool_spill(jit_state *jit, uint32_t a, x86_operand to)
{
    emit(jit, X86_MOVDQU32_STORE, HAL_TYPE_BOOL, a, 0, to);
}

static void bool_fill(jit_state *jit, uint32_t d, x86_operand from)
{
    emit(jit, X86_MOVDQU32, HAL_TYPE_BOOL, d, 0, from);
}

static void bool_test(jit_state *jit, uint32_t a)
{
    emit(jit, X86_PTEST, HAL_TYPE_BOOL, a, 0, x86_register(a));
}

static void general_broadcast(jit_state *jit, uint32_t d, uint32_t general)
{
    emit_form(jit, X86_MOVD_R, X86_XMM, d, 0, x86_register(general), 0);
    emit_form(jit, X86_PBROADCASTD, X86_YMM, d, 0, x86_register(d), 0);
}

const jit_target jit_avx2 = {.length = X86_YMM,
                             .lanes = 8,
                             .vectors = 13,
                             .masks = 0,
                             .most_parts = 2,
                             .mask = JIT_TEMPORARY_C,
                             .mask_from = 2,
                             .reserved = UINT32_C(0xffff0000),
                             .cast_is_supported = cast_is_supported,
                             .emit_float_least = emit_float_least,
                             .emit_shift = emit_shift,
                             .emit_integer = emit_integer,
                             .emit_bool = emit_bool,
                             .emit_comparison = emit_comparison,
                             .emit_select = emit_select,
                             .emit_cast = emit_cast,
                             .emit_bf16_bits = emit_bf16_bits,
                             .narrow_store = narrow_store,
                             .words_load = words_load,
                             .words_store = words_store,
                             .low_words = low_words,
                             .element_mask = mask_for,
                             .masked_load = masked_load,
                             .masked_store = masked_store,
                             .scatter = scatter,
                             .lanes_clear = lanes_clear,
                             .bool_copy = bool_copy,
                             .bool_set = bool_set,
                             .bool_both = bool_both,
                             .bool_load = bool_load,
                             .bool_store = bool_store,
                             .bool_spill = bool_spill,
                             .bool_fill = bool_fill,
                             .bool_test = bool_test,
                             .general_broadcast = general_broadcast};

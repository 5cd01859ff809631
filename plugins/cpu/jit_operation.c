/* The instructions of each operation, for AVX-512. Called by jit_loop.c. Operands are taken in
 * registers first, then the result's register, then the one operand that may be in memory: taking a
 * register may store another value. */
#include "jit_state.h"

/* Predicates of comparisons. */
enum {
    FLOAT_EQ = 0,
    FLOAT_UNORDERED = 3,
    FLOAT_NE = 4,
    FLOAT_LT = 0x11,
    FLOAT_LE = 0x12,
    FLOAT_NOT_GE = 0x19,
    FLOAT_GE = 0x1d,
    FLOAT_GT = 0x1e
};
enum {
    INTEGER_EQ = 0,
    INTEGER_LT = 1,
    INTEGER_LE = 2,
    INTEGER_NE = 4,
    INTEGER_GE = 5,
    INTEGER_GT = 6
};
enum { NOT_OF_THIRD = 0x55 }; /* truth table */

static bool is_wide(hal_type type)
{
    return hal_type_size(type) == 8;
}

/* The instruction for 32 or 64 bits. */
static uint32_t by_size(hal_type type, uint32_t narrow, uint32_t wide)
{
    return is_wide(type) ? wide : narrow;
}

static x86_operand constant_of(jit_state *jit, hal_type type, uint32_t narrow, uint64_t wide)
{
    return is_wide(type) ? x86_constant(&jit->code, wide, 8) : x86_constant(&jit->code, narrow, 4);
}

static void emit(jit_state *jit, uint32_t name, hal_type type, uint32_t d, uint32_t second,
                 x86_operand operand)
{
    x86_vector(&jit->code, name, jit_form(jit, type), d, second, operand);
}

static void emit_immediate(jit_state *jit, uint32_t name, hal_type type, uint32_t d,
                           uint32_t second, x86_operand operand, uint32_t immediate)
{
    x86_form form = jit_form(jit, type);
    form.immediate = (uint8_t)immediate;
    x86_vector(&jit->code, name, form, d, second, operand);
}

static void emit_masked(jit_state *jit, uint32_t name, hal_type type, uint32_t mask, bool zeroing,
                        uint32_t d, uint32_t second, x86_operand operand)
{
    x86_form form = jit_form(jit, type);
    form.mask = (uint8_t)mask;
    form.zeroing = zeroing;
    x86_vector(&jit->code, name, form, d, second, operand);
}

static bool is_commutative(uint32_t opcode)
{
    return opcode == HAL_IR_ADD || opcode == HAL_IR_MUL || opcode == HAL_IR_AND ||
           opcode == HAL_IR_OR || opcode == HAL_IR_XOR || opcode == HAL_IR_MIN ||
           opcode == HAL_IR_MAX;
}

/* A node whose first operand is the better one for a register. */
static jit_node node_ordered(const jit_state *jit, const jit_node *node)
{
    jit_node result = *node;
    const jit_entry *a = &jit->program->values[node->a[0]], *b = &jit->program->values[node->a[1]];
    if (is_commutative(node->opcode) && node->a[0] != node->a[1] && a->reg == JIT_NO_REGISTER &&
        b->reg != JIT_NO_REGISTER) {
        result.a[0] = node->a[1];
        result.a[1] = node->a[0];
        result.next[0] = node->next[1];
        result.next[1] = node->next[0];
    }
    return result;
}

/* d = a op b in one instruction. */
static void emit_binary(jit_state *jit, const jit_node *node, uint32_t name)
{
    const jit_node ordered = node_ordered(jit, node);
    const uint32_t a = jit_use(jit, &ordered, 0);
    const uint32_t d = jit_result(jit, node);
    emit(jit, name, node->type, d, a, jit_source(jit, &ordered, 1));
}

/* d = op a in one instruction, with an immediate if it has one. */
static void emit_unary(jit_state *jit, const jit_node *node, uint32_t name, hal_type form,
                       uint32_t immediate)
{
    const uint32_t d = jit_result(jit, node);
    emit_immediate(jit, name, form, d, 0, jit_source(jit, node, 0), immediate);
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
        emit_immediate(jit, by_size(type, X86_CMPPS, X86_CMPPD), type, JIT_MASK_A, a,
                       x86_register(b), FLOAT_UNORDERED);
        emit_masked(jit, by_size(type, X86_ADDPS, X86_ADDPD), type, JIT_MASK_A, false, d, a,
                    x86_register(b));
    }
}

static void register_copy(jit_state *jit, hal_type type, uint32_t d, uint32_t a)
{
    if (d != a) {
        emit(jit, X86_MOVDQU32, type, d, 0, x86_register(a));
    }
}

static void emit_fma(jit_state *jit, const jit_node *node)
{
    jit_node n = *node;
    const jit_entry *values = jit->program->values;
    if (values[n.a[0]].reg == JIT_NO_REGISTER && values[n.a[1]].reg != JIT_NO_REGISTER &&
        n.a[0] != n.a[1]) {
        n.a[0] = node->a[1];
        n.a[1] = node->a[0];
        n.next[0] = node->next[1];
        n.next[1] = node->next[0];
    }
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, &n, 0);
    if (values[n.a[2]].reg == JIT_NO_REGISTER) {
        const uint32_t b = jit_use(jit, &n, 1), d = jit_result_over(jit, &n, 0);
        register_copy(jit, type, d, a);
        emit(jit, by_size(type, X86_FMADD213PS, X86_FMADD213PD), type, d, b,
             jit_source(jit, &n, 2));
    } else {
        const uint32_t c = jit_use(jit, &n, 2), d = jit_result_over(jit, &n, 2);
        register_copy(jit, type, d, c);
        emit(jit, by_size(type, X86_FMADD231PS, X86_FMADD231PD), type, d, a,
             jit_source(jit, &n, 1));
    }
}

/* Counts count modulo the width. */
static void emit_shift(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const jit_entry *count = &jit->program->values[node->a[1]];
    const bool left = node->opcode == HAL_IR_SHL, is_signed = hal_type_is_signed(type);
    const uint32_t width = is_wide(type) ? 64 : 32;
    const uint32_t a = jit_use(jit, node, 0);
    if (count->kind == JIT_CONSTANT) {
        const uint32_t name = left        ? by_size(type, X86_PSLLD, X86_PSLLQ)
                              : is_signed ? by_size(type, X86_PSRAD, X86_PSRAQ)
                                          : by_size(type, X86_PSRLD, X86_PSRLQ);
        emit_immediate(jit, name, type, jit_result(jit, node), 0, x86_register(a),
                       (uint32_t)count->bits & (width - 1));
        return;
    }
    const uint32_t b = jit_use(jit, node, 1), d = jit_result(jit, node);
    emit(jit, by_size(type, X86_PANDD, X86_PANDQ), type, JIT_TEMPORARY_A, b,
         constant_of(jit, type, width - 1, width - 1));
    emit(jit,
         left        ? by_size(type, X86_PSLLVD, X86_PSLLVQ)
         : is_signed ? by_size(type, X86_PSRAVD, X86_PSRAVQ)
                     : by_size(type, X86_PSRLVD, X86_PSRLVQ),
         type, d, a, x86_register(JIT_TEMPORARY_A));
}

/* The high halves of the products of even lanes, and of odd ones. */
static void emit_mulhi(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t multiply = hal_type_is_signed(type) ? X86_PMULDQ : X86_PMULUDQ;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    emit_immediate(jit, X86_PSRLQ, type, JIT_TEMPORARY_A, 0, x86_register(a), 32);
    emit_immediate(jit, X86_PSRLQ, type, JIT_TEMPORARY_B, 0, x86_register(b), 32);
    emit(jit, multiply, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, x86_register(JIT_TEMPORARY_B));
    emit(jit, multiply, type, d, a, x86_register(b));
    emit_immediate(jit, X86_PSRLQ, type, d, 0, x86_register(d), 32);
    emit(jit, X86_PANDQ, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A,
         x86_constant(&jit->code, UINT64_C(0xffffffff00000000), 8));
    emit(jit, X86_PORD, type, d, d, x86_register(JIT_TEMPORARY_A));
}

static void emit_comparison(jit_state *jit, const jit_node *node)
{
    static const uint8_t floats[2][4] = {{FLOAT_EQ, FLOAT_NE, FLOAT_LT, FLOAT_LE},
                                         {FLOAT_EQ, FLOAT_NE, FLOAT_GT, FLOAT_GE}};
    static const uint8_t integers[2][4] = {{INTEGER_EQ, INTEGER_NE, INTEGER_LT, INTEGER_LE},
                                           {INTEGER_EQ, INTEGER_NE, INTEGER_GT, INTEGER_GE}};
    const hal_type type = node->type;
    const uint32_t which = node->opcode - HAL_IR_EQ;
    /* The operand in a register goes first. */
    const bool swap = type != HAL_TYPE_BOOL &&
                      jit->program->values[node->a[0]].reg == JIT_NO_REGISTER &&
                      jit->program->values[node->a[1]].reg != JIT_NO_REGISTER;
    if (type == HAL_TYPE_BOOL) {
        const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
        x86_mask_binary(&jit->code, node->opcode == HAL_IR_EQ ? X86_KXNOR : X86_KXOR,
                        jit_result(jit, node), a, b);
        return;
    }
    const uint32_t a = jit_use(jit, node, swap), d = jit_result(jit, node);
    const x86_operand b = jit_source(jit, node, !swap);
    if (hal_type_is_float(type)) {
        emit_immediate(jit, by_size(type, X86_CMPPS, X86_CMPPD), type, d, a, b,
                       floats[swap][which]);
    } else {
        const uint32_t name = hal_type_is_signed(type) ? by_size(type, X86_PCMPD, X86_PCMPQ)
                                                       : by_size(type, X86_PCMPUD, X86_PCMPUQ);
        emit_immediate(jit, name, type, d, a, b, integers[swap][which]);
    }
}

/* SELECT, and BLEND. */
static void emit_select(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t mask = jit_use(jit, node, 0);
    if (type == HAL_TYPE_BOOL) {
        const uint32_t b = jit_use(jit, node, 1), c = jit_use(jit, node, 2);
        const uint32_t d = jit_result(jit, node);
        x86_mask_binary(&jit->code, X86_KAND, JIT_MASK_A, mask, b);
        x86_mask_binary(&jit->code, X86_KANDN, JIT_MASK_B, mask, c);
        x86_mask_binary(&jit->code, X86_KOR, d, JIT_MASK_A, JIT_MASK_B);
        return;
    }
    const uint32_t c = jit_use(jit, node, 2), d = jit_result(jit, node);
    emit_masked(jit, by_size(type, X86_PBLENDMD, X86_PBLENDMQ), type, mask, false, d, c,
                jit_source(jit, node, 1));
}

/* ---- conversions ---- */

/* What the conversion of a float outside of an integer's range gives is replaced. */
static void emit_cast_to_integer(jit_state *jit, const jit_node *node, hal_type to)
{
    const hal_type from = node->type;
    const bool is_signed = hal_type_is_signed(to), wide = is_wide(to) || is_wide(from);
    const hal_type form = wide ? (hal_type)HAL_TYPE_I64 : (hal_type)HAL_TYPE_I32;
    static const uint16_t names[2][2][2] = {
        /* from f64, to 64 bits, signed */
        {{X86_CVTTPS2UDQ, X86_CVTTPS2DQ}, {X86_CVTTPS2UQQ, X86_CVTTPS2QQ}},
        {{X86_CVTTPD2UDQ, X86_CVTTPD2DQ}, {X86_CVTTPD2UQQ, X86_CVTTPD2QQ}}};
    const uint32_t compare = by_size(from, X86_CMPPS, X86_CMPPD);
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    emit(jit, names[is_wide(from)][is_wide(to)][is_signed], form, d, 0, x86_register(a));
    const uint32_t clear = by_size(to, X86_PXORD, X86_PXORQ);
    if (is_signed) {
        const uint32_t over = is_wide(to) ? 0x5f000000 : 0x4f000000; /* 2^63, 2^31 */
        const uint64_t over_wide =
            UINT64_C(0x3ff0000000000000) + ((uint64_t)(is_wide(to) ? 63 : 31) << 52);
        emit_immediate(jit, compare, from, JIT_MASK_A, a, constant_of(jit, from, over, over_wide),
                       FLOAT_GE);
        emit_masked(jit, by_size(to, X86_PBROADCASTD, X86_PBROADCASTQ), to, JIT_MASK_A, false, d, 0,
                    constant_of(jit, to, INT32_MAX, INT64_MAX));
        emit_immediate(jit, compare, from, JIT_MASK_A, a, x86_register(a), FLOAT_UNORDERED);
    } else {
        emit_immediate(jit, compare, from, JIT_MASK_A, a, constant_of(jit, from, 0, 0),
                       FLOAT_NOT_GE);
    }
    emit_masked(jit, clear, to, JIT_MASK_A, false, d, d, x86_register(d));
}

/* Between numbers; the name of a single instruction, or X86_VECTOR_COUNT. */
static uint32_t cast_name(hal_type from, hal_type to)
{
    const bool is_signed = hal_type_is_signed(from);
    if (to == HAL_TYPE_F32) {
        return from == HAL_TYPE_F64 ? X86_CVTPD2PS
               : is_wide(from)      ? (is_signed ? X86_CVTQQ2PS : X86_CVTUQQ2PS)
                                    : (is_signed ? X86_CVTDQ2PS : X86_CVTUDQ2PS);
    }
    if (to == HAL_TYPE_F64) {
        return from == HAL_TYPE_F32 ? X86_CVTPS2PD
               : is_wide(from)      ? (is_signed ? X86_CVTQQ2PD : X86_CVTUQQ2PD)
                                    : (is_signed ? X86_CVTDQ2PD : X86_CVTUDQ2PD);
    }
    if (is_wide(from) == is_wide(to)) {
        return X86_MOVDQU32;
    }
    return is_wide(to) ? (is_signed ? X86_PMOVSXDQ : X86_PMOVZXDQ) : X86_PMOVQD;
}

static void emit_cast(jit_state *jit, const jit_node *node)
{
    const hal_type from = node->type, to = jit->program->values[node->d].type;
    const bool wide = is_wide(to) || is_wide(from);
    const hal_type form = wide ? (hal_type)HAL_TYPE_I64 : (hal_type)HAL_TYPE_I32;
    if (from == to) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        if (to == HAL_TYPE_BOOL) {
            x86_mask_move(&jit->code, d, x86_register(a));
        } else {
            emit(jit, X86_MOVDQU32, to, d, 0, x86_register(a));
        }
    } else if (from == HAL_TYPE_BOOL) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        const x86_operand one = to == HAL_TYPE_F32   ? x86_constant(&jit->code, 0x3f800000, 4)
                                : to == HAL_TYPE_F64 ? x86_constant(&jit->code, 0x3ffull << 52, 8)
                                                     : constant_of(jit, to, 1, 1);
        emit_masked(jit, by_size(to, X86_PBROADCASTD, X86_PBROADCASTQ), to, a, true, d, 0, one);
    } else if (to == HAL_TYPE_BOOL) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        if (hal_type_is_float(from)) {
            emit_immediate(jit, by_size(from, X86_CMPPS, X86_CMPPD), from, d, a,
                           constant_of(jit, from, 0, 0), FLOAT_NE);
        } else {
            emit(jit, by_size(from, X86_PTESTMD, X86_PTESTMQ), from, d, a, x86_register(a));
        }
    } else if (hal_type_is_float(from) && hal_type_is_integer(to)) {
        emit_cast_to_integer(jit, node, to);
    } else {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        const uint32_t name = cast_name(from, to);
        if (name == X86_PMOVQD) { /* the destination is the second operand */
            emit(jit, name, form, a, 0, x86_register(d));
        } else {
            emit(jit, name, form, d, 0, x86_register(a));
        }
    }
}

/* To nearest even in the upper half; NaN stays NaN. The result is in the lower half of d. */
static void emit_bf16_bits(jit_state *jit, uint32_t d, uint32_t a)
{
    const hal_type type = HAL_TYPE_F32;
    emit_immediate(jit, X86_PSRLD, type, JIT_TEMPORARY_A, 0, x86_register(a), 16);
    emit(jit, X86_PANDD, type, JIT_TEMPORARY_B, JIT_TEMPORARY_A, x86_constant(&jit->code, 1, 4));
    emit(jit, X86_PADDD, type, JIT_TEMPORARY_B, JIT_TEMPORARY_B,
         x86_constant(&jit->code, 0x7fff, 4));
    emit(jit, X86_PADDD, type, JIT_TEMPORARY_B, JIT_TEMPORARY_B, x86_register(a));
    emit_immediate(jit, X86_CMPPS, type, JIT_MASK_A, a, x86_register(a), FLOAT_UNORDERED);
    emit_immediate(jit, X86_PSRLD, type, d, 0, x86_register(JIT_TEMPORARY_B), 16);
    emit_masked(jit, X86_PORD, type, JIT_MASK_A, false, d, JIT_TEMPORARY_A,
                x86_constant(&jit->code, 0x40, 4));
}

static void emit_f16_bits(jit_state *jit, x86_operand to, uint32_t a)
{
    x86_vector(&jit->code, X86_CVTPS2PH, jit_form(jit, HAL_TYPE_F32), a, 0, to);
}

static void emit_narrow(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const hal_type value = hal_type_of_value(type);
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    if (type == HAL_TYPE_F16) {
        emit_f16_bits(jit, x86_register(JIT_TEMPORARY_A), a);
        emit(jit, X86_CVTPH2PS, HAL_TYPE_F32, d, 0, x86_register(JIT_TEMPORARY_A));
    } else if (type == HAL_TYPE_BF16) {
        emit_bf16_bits(jit, d, a);
        emit_immediate(jit, X86_PSLLD, HAL_TYPE_F32, d, 0, x86_register(d), 16);
    } else if (hal_type_size(type) < hal_type_size(value)) {
        const uint32_t unused = 32 - 8 * hal_type_size(type);
        emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(a), unused);
        emit_immediate(jit, hal_type_is_signed(type) ? X86_PSRAD : X86_PSRLD, value, d, 0,
                       x86_register(d), unused);
    } else if (value == HAL_TYPE_BOOL) {
        x86_mask_move(&jit->code, d, x86_register(a));
    } else {
        emit(jit, X86_MOVDQU32, value, d, 0, x86_register(a));
    }
}

/* ---- memory ---- */

/* From memory of `type` to a register. */
static void memory_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from)
{
    const hal_type value = hal_type_of_value(type);
    switch (type) {
    case HAL_TYPE_BOOL:
        x86_vector(&jit->code, jit->program->wide ? X86_MOVQ : X86_MOVDQU8,
                   (x86_form){.length = X86_XMM}, JIT_TEMPORARY_A, 0, from);
        x86_vector(&jit->code, X86_PTESTMB, (x86_form){.length = X86_XMM}, d, JIT_TEMPORARY_A,
                   x86_register(JIT_TEMPORARY_A));
        break;
    case HAL_TYPE_I8:
        emit(jit, X86_PMOVSXBD, value, d, 0, from);
        break;
    case HAL_TYPE_U8:
        emit(jit, X86_PMOVZXBD, value, d, 0, from);
        break;
    case HAL_TYPE_I16:
        emit(jit, X86_PMOVSXWD, value, d, 0, from);
        break;
    case HAL_TYPE_U16:
        emit(jit, X86_PMOVZXWD, value, d, 0, from);
        break;
    case HAL_TYPE_F16:
        emit(jit, X86_CVTPH2PS, value, d, 0, from);
        break;
    case HAL_TYPE_BF16:
        emit(jit, X86_PMOVZXWD, value, d, 0, from);
        emit_immediate(jit, X86_PSLLD, value, d, 0, x86_register(d), 16);
        break;
    default:
        emit(jit, X86_MOVDQU32, value, d, 0, from);
    }
}

static void memory_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to)
{
    const hal_type value = hal_type_of_value(type);
    const x86_form form = {.length = X86_XMM};
    const x86_form chosen = {.length = X86_XMM, .mask = (uint8_t)a, .zeroing = true};
    switch (type) {
    case HAL_TYPE_BOOL:
        x86_vector(&jit->code, X86_PBROADCASTD, form, JIT_TEMPORARY_A, 0,
                   x86_constant(&jit->code, 0x01010101, 4));
        x86_vector(&jit->code, X86_MOVDQU8, chosen, JIT_TEMPORARY_A, 0,
                   x86_register(JIT_TEMPORARY_A));
        x86_vector(&jit->code, jit->program->wide ? X86_MOVQ_STORE : X86_MOVDQU8_STORE, form,
                   JIT_TEMPORARY_A, 0, to);
        break;
    case HAL_TYPE_I8:
    case HAL_TYPE_U8:
        emit(jit, X86_PMOVDB, value, a, 0, to);
        break;
    case HAL_TYPE_I16:
    case HAL_TYPE_U16:
        emit(jit, X86_PMOVDW, value, a, 0, to);
        break;
    case HAL_TYPE_F16:
        emit_f16_bits(jit, to, a);
        break;
    case HAL_TYPE_BF16:
        emit_bf16_bits(jit, JIT_TEMPORARY_C, a);
        emit(jit, X86_PMOVDW, value, JIT_TEMPORARY_C, 0, to);
        break;
    default:
        emit(jit, X86_MOVDQU32_STORE, value, a, 0, to);
    }
}

/* Tests the pointer of an access in its place; jumps if it is null. */
static void jump_if_null(jit_state *jit, uint32_t pointer, uint32_t label)
{
    x86_general(&jit->code, X86_LOAD, true, JIT_SCRATCH,
                x86_memory(X86_RSP, (int32_t)(JIT_FRAME_POINTERS + 8 * pointer)));
    x86_general(&jit->code, X86_TEST, true, JIT_SCRATCH, x86_register(JIT_SCRATCH));
    x86_jump_if(&jit->code, X86_EQUAL, label);
}

static void emit_load(jit_state *jit, const jit_node *node)
{
    const uint32_t elsewhere = x86_label(&jit->code), after = x86_label(&jit->code);
    const uint32_t d = jit_result(jit, node);
    jump_if_null(jit, node->aux, elsewhere);
    memory_load(
        jit, node->type, d,
        jit_pointed(jit, JIT_POINTER_ACCESS + node->aux, hal_type_size(node->type), node->part));
    x86_jump(&jit->code, after);
    x86_bind(&jit->code, elsewhere);
    jit_load_home(jit, node->d, d);
    x86_bind(&jit->code, after);
}

static void emit_store(jit_state *jit, const jit_node *node)
{
    const uint32_t elsewhere = x86_label(&jit->code), after = x86_label(&jit->code);
    const uint32_t a = jit_use(jit, node, 0);
    jump_if_null(jit, node->aux, elsewhere);
    memory_store(
        jit, node->type, a,
        jit_pointed(jit, JIT_POINTER_ACCESS + node->aux, hal_type_size(node->type), node->part));
    x86_jump(&jit->code, after);
    x86_bind(&jit->code, elsewhere);
    const jit_entry *entry = &jit->program->values[node->a[0]];
    if (entry->kind == JIT_TEMPORARY && !entry->keep) {
        jit_store_home(jit, node->a[0]); /* the step that stores it reads the slot */
    }
    x86_bind(&jit->code, after);
}

/* ---- all ---- */

static void emit_again(jit_state *jit, const jit_node *node)
{
    const uint32_t a = jit_use(jit, node, 0), rare = jit_use(jit, node, 1);
    const uint32_t x = jit_use(jit, node, 2);
    const uint32_t y = node->a[3] != JIT_NONE ? jit_use(jit, node, 3) : x;
    const uint32_t d = jit_result_over(jit, node, 0);
    jit_cold *cold = jit_cold_add(jit);
    const hal_type type = node->type;
    register_copy(jit, type, d, a);
    x86_mask_test(&jit->code, rare, jit->program->wide ? 1 : 2);
    if (cold != NULL) {
        const uint32_t opcode = node->aux;
        const cpu_lanes *lanes = jit->lower->lanes;
        cold->run = opcode == HAL_IR_POW ? lanes->binary[opcode][cpu_type(type)][0]
                                         : lanes->unary[opcode][cpu_type(type)];
        cold->d = (uint8_t)d;
        cold->x = (uint8_t)x;
        cold->y = (uint8_t)y;
        cold->length = jit_form(jit, type).length;
        jit_registers_used(jit, &cold->vectors, &cold->masks);
        x86_jump_if(&jit->code, X86_NOT_EQUAL, cold->label);
        x86_bind(&jit->code, cold->back);
    }
}

static void emit_float(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    static const uint8_t rounding[] = {9, 11, 8}; /* FLOOR, TRUNC, RINT, without exceptions */
    switch (node->opcode) {
    case HAL_IR_ADD:
        emit_binary(jit, node, by_size(type, X86_ADDPS, X86_ADDPD));
        break;
    case HAL_IR_SUB:
        emit_binary(jit, node, by_size(type, X86_SUBPS, X86_SUBPD));
        break;
    case HAL_IR_MUL:
        emit_binary(jit, node, by_size(type, X86_MULPS, X86_MULPD));
        break;
    case HAL_IR_DIV:
        emit_binary(jit, node, by_size(type, X86_DIVPS, X86_DIVPD));
        break;
    case HAL_IR_NEG:
    case HAL_IR_ABS: {
        const bool negate = node->opcode == HAL_IR_NEG;
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        const uint32_t sign = UINT32_C(1) << 31;
        const uint64_t sign_wide = UINT64_C(1) << 63;
        emit(jit,
             negate ? by_size(type, X86_PXORD, X86_PXORQ) : by_size(type, X86_PANDD, X86_PANDQ),
             type, d, a,
             constant_of(jit, type, negate ? sign : ~sign, negate ? sign_wide : ~sign_wide));
        break;
    }
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        emit_float_least(jit, node);
        break;
    case HAL_IR_FMA:
        emit_fma(jit, node);
        break;
    case HAL_IR_SQRT:
        emit_unary(jit, node, by_size(type, X86_SQRTPS, X86_SQRTPD), type, 0);
        break;
    default:
        emit_unary(jit, node, by_size(type, X86_RNDSCALEPS, X86_RNDSCALEPD), type,
                   rounding[node->opcode - HAL_IR_FLOOR]);
    }
}

static void emit_integer_unary(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
    const x86_operand from = x86_register(a);
    if (node->opcode == HAL_IR_NOT) {
        emit_immediate(jit, X86_PTERNLOGD, type, d, a, from, NOT_OF_THIRD);
    } else if (node->opcode == HAL_IR_NEG) {
        emit(jit, X86_PXORD, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A, x86_register(JIT_TEMPORARY_A));
        emit(jit, by_size(type, X86_PSUBD, X86_PSUBQ), type, d, JIT_TEMPORARY_A, from);
    } else if (hal_type_is_signed(type)) {
        emit(jit, by_size(type, X86_PABSD, X86_PABSQ), type, d, 0, from);
    } else {
        emit(jit, X86_MOVDQU32, type, d, 0, from);
    }
}

/* The single instruction of an operation on two integers. */
static uint32_t integer_name(uint32_t opcode, hal_type type)
{
    const bool is_signed = hal_type_is_signed(type);
    switch (opcode) {
    case HAL_IR_ADD:
        return by_size(type, X86_PADDD, X86_PADDQ);
    case HAL_IR_SUB:
        return by_size(type, X86_PSUBD, X86_PSUBQ);
    case HAL_IR_MUL:
        return by_size(type, X86_PMULLD, X86_PMULLQ);
    case HAL_IR_MIN:
        return is_signed ? by_size(type, X86_PMINSD, X86_PMINSQ)
                         : by_size(type, X86_PMINUD, X86_PMINUQ);
    case HAL_IR_MAX:
        return is_signed ? by_size(type, X86_PMAXSD, X86_PMAXSQ)
                         : by_size(type, X86_PMAXUD, X86_PMAXUQ);
    case HAL_IR_AND:
        return by_size(type, X86_PANDD, X86_PANDQ);
    case HAL_IR_OR:
        return by_size(type, X86_PORD, X86_PORQ);
    default:
        return by_size(type, X86_PXORD, X86_PXORQ);
    }
}

static void emit_integer(jit_state *jit, const jit_node *node)
{
    switch (node->opcode) {
    case HAL_IR_NOT:
    case HAL_IR_NEG:
    case HAL_IR_ABS:
        emit_integer_unary(jit, node);
        break;
    case HAL_IR_SHL:
    case HAL_IR_SHR:
        emit_shift(jit, node);
        break;
    case HAL_IR_MULHI:
        emit_mulhi(jit, node);
        break;
    default:
        emit_binary(jit, node, integer_name(node->opcode, node->type));
    }
}

static void emit_bool(jit_state *jit, const jit_node *node)
{
    const uint32_t a = jit_use(jit, node, 0);
    if (node->opcode == HAL_IR_NOT) {
        x86_mask_not(&jit->code, jit_result(jit, node), a);
        return;
    }
    const uint32_t b = jit_use(jit, node, 1);
    x86_mask_binary(&jit->code,
                    node->opcode == HAL_IR_AND  ? X86_KAND
                    : node->opcode == HAL_IR_OR ? X86_KOR
                                                : X86_KXOR,
                    jit_result(jit, node), a, b);
}

static void emit_sides(jit_state *jit, const jit_node *node)
{
    const uint32_t far = jit_use(jit, node, 0);
    if (jit->choice_count == JIT_MOST_CHOICES) {
        jit->failed = true;
        return;
    }
    jit_choice *choice = &jit->choices[jit->choice_count++];
    *choice = (jit_choice){.otherwise = x86_label(&jit->code),
                           .join = x86_label(&jit->code),
                           .locked = jit->locked_vectors};
    x86_mask_move(&jit->code, JIT_MASK_A, x86_register(far));
    jit_release(jit, node);
    jit_registers_lock(jit);
    x86_mask_test(&jit->code, JIT_MASK_A, jit->program->wide ? 1 : 2);
    x86_jump_if(&jit->code, X86_NOT_EQUAL, choice->otherwise);
}

/* The sides of a choice use the registers that are free at its beginning. */
static void emit_choice(jit_state *jit, const jit_node *node)
{
    jit_choice *choice = &jit->choices[jit->choice_count > 0 ? jit->choice_count - 1 : 0];
    switch (node->opcode) {
    case JIT_DECLARE:
        jit_result(jit, node);
        jit_release(jit, node);
        break;
    case JIT_CHOICE:
        emit_sides(jit, node);
        break;
    case JIT_OTHERWISE:
        x86_jump(&jit->code, choice->join);
        jit_registers_restore(jit);
        x86_bind(&jit->code, choice->otherwise);
        break;
    case JIT_JOIN:
        jit_registers_restore(jit);
        x86_bind(&jit->code, choice->join);
        jit->locked_vectors = choice->locked;
        jit->choice_count -= jit->choice_count > 0;
        break;
    default: {
        const uint32_t d = jit_use(jit, node, 0), a = jit_use(jit, node, 1);
        jit->failed = jit->failed || !(jit->locked_vectors >> d & 1); /* d has lost its register */
        emit(jit, X86_MOVDQU32, node->type, d, 0, x86_register(a));
        jit_release(jit, node);
    }
    }
}

/* The end of a function: a value to its place. */
static void emit_result(jit_state *jit, const jit_node *node)
{
    const uint32_t to = node->aux + node->part, a = jit_use(jit, node, 0);
    if (a != to) {
        jit_register_empty(jit, to);
        register_copy(jit, node->type, to, a);
    }
    jit->locked_vectors |= UINT32_C(1) << to; /* for the results that follow */
}

bool jit_is_supported(uint32_t opcode, hal_type type, hal_type result)
{
    const bool integer = hal_type_is_integer(type), is_float = hal_type_is_float(type);
    switch (opcode) {
    case HAL_IR_DIV:
        return is_float;
    case HAL_IR_REM:
    case HAL_IR_POPCOUNT:
        return false;
    case HAL_IR_MULHI:
        return integer && hal_type_size(type) == 4;
    case HAL_IR_NARROW:
    case HAL_IR_CAST:
        return type != HAL_TYPE_NONE && result != HAL_TYPE_NONE;
    default:
        return (opcode >= HAL_IR_ADD && opcode <= HAL_IR_SELECT) ||
               (hal_ir_is_math(opcode) && is_float);
    }
}

void jit_node_emit(jit_state *jit, const jit_node *node)
{
    const uint32_t opcode = node->opcode;
    if (opcode >= JIT_DECLARE && opcode <= JIT_ASSIGN) {
        emit_choice(jit, node);
        return;
    }
    if (opcode == JIT_RESULT) {
        emit_result(jit, node);
    } else if (opcode == JIT_LOAD) {
        emit_load(jit, node);
    } else if (opcode == JIT_STORE) {
        emit_store(jit, node);
    } else if (opcode == JIT_AGAIN) {
        emit_again(jit, node);
    } else if (opcode == JIT_BLEND || opcode == HAL_IR_SELECT) {
        emit_select(jit, node);
    } else if (opcode == HAL_IR_NARROW) {
        emit_narrow(jit, node);
    } else if (opcode == HAL_IR_CAST) {
        emit_cast(jit, node);
    } else if (opcode == JIT_MOVE || opcode == HAL_IR_BITCAST) {
        const uint32_t a = jit_use(jit, node, 0), d = jit_result(jit, node);
        if (node->type == HAL_TYPE_BOOL) {
            x86_mask_move(&jit->code, d, x86_register(a));
        } else {
            emit(jit, X86_MOVDQU32, node->type, d, 0, x86_register(a));
        }
    } else if (opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE) {
        emit_comparison(jit, node);
    } else if (node->type == HAL_TYPE_BOOL) {
        emit_bool(jit, node);
    } else if (hal_type_is_float(node->type)) {
        emit_float(jit, node);
    } else {
        emit_integer(jit, node);
    }
    jit_release(jit, node);
}

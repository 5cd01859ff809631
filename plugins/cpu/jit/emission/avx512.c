/* Instructions of operations with AVX-512: what operation.c does not share between instruction
 * sets. Values of type BOOL are in mask registers. */
#include "jit/emission/emit.h"
#include "jit/registers/registers.h"

/* Masks 6 and 7 are free within an operation; mask 0 is no mask. */
enum { JIT_MASK_A = 6, JIT_MASK_B = 7 };

/* Predicates of comparisons of integers. */
enum {
    INTEGER_EQ = 0,
    INTEGER_LT = 1,
    INTEGER_LE = 2,
    INTEGER_NE = 4,
    INTEGER_GE = 5,
    INTEGER_GT = 6
};
enum { NOT_OF_THIRD = 0x55, FIRST_AND_SECOND_OR_NOT_THIRD = 0xd0 }; /* truth tables */

static void emit_masked(jit_state *jit, uint32_t name, hal_type type, uint32_t mask, bool zeroing,
                        uint32_t d, uint32_t second, x86_operand operand)
{
    x86_form form = jit_form(jit, type);
    form.mask = (uint8_t)mask;
    form.zeroing = zeroing;
    x86_vector(&jit->code, name, form, d, second, operand);
}

/* The greatest of b, a is a where either is NaN, or both are zeros; of a, b it is b. The sign of
 * the first is that of both, and where b is NaN it is taken: the path from a, which a fold has from
 * the operation before, is short. */
static void emit_greatest(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const uint32_t a = jit_use(jit, node, 0), b = jit_use(jit, node, 1);
    const uint32_t d = jit_result(jit, node);
    emit_immediate(jit, X86_CMPPS, type, JIT_MASK_A, b, x86_register(b), FLOAT_UNORDERED);
    emit(jit, X86_MAXPS, type, JIT_TEMPORARY_A, a, x86_register(b));
    emit(jit, X86_MAXPS, type, d, b, x86_register(a));
    emit_immediate(jit, X86_PTERNLOGD, type, d, JIT_TEMPORARY_A,
                   x86_constant(&jit->code, UINT32_C(1) << 31, 4), FIRST_AND_SECOND_OR_NOT_THIRD);
    emit_masked(jit, X86_MOVDQU32, type, JIT_MASK_A, false, d, 0, x86_register(b));
}

/* The least of a, b and of b, a differ only for equal operands, which are zeros, and NaN: the union
 * of their bits is -0 or NaN. The greatest: the intersection, and a sum for NaN. */
static void emit_float_least(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const bool least = node->opcode == HAL_IR_MIN;
    if (!least && type == HAL_TYPE_F32) {
        emit_greatest(jit, node);
        return;
    }
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

/* Counts count modulo the width. */
static void emit_shift(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    const jit_entry *count = &jit->loop.program->values[node->a[1]];
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

static void emit_comparison(jit_state *jit, const jit_node *node)
{
    static const uint8_t integers[2][4] = {{INTEGER_EQ, INTEGER_NE, INTEGER_LT, INTEGER_LE},
                                           {INTEGER_EQ, INTEGER_NE, INTEGER_GT, INTEGER_GE}};
    const hal_type type = node->type;
    /* The operand in a register goes first. */
    const bool swap = type != HAL_TYPE_BOOL &&
                      jit->loop.program->values[node->a[0]].reg == JIT_NO_REGISTER &&
                      jit->loop.program->values[node->a[1]].reg != JIT_NO_REGISTER;
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
                       float_predicate(node->opcode, swap));
    } else {
        const uint32_t name = hal_type_is_signed(type) ? by_size(type, X86_PCMPD, X86_PCMPQ)
                                                       : by_size(type, X86_PCMPUD, X86_PCMPUQ);
        emit_immediate(jit, name, type, d, a, b, integers[swap][node->opcode - HAL_IR_EQ]);
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

/* The result of converting a float outside of an integer's range is replaced. */
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
    const hal_type from = node->type, to = jit->loop.program->values[node->d].type;
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

static void emit_integer(jit_state *jit, const jit_node *node)
{
    if (node->a[1] == JIT_NONE) {
        emit_integer_unary(jit, node);
    } else {
        emit_binary(jit, node, integer_name(node->opcode, node->type));
    }
}

static bool cast_is_supported(hal_type from, hal_type to)
{
    (void)from;
    (void)to;
    return true;
}

static void narrow_store(jit_state *jit, uint32_t bytes, uint32_t a, x86_operand to, uint32_t mask)
{
    emit_masked(jit, bytes == 1 ? X86_PMOVDB : X86_PMOVDW, HAL_TYPE_U32, mask, false, a, 0, to);
}

static void low_words(jit_state *jit, uint32_t words, uint32_t a)
{
    narrow_store(jit, 2, a, x86_register(words), 0);
}

static uint32_t element_mask(jit_state *jit, hal_type type, uint32_t mask)
{
    (void)jit;
    (void)type;
    return mask;
}

static void masked_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask)
{
    emit_masked(jit, by_size(type, X86_MOVDQU32, X86_MOVDQU64), type, mask, true, d, 0, from);
}

static void masked_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask)
{
    emit_masked(jit, by_size(type, X86_MOVDQU32_STORE, X86_MOVDQU64_STORE), type, mask, false, a, 0,
                to);
}

static void lanes_clear(jit_state *jit, hal_type type, uint32_t d, uint32_t mask)
{
    masked_load(jit, type, d, x86_register(d), mask);
}

/* ---- masks ---- */

static void bool_copy(jit_state *jit, uint32_t d, uint32_t a)
{
    x86_mask_move(&jit->code, d, x86_register(a));
}

static void bool_set(jit_state *jit, uint32_t d, bool value)
{
    x86_mask_binary(&jit->code, value ? X86_KXNOR : X86_KXOR, d, d, d);
}

static void bool_both(jit_state *jit, uint32_t d, uint32_t a, uint32_t b)
{
    x86_mask_binary(&jit->code, X86_KAND, d, a, b);
}

static void bool_load(jit_state *jit, uint32_t d, x86_operand from)
{
    const x86_form form = {.length = X86_XMM};
    x86_vector(&jit->code, jit->loop.program->wide ? X86_MOVQ : X86_MOVDQU8, form, JIT_TEMPORARY_A,
               0, from);
    x86_vector(&jit->code, X86_PTESTMB, form, d, JIT_TEMPORARY_A, x86_register(JIT_TEMPORARY_A));
}

static void bool_store(jit_state *jit, uint32_t a, x86_operand to)
{
    const x86_form form = {.length = X86_XMM};
    const x86_form chosen = {.length = X86_XMM, .mask = (uint8_t)a, .zeroing = true};
    x86_vector(&jit->code, X86_PBROADCASTD, form, JIT_TEMPORARY_A, 0,
               x86_constant(&jit->code, 0x01010101, 4));
    x86_vector(&jit->code, X86_MOVDQU8, chosen, JIT_TEMPORARY_A, 0, x86_register(JIT_TEMPORARY_A));
    x86_vector(&jit->code, jit->loop.program->wide ? X86_MOVQ_STORE : X86_MOVDQU8_STORE, form,
               JIT_TEMPORARY_A, 0, to);
}

static void bool_spill(jit_state *jit, uint32_t a, x86_operand to)
{
    x86_mask_store(&jit->code, to, a);
}

static void bool_fill(jit_state *jit, uint32_t d, x86_operand from)
{
    x86_mask_move(&jit->code, d, from);
}

static void scatter(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask)
{
    x86_form form = jit_form(jit, type);
    form.mask = (uint8_t)mask;
    x86_vector_indexed(&jit->code, by_size(type, X86_PSCATTERDD, X86_PSCATTERDQ), form, a, mask,
                       to);
}

static void bool_test(jit_state *jit, uint32_t a)
{
    x86_mask_test(&jit->code, a, jit->loop.program->wide ? 1 : 2);
}

static void general_broadcast(jit_state *jit, uint32_t d, uint32_t general)
{
    x86_vector(&jit->code, X86_PBROADCASTD_R, (x86_form){.length = X86_ZMM}, d, 0,
               x86_register(general));
}

const jit_target jit_avx512 = {.length = X86_ZMM,
                               .lanes = 16,
                               .vectors = 29,
                               .masks = 5,
                               .most_parts = 4,
                               .mask = 7,
                               .mask_from = 1,
                               .has_apart_loads = true,
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
                               .low_words = low_words,
                               .element_mask = element_mask,
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

/* Short forms for vector instructions, which the files with instructions of operations share:
 * jit/emission/operation.c, jit/emission/avx512.c, jit_avx2.c. */
#ifndef PLUGINS_CPU_JIT_EMISSION_EMIT_H
#define PLUGINS_CPU_JIT_EMISSION_EMIT_H

#include "jit/registers/registers.h"
#include "jit/registers/state.h"

/* Predicates of comparisons of floats. */
enum {
    FLOAT_EQ = 0,
    FLOAT_UNORDERED = 3,
    FLOAT_NE = 4,
    FLOAT_ORDERED = 7,
    FLOAT_LT = 0x11,
    FLOAT_LE = 0x12,
    FLOAT_NOT_GE = 0x19,
    FLOAT_GE = 0x1d,
    FLOAT_GT = 0x1e
};

/* Modes of rounding, without exceptions. */
enum { ROUND_FLOOR = 9, ROUND_TRUNC = 11, ROUND_RINT = 8 };

static inline bool is_wide(hal_type type)
{
    return hal_type_size(type) == 8;
}

/* The instruction for 32 or 64 bits. */
static inline uint32_t by_size(hal_type type, uint32_t narrow, uint32_t wide)
{
    return is_wide(type) ? wide : narrow;
}

static inline x86_operand constant_of(jit_state *jit, hal_type type, uint32_t narrow, uint64_t wide)
{
    return is_wide(type) ? x86_constant(&jit->code, wide, 8) : x86_constant(&jit->code, narrow, 4);
}

static inline void emit(jit_state *jit, uint32_t name, hal_type type, uint32_t d, uint32_t second,
                        x86_operand operand)
{
    x86_vector(&jit->code, name, jit_form(jit, type), d, second, operand);
}

static inline void emit_immediate(jit_state *jit, uint32_t name, hal_type type, uint32_t d,
                                  uint32_t second, x86_operand operand, uint32_t immediate)
{
    x86_form form = jit_form(jit, type);
    form.immediate = (uint8_t)immediate;
    x86_vector(&jit->code, name, form, d, second, operand);
}

static inline void register_copy(jit_state *jit, hal_type type, uint32_t d, uint32_t a)
{
    if (d != a) {
        emit(jit, X86_MOVDQU32, type, d, 0, x86_register(a));
    }
}

static inline bool is_commutative(uint32_t opcode)
{
    return opcode == HAL_IR_ADD || opcode == HAL_IR_MUL || opcode == HAL_IR_AND ||
           opcode == HAL_IR_OR || opcode == HAL_IR_XOR || opcode == HAL_IR_MIN ||
           opcode == HAL_IR_MAX;
}

/* A node whose first operand is the better one for a register. */
static inline jit_node node_ordered(const jit_state *jit, const jit_node *node)
{
    jit_node result = *node;
    const jit_entry *a = &jit->loop.program->values[node->a[0]],
                    *b = &jit->loop.program->values[node->a[1]];
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
static inline void emit_binary(jit_state *jit, const jit_node *node, uint32_t name)
{
    const jit_node ordered = node_ordered(jit, node);
    const uint32_t a = jit_use(jit, &ordered, 0);
    const uint32_t d = jit_result(jit, node);
    emit(jit, name, node->type, d, a, jit_source(jit, &ordered, 1));
}

/* Comparisons of floats by opcode, with the operands in order or swapped. */
static inline uint32_t float_predicate(uint32_t opcode, bool swapped)
{
    static const uint8_t predicates[2][4] = {{FLOAT_EQ, FLOAT_NE, FLOAT_LT, FLOAT_LE},
                                             {FLOAT_EQ, FLOAT_NE, FLOAT_GT, FLOAT_GE}};
    return predicates[swapped][opcode - HAL_IR_EQ];
}

#endif

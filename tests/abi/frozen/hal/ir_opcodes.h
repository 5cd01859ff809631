/* hal/ir_opcodes.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_IR_OPCODES_H
#define TESTS_ABI_FROZEN_HAL_IR_OPCODES_H

#include <stdint.h>

#define HAL_IR_VERSION 1u

#define HAL_IR_OPCODE_TABLE(X)                                                                     \
                                                                                      \
                                 \
    X(CONSTANT, 1, 0, constant, OTHER, INPUT, VALUES, LEADING_EXPRESSION, "T k", "----", '=')      \
                                                                        \
    X(SCALAR, 2, 0, scalar, OTHER, INPUT, NUMBERS, LEADING, "T s", "----", '=')                    \
                                 \
    X(LOCAL_ID, 3, 0, local_id, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')                   \
                                           \
    X(GROUP_ID, 4, 0, group_id, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')                   \
                                                      \
    X(GROUP_COUNT, 5, 0, group_count, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')             \
                                                   \
    X(LANE_ID, 6, 0, lane_id, OTHER, INPUT, NONE, LEADING, "T", "----", 'u')                       \
              \
    X(INPUT, 7, 0, input, OTHER, INPUT, VALUES, FRAGMENT_INPUT, "T n", "----", '=')                \
                     \
    X(OUTPUT, 8, 0, output, OTHER, INPUT, VALUES, FRAGMENT_OUTPUT, "n,a", "T---", '-')             \
                                                                                                   \
                                                 \
    X(ADD, 16, 0, add, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(SUB, 17, 0, sub, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(MUL, 18, 0, mul, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
                                     \
    X(DIV, 19, 0, div, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
                       \
    X(REM, 20, 0, rem, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
                                                       \
    X(NEG, 21, 0, neg, UNARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a", "T---", 'T')                 \
                                   \
    X(ABS, 22, 0, abs, UNARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a", "T---", 'T')                 \
                                        \
    X(MIN, 23, 0, min, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(MAX, 24, 0, max, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
                                                                      \
    X(FMA, 25, 0, fma, TERNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a,b,c", "TTT-", 'T')            \
    X(SQRT, 26, 0, sqrt, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')                \
    X(FLOOR, 27, 0, floor, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')              \
                              \
    X(TRUNC, 28, 0, trunc, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')              \
    X(RINT, 29, 0, rint, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')                \
                                                            \
    X(MULHI, 30, 0, mulhi, BINARY, ARITHMETIC, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')         \
                                                                                                   \
                                        \
    X(AND, 32, 0, and, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                      \
    X(OR, 33, 0, or, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                        \
    X(XOR, 34, 0, xor, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                      \
    X(NOT, 35, 0, not, UNARY, BITS, LOGIC, EXPRESSION, "T a", "T---", 'T')                         \
                                                                      \
    X(SHL, 36, 0, shl, BINARY, BITS, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')                   \
                   \
    X(SHR, 37, 0, shr, BINARY, BITS, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')                   \
                                                                          \
    X(POPCOUNT, 38, 0, popcount, UNARY, BITS, INTEGERS, EXPRESSION, "T a", "T---", 'T')            \
                                                                                                   \
     \
    X(EQ, 40, 0, eq, BINARY, COMPARISON, VALUES, EXPRESSION, "T a,b", "TT--", 'b')                 \
    X(NE, 41, 0, ne, BINARY, COMPARISON, VALUES, EXPRESSION, "T a,b", "TT--", 'b')                 \
    X(LT, 42, 0, lt, BINARY, COMPARISON, NUMBERS, EXPRESSION, "T a,b", "TT--", 'b')                \
    X(LE, 43, 0, le, BINARY, COMPARISON, NUMBERS, EXPRESSION, "T a,b", "TT--", 'b')                \
    X(SELECT, 44, 0, select, TERNARY, COMPARISON, VALUES, EXPRESSION, "T a,b,c", "BTT-", 'T')      \
                                                                                                   \
                  \
    X(CAST, 48, 0, cast, OTHER, CONVERSION, VALUES, EXPRESSION, "T a", "T---", '=')                \
                                               \
    X(BITCAST, 49, 0, bitcast, OTHER, CONVERSION, NUMBERS, EXPRESSION, "T a", "T---", '=')         \
                               \
    X(NARROW, 50, 0, narrow, OTHER, CONVERSION, VALUES, EXPRESSION, "T S a", "T---", 'T')          \
                  \
    X(PACK, 51, 0, pack, OTHER, CONVERSION, VALUES, EXPRESSION, "T p", "PPPP", 'p')                \
                                                                      \
    X(EXTRACT, 52, 0, extract, OTHER, CONVERSION, NONE, EXPRESSION, "T a,i", "W---", 'e')          \
                                                                                                   \
            \
    X(LOAD, 56, 0, load, OTHER, MEMORY, NONE, READ, "T Mg", "Ig--", 'm')                           \
                                                                                     \
    X(STORE, 57, 0, store, OTHER, MEMORY, NONE, WRITE, "M,cg", "IgS-", 's')                        \
                                                                 \
    X(ATOMIC, 58, 0, atomic, OTHER, MEMORY, INTEGERS, READ_WRITE, "A T M,cdg", "IgMm", 'm')        \
                                          \
    X(ASYNC_COPY, 59, 0, async_copy, OTHER, MEMORY, NONE, WRITE, "W N,Bg", "Ig-I", 'w')            \
                                                          \
    X(ASYNC_COMMIT, 60, 0, async_commit, OTHER, MEMORY, NONE, EFFECT, "", "----", '-')             \
                                      \
    X(ASYNC_WAIT, 61, 0, async_wait, OTHER, MEMORY, NONE, CONVERGENT_EFFECT, "i", "----", '-')     \
                                                                                                   \
                                                             \
    X(VAR, 64, 0, var, OTHER, VARIABLE, VALUES, EFFECT, "T a", "T---", 'T')                        \
    X(GET, 65, 0, get, OTHER, VARIABLE, NONE, PURE, "T a", "V---", 'v')                            \
    X(SET, 66, 0, set, OTHER, VARIABLE, NONE, EFFECT, "a,b", "Vv--", '-')                          \
                                                                                                   \
                                                                  \
    X(FOR, 72, 0, for, OTHER, CONTROL, COUNTERS, EFFECT, "T a,b,c", "TTT-", 'T')                   \
    X(IF, 73, 0, if, OTHER, CONTROL, NONE, EFFECT, "a", "B---", '-')                               \
                       \
    X(ELSE, 74, 0, else, OTHER, CONTROL, NONE, EFFECT, "", "----", '-')                            \
    X(END, 75, 0, end, OTHER, CONTROL, NONE, EFFECT, "", "----", '-')                              \
        \
    X(BARRIER, 76, 0, barrier, OTHER, CONTROL, NONE, CONVERGENT_EFFECT, "", "----", '-')           \
                                                                                                   \
                                    \
    X(SHUFFLE, 80, 0, shuffle, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "T a,b", "TU--", 'T')         \
                                                             \
    X(SHUFFLE_XOR, 81, 0, shuffle_xor, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "T a,i", "T---", 'T') \
                                              \
    X(SUBGROUP_REDUCE, 82, 0, subgroup_reduce, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "R T a",      \
      "T---", 'T')                                                                                 \
                  \
    X(MATRIX_MULTIPLY, 83, 0, matrix_multiply, OTHER, SUBGROUP, NONE, CONVERGENT, "S T a,b,c",     \
      "WWW-", 'f')                                                                                 \
                                                                                                   \
                                                 \
    X(EXP, 96, 0, exp, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                      \
    X(EXP2, 97, 0, exp2, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                    \
    X(EXPM1, 98, 0, expm1, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                  \
    X(LOG, 99, 0, log, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                      \
    X(LOG2, 100, 0, log2, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                   \
    X(LOG1P, 101, 0, log1p, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                 \
    X(SIN, 102, 0, sin, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                     \
    X(COS, 103, 0, cos, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                     \
    X(TAN, 104, 0, tan, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                     \
    X(ATAN, 105, 0, atan, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                   \
    X(TANH, 106, 0, tanh, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                   \
    X(ERF, 107, 0, erf, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                     \
    X(RSQRT, 108, 0, rsqrt, OTHER, MATH, FLOATS, EXPRESSION, "F T a", "T---", 'T')                 \
    X(POW, 109, 0, pow, OTHER, MATH, FLOATS, EXPRESSION, "F T a,b", "TT--", 'T')

#define HAL_IR_CONSTANT_(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, operands, \
                         result)                                                                   \
    HAL_IR_##NAME = number,
enum { HAL_IR_OPCODE_TABLE(HAL_IR_CONSTANT_) HAL_IR_OPCODE_COUNT };

#define HAL_IR_MATH_FIRST HAL_IR_EXP
#define HAL_IR_MATH_LAST  HAL_IR_POW
#define HAL_IR_MATH_COUNT (HAL_IR_MATH_LAST - HAL_IR_MATH_FIRST + 1)

enum {
    HAL_IR_CLASS_NONE = 0,
    HAL_IR_CLASS_INPUT = 1,
    HAL_IR_CLASS_ARITHMETIC = 2,
    HAL_IR_CLASS_BITS = 3,
    HAL_IR_CLASS_COMPARISON = 4,
    HAL_IR_CLASS_CONVERSION = 5,
    HAL_IR_CLASS_MEMORY = 6,
    HAL_IR_CLASS_VARIABLE = 7,
    HAL_IR_CLASS_CONTROL = 8,
    HAL_IR_CLASS_SUBGROUP = 9,
    HAL_IR_CLASS_MATH = 10
};

static inline int hal_ir_is_math(uint32_t opcode)
{
    return opcode >= HAL_IR_MATH_FIRST && opcode <= HAL_IR_MATH_LAST;
}

static inline uint32_t hal_ir_math_index(uint32_t opcode)
{
    return opcode - HAL_IR_MATH_FIRST;
}

#endif

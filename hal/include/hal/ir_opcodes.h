/* The opcodes of the IR, in one table. Names, builder functions, type rules, text and the
 * conformance tool's list of cases are expansions of it.
 *
 * Operands are a, b, c, d (values), aux (an index or a kind) and imm (a signed number). To add an
 * opcode, add a row in a gap of its class or at the end, with `since` one above the last released
 * minor version, raise HAL_IR_VERSION here and, once for each release, HAL_PLUGIN_ABI_MINOR
 * (hal/plugin.h). docs/plugin-abi.md has the rules. */
#ifndef HAL_IR_OPCODES_H
#define HAL_IR_OPCODES_H

#include <stdint.h>

/* Raised with each opcode, and with each field of the IR's structures, that is appended. */
#define HAL_IR_VERSION 1u

/* X(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, operands, result), in ascending
 * order of the numbers:
 *   NAME      HAL_IR_<NAME> is the constant, `number` its value, which never changes
 *   since     the minor version of the plugin ABI that added the opcode
 *   name      in text and messages; hal_ir_<name> is the builder's function
 *   ARITY     UNARY, BINARY, TERNARY: the builder's function is generated from this table and takes
 *             that many values; OTHER: it is written by hand
 *   CLASS     HAL_IR_CLASS_<CLASS>
 *   TYPES     HAL_TYPES_<TYPES> (hal/ir_types.h): what the operands of rule T, or the result of
 *             rule =, may be
 *   TRAITS    HAL_IR_TRAITS_<TRAITS> (hal/src/ir/internal.h): effects, and where it may be
 *   syntax, operands, result: letters that hal/src/ir/internal.h explains */
#define HAL_IR_OPCODE_TABLE(X)                                                                     \
    /* Inputs. */                                                                                  \
    /* aux: index in constants; the bits of the type, zero-extended */                             \
    X(CONSTANT, 1, 0, constant, OTHER, INPUT, VALUES, LEADING_EXPRESSION, "T k", "----", '=')      \
    /* aux: index in scalars */                                                                    \
    X(SCALAR, 2, 0, scalar, OTHER, INPUT, NUMBERS, LEADING, "T s", "----", '=')                    \
    /* aux: dimension 0..2. u32, the work-item's place in its group */                             \
    X(LOCAL_ID, 3, 0, local_id, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')                   \
    /* aux: dimension. u32, the group's place in the grid */                                       \
    X(GROUP_ID, 4, 0, group_id, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')                   \
    /* aux: dimension. u32, groups in the grid */                                                  \
    X(GROUP_COUNT, 5, 0, group_count, OTHER, INPUT, NONE, LEADING, "T x", "----", 'u')             \
    /* u32, the work-item's place in its subgroup */                                               \
    X(LANE_ID, 6, 0, lane_id, OTHER, INPUT, NONE, LEADING, "T", "----", 'u')                       \
    /* aux: number of the input. In fragments only; each number below input_count once */          \
    X(INPUT, 7, 0, input, OTHER, INPUT, VALUES, FRAGMENT_INPUT, "T n", "----", '=')                \
    /* aux: number of the output, a: value. In fragments only; each number once */                 \
    X(OUTPUT, 8, 0, output, OTHER, INPUT, VALUES, FRAGMENT_OUTPUT, "n,a", "T---", '-')             \
                                                                                                   \
    /* Arithmetic, operands and result of one type. Integers wrap. Floats round to nearest even;   \
     * which NaN an operation gives is unspecified. */                                             \
    X(ADD, 16, 0, add, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(SUB, 17, 0, sub, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(MUL, 18, 0, mul, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    /* Integers towards zero, x / 0 = 0, INT_MIN / -1 = INT_MIN */                                 \
    X(DIV, 19, 0, div, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    /* Remainder of a / b; has the sign of a (C fmod); x % 0 = 0 for integers */                   \
    X(REM, 20, 0, rem, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    /* Floats: flips the sign bit, of NaN too */                                                   \
    X(NEG, 21, 0, neg, UNARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a", "T---", 'T')                 \
    /* Floats: clears the sign bit; integers wrap at the smallest */                               \
    X(ABS, 22, 0, abs, UNARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a", "T---", 'T')                 \
    /* NaN if either is NaN; min(-0, 0) = -0, max(-0, 0) = 0 */                                    \
    X(MIN, 23, 0, min, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    X(MAX, 24, 0, max, BINARY, ARITHMETIC, NUMBERS, EXPRESSION, "T a,b", "TT--", 'T')              \
    /* a * b + c, rounded once */                                                                  \
    X(FMA, 25, 0, fma, TERNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a,b,c", "TTT-", 'T')            \
    X(SQRT, 26, 0, sqrt, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')                \
    X(FLOOR, 27, 0, floor, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')              \
    /* Rounded towards zero; to the nearest whole number, ties to even */                          \
    X(TRUNC, 28, 0, trunc, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')              \
    X(RINT, 29, 0, rint, UNARY, ARITHMETIC, FLOATS, EXPRESSION, "T a", "T---", 'T')                \
    /* The high half of the full product */                                                        \
    X(MULHI, 30, 0, mulhi, BINARY, ARITHMETIC, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')         \
                                                                                                   \
    /* Bits of integers; AND, OR, XOR and NOT take BOOL too. */                                    \
    X(AND, 32, 0, and, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                      \
    X(OR, 33, 0, or, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                        \
    X(XOR, 34, 0, xor, BINARY, BITS, LOGIC, EXPRESSION, "T a,b", "TT--", 'T')                      \
    X(NOT, 35, 0, not, UNARY, BITS, LOGIC, EXPRESSION, "T a", "T---", 'T')                         \
    /* a << (b mod width of a) */                                                                  \
    X(SHL, 36, 0, shl, BINARY, BITS, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')                   \
    /* a >> (b mod width of a): arithmetic for signed types, logical for unsigned */               \
    X(SHR, 37, 0, shr, BINARY, BITS, INTEGERS, EXPRESSION, "T a,b", "TT--", 'T')                   \
    /* How many bits are 1 */                                                                      \
    X(POPCOUNT, 38, 0, popcount, UNARY, BITS, INTEGERS, EXPRESSION, "T a", "T---", 'T')            \
                                                                                                   \
    /* Comparisons give BOOL; with NaN all are false but NE. SELECT: b where a is true, else c. */ \
    X(EQ, 40, 0, eq, BINARY, COMPARISON, VALUES, EXPRESSION, "T a,b", "TT--", 'b')                 \
    X(NE, 41, 0, ne, BINARY, COMPARISON, VALUES, EXPRESSION, "T a,b", "TT--", 'b')                 \
    X(LT, 42, 0, lt, BINARY, COMPARISON, NUMBERS, EXPRESSION, "T a,b", "TT--", 'b')                \
    X(LE, 43, 0, le, BINARY, COMPARISON, NUMBERS, EXPRESSION, "T a,b", "TT--", 'b')                \
    X(SELECT, 44, 0, select, TERNARY, COMPARISON, VALUES, EXPRESSION, "T a,b,c", "BTT-", 'T')      \
                                                                                                   \
    /* Conversions. CAST: float to integer saturates, NaN gives 0; to BOOL: a != 0 */              \
    X(CAST, 48, 0, cast, OTHER, CONVERSION, VALUES, EXPRESSION, "T a", "T---", '=')                \
    /* The same bits in another type of the same size */                                           \
    X(BITCAST, 49, 0, bitcast, OTHER, CONVERSION, NUMBERS, EXPRESSION, "T a", "T---", '=')         \
    /* aux: a storage type. The value that a load gives after a store */                           \
    X(NARROW, 50, 0, narrow, OTHER, CONVERSION, VALUES, EXPRESSION, "T S a", "T---", 'T')          \
    /* a, b (, c, d): width 2 or 4 of scalars; two vectors of width 4 make width 8 */              \
    X(PACK, 51, 0, pack, OTHER, CONVERSION, VALUES, EXPRESSION, "T p", "PPPP", 'p')                \
    /* a: vector, imm: element */                                                                  \
    X(EXTRACT, 52, 0, extract, OTHER, CONVERSION, NONE, EXPRESSION, "T a,i", "W---", 'e')          \
                                                                                                   \
    /* Memory. aux: index in memories, a: element index (i32, u32, i64, u64), imm: added to it,    \
     * b: guard (BOOL or NONE). Where the guard is false nothing is accessed, and a load or an     \
     * atomic gives 0. A vector access is aligned to its own size. LOAD: width elements. */        \
    X(LOAD, 56, 0, load, OTHER, MEMORY, NONE, READ, "T Mg", "Ig--", 'm')                           \
    /* c: value */                                                                                 \
    X(STORE, 57, 0, store, OTHER, MEMORY, NONE, WRITE, "M,cg", "IgS-", 's')                        \
    /* c: operand, d: comparand of COMPARE_EXCHANGE, flags: HAL_IR_ATOMIC_*; gives the old value.  \
     * Memory of I32, U32, I64, U64 */                                                             \
    X(ATOMIC, 58, 0, atomic, OTHER, MEMORY, INTEGERS, READ_WRITE, "A T M,cdg", "IgMm", 'm')        \
    /* aux: shared memory, a: its index; d: global index, imm: binding, of the same type; width    \
     * elements, b: guard (0 is written where it is false) */                                      \
    X(ASYNC_COPY, 59, 0, async_copy, OTHER, MEMORY, NONE, WRITE, "W N,Bg", "Ig-I", 'w')            \
    /* Closes a set of asynchronous copies */                                                      \
    X(ASYNC_COMMIT, 60, 0, async_commit, OTHER, MEMORY, NONE, EFFECT, "", "----", '-')             \
    /* imm: how many of the newest sets may still be in flight */                                  \
    X(ASYNC_WAIT, 61, 0, async_wait, OTHER, MEMORY, NONE, CONVERGENT_EFFECT, "i", "----", '-')     \
                                                                                                   \
    /* Variables: one copy for each work-item. a: initial value; type: the variable's, width 1.    \
     * Only GET and SET may take a VAR. */                                                         \
    X(VAR, 64, 0, var, OTHER, VARIABLE, VALUES, EFFECT, "T a", "T---", 'T')                        \
    X(GET, 65, 0, get, OTHER, VARIABLE, NONE, PURE, "T a", "V---", 'v')                            \
    X(SET, 66, 0, set, OTHER, VARIABLE, NONE, EFFECT, "a,b", "Vv--", '-')                          \
                                                                                                   \
    /* Control. FOR: for (i = a; i < b; i += c), the value is i; i32 or u32, c > 0, and the last   \
     * i + c stays within the type */                                                              \
    X(FOR, 72, 0, for, OTHER, CONTROL, COUNTERS, EFFECT, "T a,b,c", "TTT-", 'T')                   \
    X(IF, 73, 0, if, OTHER, CONTROL, NONE, EFFECT, "a", "B---", '-')                               \
    /* ELSE: of the nearest open IF; END: of the nearest open FOR, IF or ELSE */                   \
    X(ELSE, 74, 0, else, OTHER, CONTROL, NONE, EFFECT, "", "----", '-')                            \
    X(END, 75, 0, end, OTHER, CONTROL, NONE, EFFECT, "", "----", '-')                              \
    /* All work-items of the group arrive; their memory accesses are visible to all after it */    \
    X(BARRIER, 76, 0, barrier, OTHER, CONTROL, NONE, CONVERGENT_EFFECT, "", "----", '-')           \
                                                                                                   \
    /* Subgroups: only where control is uniform. SHUFFLE: b: u32 lane to read from, modulo the     \
     * width; a lane that a short subgroup lacks gives any value */                                \
    X(SHUFFLE, 80, 0, shuffle, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "T a,b", "TU--", 'T')         \
    /* imm: 0..127, xor of the own lane */                                                         \
    X(SHUFFLE_XOR, 81, 0, shuffle_xor, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "T a,i", "T---", 'T') \
    /* aux: HAL_IR_REDUCE_*; every lane has the result */                                          \
    X(SUBGROUP_REDUCE, 82, 0, subgroup_reduce, OTHER, SUBGROUP, NUMBERS, CONVERGENT, "R T a",      \
      "T---", 'T')                                                                                 \
    /* A B + C of matrices spread over 32 lanes, see hal/ir.h. a: A, U32 of width 4; b: B, U32 of  \
     * width 2; c: C, and the result: F32 of width 4; aux: element type of A and B; if that is     \
     * F64, all are F64 */                                                                         \
    X(MATRIX_MULTIPLY, 83, 0, matrix_multiply, OTHER, SUBGROUP, NONE, CONVERGENT, "S T a,b,c",     \
      "WWW-", 'f')                                                                                 \
                                                                                                   \
    /* Transcendental functions. hal expands them by ir_math.h unless the device claims them, with \
     * the same bits, or flags ask for HAL_IR_FAST. */                                             \
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

/* Opcodes of class MATH are those from FIRST to LAST, and no others: bit (opcode - FIRST) of
 * hal_device_info.math_f32 and math_f64 is the opcode's. An opcode after LAST belongs to another
 * class until LAST moves. */
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

/* Whether an opcode is a transcendental function. */
static inline int hal_ir_is_math(uint32_t opcode)
{
    return opcode >= HAL_IR_MATH_FIRST && opcode <= HAL_IR_MATH_LAST;
}

/* The bit of a transcendental function in hal_device_info.math_f32 and math_f64, and its index in
 * tables of these functions. */
static inline uint32_t hal_ir_math_index(uint32_t opcode)
{
    return opcode - HAL_IR_MATH_FIRST;
}

#endif

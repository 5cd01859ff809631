/* The table of opcodes: names, text syntax, operand and result rules. Builder, verifier, printer
 * and parser read it; nothing about an opcode's form is said anywhere else. */
#include "internal.h"

/* Sets of operand types. */
enum {
    FLOATS = HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_F64),
    INTEGERS = HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32) |
               HAL_TYPE_BIT(HAL_TYPE_I64) | HAL_TYPE_BIT(HAL_TYPE_U64),
    NUMBERS = FLOATS | INTEGERS,
    LOGIC = INTEGERS | HAL_TYPE_BIT(HAL_TYPE_BOOL),
    VALUES = NUMBERS | HAL_TYPE_BIT(HAL_TYPE_BOOL),
    COUNTERS = HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32)
};

/* Sets of traits. */
enum {
    PURE = HAL_IR_TRAIT_PURE,
    EXPRESSION = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_FRAGMENT,
    LEADING = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_LEADING,
    READS = HAL_IR_TRAIT_READS,
    WRITES = HAL_IR_TRAIT_WRITES,
    CONVERGENT = HAL_IR_TRAIT_CONVERGENT,
    FRAGMENT_ONLY = HAL_IR_TRAIT_FRAGMENT | HAL_IR_TRAIT_NO_KERNEL
};

static const hal_ir_info table[HAL_IR_OPCODE_COUNT] = {
    [HAL_IR_CONSTANT] = {"constant", "T k", "----", '=', VALUES, LEADING | EXPRESSION},
    [HAL_IR_SCALAR] = {"scalar", "T s", "----", '=', NUMBERS, LEADING},
    [HAL_IR_LOCAL_ID] = {"local_id", "T x", "----", 'u', 0, LEADING},
    [HAL_IR_GROUP_ID] = {"group_id", "T x", "----", 'u', 0, LEADING},
    [HAL_IR_GROUP_COUNT] = {"group_count", "T x", "----", 'u', 0, LEADING},
    [HAL_IR_LANE_ID] = {"lane_id", "T", "----", 'u', 0, LEADING},
    [HAL_IR_INPUT] = {"input", "T n", "----", '=', VALUES, HAL_IR_TRAIT_LEADING | FRAGMENT_ONLY},
    [HAL_IR_OUTPUT] = {"output", "n,a", "T---", '-', VALUES, FRAGMENT_ONLY},

    [HAL_IR_ADD] = {"add", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_SUB] = {"sub", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_MUL] = {"mul", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_DIV] = {"div", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_REM] = {"rem", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_NEG] = {"neg", "T a", "T---", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_ABS] = {"abs", "T a", "T---", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_MIN] = {"min", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_MAX] = {"max", "T a,b", "TT--", 'T', NUMBERS, EXPRESSION},
    [HAL_IR_FMA] = {"fma", "T a,b,c", "TTT-", 'T', FLOATS, EXPRESSION},
    [HAL_IR_SQRT] = {"sqrt", "T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_FLOOR] = {"floor", "T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_TRUNC] = {"trunc", "T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_RINT] = {"rint", "T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_MULHI] = {"mulhi", "T a,b", "TT--", 'T', INTEGERS, EXPRESSION},

    [HAL_IR_AND] = {"and", "T a,b", "TT--", 'T', LOGIC, EXPRESSION},
    [HAL_IR_OR] = {"or", "T a,b", "TT--", 'T', LOGIC, EXPRESSION},
    [HAL_IR_XOR] = {"xor", "T a,b", "TT--", 'T', LOGIC, EXPRESSION},
    [HAL_IR_NOT] = {"not", "T a", "T---", 'T', LOGIC, EXPRESSION},
    [HAL_IR_SHL] = {"shl", "T a,b", "TT--", 'T', INTEGERS, EXPRESSION},
    [HAL_IR_SHR] = {"shr", "T a,b", "TT--", 'T', INTEGERS, EXPRESSION},

    [HAL_IR_EQ] = {"eq", "T a,b", "TT--", 'b', VALUES, EXPRESSION},
    [HAL_IR_NE] = {"ne", "T a,b", "TT--", 'b', VALUES, EXPRESSION},
    [HAL_IR_LT] = {"lt", "T a,b", "TT--", 'b', NUMBERS, EXPRESSION},
    [HAL_IR_LE] = {"le", "T a,b", "TT--", 'b', NUMBERS, EXPRESSION},
    [HAL_IR_SELECT] = {"select", "T a,b,c", "BTT-", 'T', VALUES, EXPRESSION},

    [HAL_IR_CAST] = {"cast", "T a", "T---", '=', VALUES, EXPRESSION},
    [HAL_IR_BITCAST] = {"bitcast", "T a", "T---", '=', NUMBERS, EXPRESSION},
    [HAL_IR_NARROW] = {"narrow", "T S a", "T---", 'T', VALUES, EXPRESSION},
    [HAL_IR_PACK] = {"pack", "T p", "PPPP", 'p', VALUES, EXPRESSION},
    [HAL_IR_EXTRACT] = {"extract", "T a,i", "W---", 'e', 0, EXPRESSION},

    [HAL_IR_LOAD] = {"load", "T Mg", "Ig--", 'm', 0, PURE | READS},
    [HAL_IR_STORE] = {"store", "M,cg", "IgS-", 's', 0, WRITES},
    [HAL_IR_ATOMIC] = {"atomic", "A T M,cdg", "IgMm", 'm', INTEGERS, READS | WRITES},
    [HAL_IR_ASYNC_COPY] = {"async_copy", "W N,Bg", "Ig-I", 'w', 0, WRITES},
    [HAL_IR_ASYNC_COMMIT] = {"async_commit", "", "----", '-', 0, 0},
    [HAL_IR_ASYNC_WAIT] = {"async_wait", "i", "----", '-', 0, CONVERGENT},

    [HAL_IR_VAR] = {"var", "T a", "T---", 'T', VALUES, 0},
    [HAL_IR_GET] = {"get", "T a", "V---", 'v', 0, PURE},
    [HAL_IR_SET] = {"set", "a,b", "Vv--", '-', 0, 0},

    [HAL_IR_FOR] = {"for", "T a,b,c", "TTT-", 'T', COUNTERS, 0},
    [HAL_IR_IF] = {"if", "a", "B---", '-', 0, 0},
    [HAL_IR_ELSE] = {"else", "", "----", '-', 0, 0},
    [HAL_IR_END] = {"end", "", "----", '-', 0, 0},
    [HAL_IR_BARRIER] = {"barrier", "", "----", '-', 0, CONVERGENT},

    [HAL_IR_SHUFFLE] = {"shuffle", "T a,b", "TU--", 'T', NUMBERS, PURE | CONVERGENT},
    [HAL_IR_SHUFFLE_XOR] = {"shuffle_xor", "T a,i", "T---", 'T', NUMBERS, PURE | CONVERGENT},
    [HAL_IR_SUBGROUP_REDUCE] = {"subgroup_reduce", "R T a", "T---", 'T', NUMBERS,
                                PURE | CONVERGENT},
    [HAL_IR_MATRIX_MULTIPLY] = {"matrix_multiply", "S T a,b,c", "WWW-", 'f', 0, PURE | CONVERGENT},

    [HAL_IR_EXP] = {"exp", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_EXP2] = {"exp2", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_EXPM1] = {"expm1", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_LOG] = {"log", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_LOG2] = {"log2", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_LOG1P] = {"log1p", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_SIN] = {"sin", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_COS] = {"cos", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_TAN] = {"tan", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_ATAN] = {"atan", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_TANH] = {"tanh", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_ERF] = {"erf", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_RSQRT] = {"rsqrt", "F T a", "T---", 'T', FLOATS, EXPRESSION},
    [HAL_IR_POW] = {"pow", "F T a,b", "TT--", 'T', FLOATS, EXPRESSION},
};

const char *const hal_ir_atomic_names[HAL_IR_ATOMIC_COUNT + 1] = {
    "add", "min", "max", "and", "or", "xor", "exchange", "compare_exchange", NULL};
const char *const hal_ir_reduction_names[HAL_IR_REDUCE_COUNT + 1] = {"add", "min", "max", NULL};
const char *const hal_ir_dimension_names[4] = {"x", "y", "z", NULL};

const hal_ir_info *hal_ir_info_of(uint32_t opcode)
{
    if (opcode >= HAL_IR_OPCODE_COUNT || table[opcode].name == NULL) {
        return NULL;
    }
    return &table[opcode];
}

const char *hal_ir_opcode_name(uint32_t opcode)
{
    const hal_ir_info *info = hal_ir_info_of(opcode);
    return info == NULL ? NULL : info->name;
}

const char *hal_type_name(hal_type type)
{
    static const char *const names[HAL_TYPE_COUNT] = {"none", "bool", "i8",  "u8",  "i16",
                                                      "u16",  "i32",  "u32", "i64", "u64",
                                                      "f16",  "bf16", "f32", "f64"};
    return type < HAL_TYPE_COUNT ? names[type] : NULL;
}

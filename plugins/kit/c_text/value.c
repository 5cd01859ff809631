/* The pattern of each pure operation of the C-family languages: one row an opcode, one column a
 * class of types. Operands are names or literals, so that a pattern may repeat them. */
#include <kit/c_text/state.h>

#include <stdbool.h>
#include <stddef.h>

enum { FLOAT, SIGNED, UNSIGNED, BOOL, CLASSES };

/* Signed integers wrap; C guarantees it for unsigned ones only. Division by zero, and by -1 on
 * overflow, avoids the C division, without a branch. */
static const char *const patterns[HAL_IR_EXTRACT + 1][CLASSES] = {
    [HAL_IR_ADD] = {"@a + @b", "(@T)((@U)@a + (@U)@b)", "@a + @b", NULL},
    [HAL_IR_SUB] = {"@a - @b", "(@T)((@U)@a - (@U)@b)", "@a - @b", NULL},
    [HAL_IR_MUL] = {"@a * @b", "(@T)((@U)@a * (@U)@b)", "@a * @b", NULL},
    [HAL_IR_DIV] = {"@a / @b",
                    "@b == 0 ? 0 : @b == -1 ? (@T)(0 - (@U)@a) : "
                    "@a / (((@b == 0) | (@b == -1)) ? 1 : @b)",
                    "@b == 0 ? 0 : @a / (@b == 0 ? 1 : @b)", NULL},
    [HAL_IR_REM] = {NULL, "((@b == 0) | (@b == -1)) ? 0 : @a % (((@b == 0) | (@b == -1)) ? 1 : @b)",
                    "@b == 0 ? 0 : @a % (@b == 0 ? 1 : @b)", NULL},
    [HAL_IR_NEG] = {"@f(@u(@a) ^ (@V)1 << @m)", "(@T)(0 - (@U)@a)", "0 - @a", NULL},
    [HAL_IR_ABS] = {"@f(@u(@a) & ~((@V)1 << @m))", "@a < 0 ? (@T)(0 - (@U)@a) : @a", "@a", NULL},
    [HAL_IR_MIN] = {"@a == @b ? @f(@u(@a) | @u(@b)) : ((@a < @b) | (@a != @a)) ? @a : @b",
                    "@a < @b ? @a : @b", "@a < @b ? @a : @b", NULL},
    [HAL_IR_MAX] = {"@a == @b ? @f(@u(@a) & @u(@b)) : ((@a > @b) | (@a != @a)) ? @a : @b",
                    "@a < @b ? @b : @a", "@a < @b ? @b : @a", NULL},
    [HAL_IR_SQRT] = {"sqrt(@a)", NULL, NULL, NULL},
    [HAL_IR_FLOOR] = {"floor(@a)", NULL, NULL, NULL},
    [HAL_IR_TRUNC] = {"trunc(@a)", NULL, NULL, NULL},
    [HAL_IR_RINT] = {"rint(@a)", NULL, NULL, NULL},
    [HAL_IR_AND] = {NULL, "@a & @b", "@a & @b", "(@T)(@a & @b)"},
    [HAL_IR_OR] = {NULL, "@a | @b", "@a | @b", "(@T)(@a | @b)"},
    /* In parentheses, since compilers take the literals 2 ^ n and 10 ^ n for powers, and warn. */
    [HAL_IR_XOR] = {NULL, "(@a) ^ @b", "(@a) ^ @b", "@a != @b"},
    [HAL_IR_NOT] = {NULL, "~@a", "~@a", "!@a"},
    [HAL_IR_SHL] = {NULL, "(@T)((@U)@a << (@b & @m))", "@a << (@b & @m)", NULL},
    [HAL_IR_SHR] = {NULL, "@a >> (@b & @m)", "@a >> (@b & @m)", NULL},
    [HAL_IR_POPCOUNT] = {NULL, "popcount(@a)", "popcount(@a)", NULL},
    [HAL_IR_EQ] = {"@a == @b", "@a == @b", "@a == @b", "@a == @b"},
    [HAL_IR_NE] = {"@a != @b", "@a != @b", "@a != @b", "@a != @b"},
    [HAL_IR_LT] = {"@a < @b", "@a < @b", "@a < @b", NULL},
    [HAL_IR_LE] = {"@a <= @b", "@a <= @b", "@a <= @b", NULL},
    [HAL_IR_SELECT] = {"@a ? @b : @c", "@a ? @b : @c", "@a ? @b : @c", "@a ? @b : @c"},
};

/* From a float, saturating, NaN to 0: values out of range avoid the conversion. */
static const char *const from_float[HAL_TYPE_COUNT] = {
    [HAL_TYPE_I32] = "@a >= 0x1p31@s ? 0x7fffffff : @a <= -0x1p31@s ? -0x7fffffff - 1 : "
                     "(@T)(((@a > -0x1p31@s) & (@a < 0x1p31@s)) ? @a : 0)",
    [HAL_TYPE_U32] = "@a >= 0x1p32@s ? 0xffffffffu : "
                     "(@T)(((@a > 0) & (@a < 0x1p32@s)) ? @a : 0)",
    [HAL_TYPE_I64] = "@a >= 0x1p63@s ? 0x7fffffffffffffffl : "
                     "@a <= -0x1p63@s ? -0x7fffffffffffffffl - 1l : "
                     "(@T)(((@a > -0x1p63@s) & (@a < 0x1p63@s)) ? @a : 0)",
    [HAL_TYPE_U64] = "@a >= 0x1p64@s ? 0xfffffffffffffffful : "
                     "(@T)(((@a > 0) & (@a < 0x1p64@s)) ? @a : 0)",
};

/* To nearest even; a NaN stays one. */
#define ROUND_TO_BF16                                                 \
    "((@u(@a) & 0x7fffffffu) > 0x7f800000u ? @u(@a) >> 16 | 0x40u : " \
    "(@u(@a) + 0x7fffu + (@u(@a) >> 16 & 1u)) >> 16)"
const char kit_c_bits_of_bf16[] = ROUND_TO_BF16;

static const char *cast_pattern(hal_type from, hal_type to)
{
    if (to == HAL_TYPE_BOOL) {
        return "@a != 0";
    }
    if (from == to) {
        return "@a";
    }
    return hal_type_is_float(from) && from_float[to] ? from_float[to] : "(@T)@a";
}

static const char *narrow_pattern(const kit_c_state *state, hal_type storage)
{
    switch (storage) {
    case HAL_TYPE_I8:
    case HAL_TYPE_I16:
        return storage == HAL_TYPE_I8 ? "(@T)((@U)@a << 24) >> 24" : "(@T)((@U)@a << 16) >> 16";
    case HAL_TYPE_U8:
    case HAL_TYPE_U16:
        return storage == HAL_TYPE_U8 ? "@a & 0xffu" : "@a & 0xffffu";
    case HAL_TYPE_F16:
        return state->dialect->narrow_f16;
    case HAL_TYPE_BF16:
        return state->dialect->narrow_bf16 ? state->dialect->narrow_bf16
                                           : "@f(" ROUND_TO_BF16 " << 16)";
    default:
        return "@a";
    }
}

static int class_of(hal_type type)
{
    if (type == HAL_TYPE_BOOL) {
        return BOOL;
    }
    return hal_type_is_float(type) ? FLOAT : hal_type_is_signed(type) ? SIGNED : UNSIGNED;
}

/* Whether a compiler can find that a value is constant, by up to `depth` operations. */
static bool is_of_constants(const hal_ir_kernel *ir, hal_ir_value value, int depth)
{
    hal_ir_value operands[4];
    const hal_ir_record *record = &ir->records[value];
    const uint32_t count = hal_ir_operands(record, operands);
    if (record->opcode == HAL_IR_CONSTANT) {
        return true;
    }
    bool constant = count > 0 && depth > 0 && record->opcode <= HAL_IR_EXTRACT;
    for (uint32_t i = 0; i < count && constant; i++) {
        constant = is_of_constants(ir, operands[i], depth - 1);
    }
    return constant;
}

/* Where the dialect hides it, an operand of constants is combined with a 0 that the compiler does
 * not know. */
static const char *integral_pattern(const kit_c_state *state, const hal_ir_record *record)
{
    static const char *const hidden[] = {
        [HAL_IR_FLOOR] = "floor(@f(@u(@a) ^ (@V)hidden))",
        [HAL_IR_TRUNC] = "trunc(@f(@u(@a) ^ (@V)hidden))",
        [HAL_IR_RINT] = "rint(@f(@u(@a) ^ (@V)hidden))",
    };
    const bool is_hidden = (state->dialect->hides & KIT_C_HIDE_INTEGRAL) != 0 &&
                           is_of_constants(state->ir, record->a, 4);
    return is_hidden ? hidden[record->opcode] : patterns[record->opcode][FLOAT];
}

/* A product with the constant 0, which gallivm (Mesa's llvmpipe) takes for 0 whatever the other
 * factor is: x - x, which is NaN where x is not finite, with the sign of the product. */
static const char *product_pattern(const kit_c_state *state, const hal_ir_record *record)
{
    const uint32_t factors[2] = {record->a, record->b};
    static const char *const with_zero[2] = {"@f(@u(@b - @b) | ((@u(@a) ^ @u(@b)) & (@V)1 << @m))",
                                             "@f(@u(@a - @a) | ((@u(@a) ^ @u(@b)) & (@V)1 << @m))"};
    for (int i = 0; i < 2; i++) {
        const hal_ir_record *factor = &state->ir->records[factors[i]];
        if (factor->opcode == HAL_IR_CONSTANT &&
            state->ir->constants[factor->aux] << (65 - 8 * hal_type_size(record->type)) == 0) {
            return with_zero[i];
        }
    }
    return patterns[HAL_IR_MUL][FLOAT];
}

const char *kit_c_pattern(const kit_c_state *state, const hal_ir_record *record)
{
    const kit_c_dialect *dialect = state->dialect;
    const hal_type from =
        record->a != HAL_IR_NONE ? state->ir->records[record->a].type : record->type;
    if (hal_ir_is_math(record->opcode)) {
        return record->flags & HAL_IR_FAST ? dialect->fast_math[record->opcode - HAL_IR_MATH_FIRST]
                                           : NULL;
    }
    switch (record->opcode) {
    case HAL_IR_LOCAL_ID:
        return state->ir->group_size[record->aux] == 1 ? "0u" : dialect->local_id;
    case HAL_IR_GROUP_ID:
        return dialect->group_id;
    case HAL_IR_GROUP_COUNT:
        return dialect->group_count;
    case HAL_IR_LANE_ID:
        return dialect->lane_id;
    case HAL_IR_SCALAR:
        return dialect->scalar;
    case HAL_IR_CAST:
        return cast_pattern(from, record->type);
    case HAL_IR_BITCAST:
        return "@f(@a)";
    case HAL_IR_NARROW:
        return narrow_pattern(state, (hal_type)record->aux);
    case HAL_IR_FLOOR:
    case HAL_IR_TRUNC:
    case HAL_IR_RINT:
        return integral_pattern(state, record);
    case HAL_IR_FMA:
        return dialect->fma;
    case HAL_IR_MULHI:
        return dialect->multiply_high;
    case HAL_IR_SHUFFLE:
        return dialect->shuffle;
    case HAL_IR_SHUFFLE_XOR:
        return dialect->shuffle_xor;
    case HAL_IR_MATRIX_MULTIPLY:
        return dialect->matrix_multiply;
    default:
        break;
    }
    if (record->opcode == HAL_IR_ABS && class_of(from) == SIGNED &&
        dialect->hides & KIT_C_HIDE_NEGATIVE) {
        return "@a < 0 ? (@T)((0 - (@U)@a) ^ (@U)hidden) : @a";
    }
    if (record->opcode == HAL_IR_REM && class_of(from) == FLOAT) {
        return dialect->remainder;
    }
    if (record->opcode == HAL_IR_MUL && class_of(from) == FLOAT) {
        return product_pattern(state, record);
    }
    return record->opcode <= HAL_IR_EXTRACT ? patterns[record->opcode][class_of(from)] : NULL;
}

/* Conversions between value types, and between values and storage types below 32 bits. */
#include "lower/convert.h"

/* On the bits, so that a denormal is true where the driver flushes it. */
static uint32_t cast_to_bool(lower *l, hal_type from, uint32_t value)
{
    const uint32_t width = 8 * hal_type_size(from);
    uint32_t bits = lower_bits(l, from, value);
    if (hal_type_is_float(from)) {
        bits = RESULT(&l->writer, SPV_OP_BITWISE_AND, lower_int(l, width), bits,
                      lower_number(l, width, (UINT64_C(1) << (width - 1)) - 1));
    }
    return RESULT(&l->writer, SPV_OP_I_NOT_EQUAL, lower_bool(l), bits, lower_number(l, width, 0));
}

static uint32_t cast_from_bool(lower *l, hal_type to, uint32_t value)
{
    const uint64_t one = to == HAL_TYPE_F32   ? 0x3f800000u
                         : to == HAL_TYPE_F64 ? UINT64_C(0x3ff0000000000000)
                                              : 1;
    const uint32_t zero = lower_constant(l, to, 0);
    return lower_select(l, lower_type(l, to), value, lower_constant(l, to, one),
                        hal_type_is_float(to) ? lower_hide(l, SPIRV_HIDES_CONSTANTS, to, zero)
                                              : zero);
}

/* The conversion is undefined beyond the type, so those results are selected after it. */
static uint32_t cast_float_to_integer(lower *l, hal_type from, hal_type to, uint32_t value)
{
    spirv_writer *w = &l->writer;
    const bool is_signed = hal_type_is_signed(to);
    const uint32_t width = 8 * hal_type_size(to), t = lower_type(l, to);
    const uint32_t power = is_signed ? width - 1 : width; /* values end below 2^power */
    const uint64_t limit =
        from == HAL_TYPE_F32 ? (uint64_t)(127 + power) << 23 : (uint64_t)(1023 + power) << 52;
    const uint64_t most = is_signed ? UINT64_MAX >> (65 - width) : UINT64_MAX >> (64 - width);
    const uint64_t least = is_signed ? most + 1 : 0;
    const uint64_t sign = UINT64_C(1) << (8 * hal_type_size(from) - 1);
    const uint32_t converted =
        RESULT(w, is_signed ? SPV_OP_CONVERT_F_TO_S : SPV_OP_CONVERT_F_TO_U, t, value);
    const uint32_t high = RESULT(w, SPV_OP_F_ORD_GREATER_THAN_EQUAL, lower_bool(l), value,
                                 lower_constant(l, from, limit));
    const uint32_t low = RESULT(w, SPV_OP_F_ORD_LESS_THAN_EQUAL, lower_bool(l), value,
                                lower_constant(l, from, is_signed ? limit | sign : 0));
    const uint32_t nan = RESULT(w, SPV_OP_F_UNORD_NOT_EQUAL, lower_bool(l), value, value);
    uint32_t result = lower_select(l, t, high, lower_number(l, width, most), converted);
    result = lower_select(l, t, low, lower_number(l, width, least), result);
    return lower_select(l, t, nan, lower_number(l, width, 0), result);
}

static uint32_t cast_integer_to_float(lower *l, hal_type from, hal_type to, uint32_t value)
{
    return RESULT(&l->writer,
                  hal_type_is_signed(from) ? SPV_OP_CONVERT_S_TO_F : SPV_OP_CONVERT_U_TO_F,
                  lower_type(l, to), lower_hide(l, SPIRV_HIDES_CONSTANTS, from, value));
}

/* Widened integers are hidden: Mesa's NIR (22.3) takes a comparison of one with a constant for a
 * comparison of the narrow one with a wrong constant. */
static uint32_t cast_integer(lower *l, hal_type from, hal_type to, uint32_t value)
{
    if (hal_type_size(from) == hal_type_size(to)) {
        return value;
    }
    const uint32_t converted =
        RESULT(&l->writer, hal_type_is_signed(from) ? SPV_OP_S_CONVERT : SPV_OP_U_CONVERT,
               lower_type(l, to), value);
    return hal_type_size(to) == 8 ? lower_hide(l, SPIRV_HIDES_CONSTANTS, to, converted) : converted;
}

static uint32_t emit_and(lower *l, uint32_t a, uint32_t mask)
{
    return RESULT(&l->writer, SPV_OP_BITWISE_AND, lower_int(l, 32), a, lower_u32(l, mask));
}

static uint32_t emit_shift(lower *l, uint32_t opcode, uint32_t a, uint32_t by)
{
    return RESULT(&l->writer, opcode, lower_int(l, 32), a, lower_u32(l, by));
}

static uint32_t emit_add(lower *l, uint32_t a, uint32_t b)
{
    return RESULT(&l->writer, SPV_OP_I_ADD, lower_int(l, 32), a, b);
}

static uint32_t emit_less(lower *l, uint32_t a, uint32_t limit)
{
    return RESULT(&l->writer, SPV_OP_U_LESS_THAN, lower_bool(l), a, lower_u32(l, limit));
}

static uint32_t emit_or(lower *l, uint32_t a, uint32_t b)
{
    return RESULT(&l->writer, SPV_OP_BITWISE_OR, lower_int(l, 32), a, b);
}

/* Two halves, the first one in the low bits. */
static uint32_t emit_halves(lower *l, uint32_t low, uint32_t high)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32);
    const uint32_t both =
        RESULT(w, SPV_OP_COMPOSITE_CONSTRUCT, lower_vector(l, lower_float(l, 32), 2), low, high);
    const uint32_t packed = lower_glsl(l, SPV_GLSL_PACK_HALF_2X16, u32, &both, 1);
    return RESULT(w, SPV_OP_BITWISE_XOR, u32, packed, l->hidden_zero);
}

/* Rounds to nearest even; NaN stays NaN. Without a conversion of the device: by integers, and below
 * 2^-14 by adding one half, whose last bit is 2^-24. */
static uint32_t emit_half_from_float(lower *l, uint32_t value)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), f32 = lower_float(l, 32);
    if (l->target->half_packs && l->hidden_zero != 0) {
        return emit_halves(l, value, lower_constant(l, HAL_TYPE_F32, 0));
    }
    if (l->target->half_rounds) {
        spirv_capability(w, SPV_CAPABILITY_INT16);
        const uint32_t half = RESULT(w, SPV_OP_F_CONVERT, lower_float(l, 16), value);
        const uint32_t bits = RESULT(w, SPV_OP_BITCAST, lower_int(l, 16), half);
        return RESULT(w, SPV_OP_U_CONVERT, u32, bits);
    }
    const uint32_t bits = RESULT(w, SPV_OP_BITCAST, u32, value);
    const uint32_t sign = emit_and(l, emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, bits, 16), 0x8000);
    const uint32_t size = emit_and(l, bits, 0x7fffffff);
    const uint32_t magnitude = RESULT(w, SPV_OP_BITCAST, f32, size);
    const uint32_t plus_half = lower_exact(
        l, RESULT(w, SPV_OP_F_ADD, f32, magnitude, lower_constant(l, HAL_TYPE_F32, 0x3f000000)));
    const uint32_t denormal =
        emit_add(l, RESULT(w, SPV_OP_BITCAST, u32, plus_half), lower_u32(l, 0u - 0x3f000000u));
    const uint32_t odd = emit_and(l, emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, size, 13), 1);
    const uint32_t rounded =
        emit_add(l, emit_add(l, size, lower_u32(l, 0xfffu - (112u << 23))), odd);
    const uint32_t normal = emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, rounded, 13);
    const uint32_t nan =
        RESULT(w, SPV_OP_U_GREATER_THAN, lower_bool(l), size, lower_u32(l, 0x7f800000));
    const uint32_t special = lower_select(l, u32, nan, lower_u32(l, 0x7e00), lower_u32(l, 0x7c00));
    const uint32_t finite = lower_select(l, u32, emit_less(l, size, 0x38800000), denormal, normal);
    return emit_or(l, sign, lower_select(l, u32, emit_less(l, size, 0x477ff000), finite, special));
}

/* Rounded to nearest even in the high half of the word; the low half has no meaning. NaN stays
 * NaN. */
static uint32_t emit_bfloat(lower *l, uint32_t value)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32);
    const uint32_t bits = RESULT(w, SPV_OP_BITCAST, u32, value);
    const uint32_t odd = emit_and(l, emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, bits, 16), 1);
    const uint32_t rounded = emit_add(l, emit_add(l, bits, odd), lower_u32(l, 0x7fff));
    const uint32_t nan = RESULT(w, SPV_OP_F_UNORD_NOT_EQUAL, lower_bool(l), value, value);
    return lower_select(l, u32, nan, lower_u32(l, 0x7fc00000), rounded);
}

/* Exact. A denormal half is its fraction times 2^-24. */
static uint32_t emit_half_to_float(lower *l, uint32_t half)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), f32 = lower_float(l, 32);
    if (l->target->half_converts) {
        spirv_capability(w, SPV_CAPABILITY_INT16);
        const uint32_t bits = RESULT(w, SPV_OP_U_CONVERT, lower_int(l, 16), half);
        return RESULT(w, SPV_OP_F_CONVERT, f32,
                      RESULT(w, SPV_OP_BITCAST, lower_float(l, 16), bits));
    }
    const uint32_t size = emit_and(l, half, 0x7fff);
    const uint32_t sign = emit_shift(l, SPV_OP_SHIFT_LEFT_LOGICAL, emit_and(l, half, 0x8000), 16);
    const uint32_t placed = emit_shift(l, SPV_OP_SHIFT_LEFT_LOGICAL, size, 13);
    const uint32_t normal = emit_add(l, placed, lower_u32(l, 112u << 23));
    const uint32_t special = emit_or(l, placed, lower_u32(l, 0x7f800000));
    const uint32_t scaled =
        lower_exact(l, RESULT(w, SPV_OP_F_MUL, f32, RESULT(w, SPV_OP_CONVERT_U_TO_F, f32, size),
                              lower_constant(l, HAL_TYPE_F32, 0x33800000)));
    const uint32_t denormal = RESULT(w, SPV_OP_BITCAST, u32, scaled);
    const uint32_t finite = lower_select(l, u32, emit_less(l, size, 0x400), denormal, normal);
    const uint32_t all = lower_select(l, u32, emit_less(l, size, 0x7c00), finite, special);
    return RESULT(w, SPV_OP_BITCAST, f32, emit_or(l, sign, all));
}

uint32_t lower_cast(lower *l, hal_type from, hal_type to, uint32_t value)
{
    if (from == to) {
        return value;
    }
    if (to == HAL_TYPE_BOOL) {
        return cast_to_bool(l, from, value);
    }
    if (from == HAL_TYPE_BOOL) {
        return cast_from_bool(l, to, value);
    }
    if (hal_type_is_float(from) && hal_type_is_float(to)) {
        return RESULT(&l->writer, SPV_OP_F_CONVERT, lower_type(l, to), value);
    }
    if (hal_type_is_float(from)) {
        return cast_float_to_integer(l, from, to, value);
    }
    return hal_type_is_float(to) ? cast_integer_to_float(l, from, to, value)
                                 : cast_integer(l, from, to, value);
}

uint32_t lower_encode(lower *l, hal_type type, uint32_t value)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return lower_select(l, lower_int(l, 32), value, lower_u32(l, 1), lower_u32(l, 0));
    case HAL_TYPE_I8:
    case HAL_TYPE_U8:
        return emit_and(l, value, 0xff);
    case HAL_TYPE_I16:
    case HAL_TYPE_U16:
        return emit_and(l, value, 0xffff);
    case HAL_TYPE_F16:
        return emit_half_from_float(l, value);
    case HAL_TYPE_BF16:
        return emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, emit_bfloat(l, value), 16);
    default:
        return value;
    }
}

uint32_t lower_encode_pair(lower *l, hal_type type, uint32_t low, uint32_t high)
{
    if (type == HAL_TYPE_F16 && l->target->half_packs && l->hidden_zero != 0) {
        return emit_halves(l, low, high);
    }
    if (type == HAL_TYPE_BF16) {
        return emit_or(l, lower_encode(l, type, low),
                       emit_and(l, emit_bfloat(l, high), 0xffff0000u));
    }
    return emit_or(l, lower_encode(l, type, low),
                   emit_shift(l, SPV_OP_SHIFT_LEFT_LOGICAL, lower_encode(l, type, high), 16));
}

uint32_t lower_decode(lower *l, hal_type type, uint32_t word)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return RESULT(&l->writer, SPV_OP_I_NOT_EQUAL, lower_bool(l), emit_and(l, word, 0xff),
                      lower_u32(l, 0));
    case HAL_TYPE_U8:
        return emit_and(l, word, 0xff);
    case HAL_TYPE_U16:
        return emit_and(l, word, 0xffff);
    case HAL_TYPE_I8:
    case HAL_TYPE_I16: {
        const uint32_t by = type == HAL_TYPE_I8 ? 24 : 16;
        return emit_shift(l, SPV_OP_SHIFT_RIGHT_ARITHMETIC,
                          emit_shift(l, SPV_OP_SHIFT_LEFT_LOGICAL, word, by), by);
    }
    case HAL_TYPE_F16:
        return emit_half_to_float(l, word);
    case HAL_TYPE_BF16:
        return RESULT(&l->writer, SPV_OP_BITCAST, lower_float(l, 32),
                      emit_shift(l, SPV_OP_SHIFT_LEFT_LOGICAL, word, 16));
    default:
        return word;
    }
}

uint32_t lower_decode_high(lower *l, hal_type type, uint32_t word)
{
    if (type == HAL_TYPE_BF16) {
        return RESULT(&l->writer, SPV_OP_BITCAST, lower_float(l, 32),
                      emit_and(l, word, 0xffff0000u));
    }
    return lower_decode(l, type, emit_shift(l, SPV_OP_SHIFT_RIGHT_LOGICAL, word, 16));
}

uint32_t lower_narrow(lower *l, hal_type type, uint32_t value)
{
    return type == HAL_TYPE_BF16 ? lower_decode_high(l, type, emit_bfloat(l, value))
                                 : lower_decode(l, type, lower_encode(l, type, value));
}

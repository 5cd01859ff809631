/* Operations in terms of others: storage of narrow floats by integers, subgroup operations by
 * shared memory. Each step is a statement: C does not order the evaluation of arguments, and the
 * order of records must not depend on the compiler. */
#include "rewrite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static hal_ir_value shift_left(hal_ir_builder *b, hal_ir_value x, uint32_t count)
{
    return hal_ir_shl(b, x, hal_ir_u32(b, count));
}

static hal_ir_value and_with(hal_ir_builder *b, hal_ir_value x, uint32_t mask)
{
    return hal_ir_and(b, x, hal_ir_u32(b, mask));
}

static hal_ir_value u32(hal_ir_builder *b, uint32_t value)
{
    return hal_ir_u32(b, value);
}

/* The bits of a narrow float whose exponents are fewer than those of F32, in figures that both
 * directions use. `bias` is added to exponents on the way to F32. */
typedef struct narrow_bits {
    uint32_t sign, magnitude; /* masks */
    uint32_t mantissa, shift; /* bits of the significand, and those that F32 has more */
    uint32_t bias;
    uint32_t overflow; /* see hal_type_overflow_bits */
    int32_t least;
} narrow_bits;

static narrow_bits narrow_bits_of(hal_type type)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t magnitude = hal_type_magnitude_mask(type);
    return (narrow_bits){.sign = magnitude + 1,
                         .magnitude = magnitude,
                         .mantissa = (uint32_t)format.digits - 1,
                         .shift = 24 - (uint32_t)format.digits,
                         .bias = (uint32_t)(125 + format.digits + format.least),
                         .overflow = hal_type_overflow_bits(type),
                         .least = format.least};
}

static float power_of_two(int32_t exponent)
{
    const uint32_t bits = (uint32_t)(127 + exponent) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static hal_ir_value narrow_to_float(hal_ir_builder *b, hal_type type, hal_ir_value stored)
{
    const narrow_bits n = narrow_bits_of(type);
    const uint32_t above = 32 - 8 * hal_type_size(type);
    const hal_ir_value sign = shift_left(b, and_with(b, stored, n.sign), above);
    const hal_ir_value magnitude = and_with(b, stored, n.magnitude);
    const hal_ir_value moved = shift_left(b, magnitude, n.shift);
    const hal_ir_value normal = hal_ir_add(b, moved, u32(b, n.bias << 23));
    const hal_ir_value special = hal_ir_or(b, moved, u32(b, 0x7f800000));
    /* Denormals are multiples of the smallest one, which are normal numbers of f32. */
    const hal_ir_value count = hal_ir_cast(b, HAL_TYPE_F32, magnitude);
    const hal_ir_value scaled = hal_ir_mul(b, count, hal_ir_f32(b, power_of_two(n.least)));
    const hal_ir_value denormal = hal_ir_bitcast(b, HAL_TYPE_U32, scaled);
    const hal_ir_value is_denormal = hal_ir_lt(b, magnitude, u32(b, 1u << n.mantissa));
    const hal_ir_value is_special = hal_ir_ge(b, magnitude, u32(b, n.overflow));
    const hal_ir_value large = hal_ir_select(b, is_special, special, normal);
    const hal_ir_value bits = hal_ir_select(b, is_denormal, denormal, large);
    const hal_ir_value with_sign = hal_ir_or(b, bits, sign);
    return hal_ir_bitcast(b, HAL_TYPE_F32, with_sign);
}

static hal_ir_value shift_right(hal_ir_builder *b, hal_ir_value x, uint32_t count)
{
    return hal_ir_shr(b, x, hal_ir_u32(b, count));
}

/* Rounds to nearest even. NaNs become quiet and keep their highest bits. */
static hal_ir_value float_to_narrow(hal_ir_builder *b, hal_type type, hal_ir_value x)
{
    const narrow_bits n = narrow_bits_of(type);
    const uint32_t half = 1u << (n.shift - 1), quiet = 1u << (n.mantissa - 1);
    const uint32_t bias = n.bias << 23;
    /* What rounds to `overflow`: halfway below it, a tie, goes to the even one of the two. */
    const uint32_t limit = ((n.overflow - 1) << n.shift) + half + bias + (n.overflow & 1);
    /* Adding the power of two whose last place is worth `least` rounds denormals. */
    const float scale = power_of_two(n.least + 23);
    uint32_t scale_bits;
    memcpy(&scale_bits, &scale, sizeof scale_bits);
    const uint32_t above = 32 - 8 * hal_type_size(type);
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    const hal_ir_value sign = and_with(b, shift_right(b, bits, above), n.sign);
    const hal_ir_value magnitude = and_with(b, bits, 0x7fffffff);
    const hal_ir_value shifted = shift_right(b, magnitude, n.shift);
    const hal_ir_value payload = and_with(b, shifted, quiet - 1);
    const hal_ir_value nan = hal_ir_or(b, payload, u32(b, n.overflow | quiet));
    const hal_ir_value absolute = hal_ir_bitcast(b, HAL_TYPE_F32, magnitude);
    const hal_ir_value above_scale = hal_ir_add(b, absolute, hal_ir_f32(b, scale));
    const hal_ir_value sum_bits = hal_ir_bitcast(b, HAL_TYPE_U32, above_scale);
    const hal_ir_value denormal = hal_ir_sub(b, sum_bits, u32(b, scale_bits));
    const hal_ir_value last = and_with(b, shifted, 1);
    const hal_ir_value nearly = hal_ir_add(b, magnitude, u32(b, half - 1 - bias));
    const hal_ir_value rounded = hal_ir_add(b, nearly, last);
    const hal_ir_value normal = shift_right(b, rounded, n.shift);
    const hal_ir_value is_nan = hal_ir_gt(b, magnitude, u32(b, 0x7f800000));
    const hal_ir_value is_large = hal_ir_ge(b, magnitude, u32(b, limit));
    const hal_ir_value is_denormal = hal_ir_lt(b, magnitude, u32(b, bias + (1u << 23)));
    const hal_ir_value finite = hal_ir_select(b, is_denormal, denormal, normal);
    const hal_ir_value number = hal_ir_select(b, is_large, u32(b, n.overflow), finite);
    const hal_ir_value any = hal_ir_select(b, is_nan, nan, number);
    return hal_ir_or(b, any, sign);
}

static hal_ir_value float_to_bfloat(hal_ir_builder *b, hal_ir_value x)
{
    const hal_ir_value bits = hal_ir_bitcast(b, HAL_TYPE_U32, x);
    const hal_ir_value magnitude = and_with(b, bits, 0x7fffffff);
    const hal_ir_value high = shift_right(b, bits, 16);
    const hal_ir_value nan = hal_ir_or(b, high, u32(b, 0x40));
    const hal_ir_value last = and_with(b, high, 1);
    const hal_ir_value nearly = hal_ir_add(b, bits, u32(b, 0x7fff));
    const hal_ir_value rounded = hal_ir_add(b, nearly, last);
    const hal_ir_value number = shift_right(b, rounded, 16);
    const hal_ir_value is_nan = hal_ir_gt(b, magnitude, u32(b, 0x7f800000));
    return hal_ir_select(b, is_nan, nan, number);
}

/* BF16 is the upper half of F32. */
static bool is_upper_half(hal_type type)
{
    return hal_type_float_format(type).highest == hal_type_float_format(HAL_TYPE_F32).highest;
}

/* A shared array with one element per work-item, under an unused name. */
static hal_ir_memory_id declare_exchange(hal_ir_rewrite *r, const char *base, hal_type type)
{
    const hal_ir_kernel *from = r->from;
    char name[HAL_IR_MAX_NAME + 1];
    uint32_t number = 0;
    bool taken = true;
    snprintf(name, sizeof name, "%s", base);
    while (taken) {
        taken = false;
        for (uint32_t i = 0; i < from->memory_count; i++) {
            taken |= strcmp(from->names + from->memories[i].name, name) == 0;
        }
        for (uint32_t i = 0; i < from->scalar_count; i++) {
            taken |= strcmp(from->names + from->scalars[i].name, name) == 0;
        }
        if (taken) {
            snprintf(name, sizeof name, "%s_%u", base, ++number);
        }
    }
    return hal_ir_shared(r->to, name, type, hal_ir_group_items(from));
}

static hal_ir_value as_bits(hal_ir_rewrite *r, hal_ir_value x)
{
    const hal_type type = hal_ir_type_of(r->to, x);
    return hal_ir_bitcast(r->to, hal_type_size(type) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32, x);
}

static hal_ir_value exchange_load(hal_ir_rewrite *r, hal_type type, hal_ir_value item,
                                  uint32_t offset, hal_ir_value guard)
{
    const hal_ir_memory_id exchange = hal_type_size(type) == 8 ? r->exchange_64 : r->exchange_32;
    const hal_ir_value bits =
        hal_ir_load_wide(r->to, exchange, item, (int32_t)offset, 1, guard);
    return hal_ir_bitcast(r->to, type, bits);
}

/* Each work-item computes the whole butterfly tree, without lanes that a short subgroup lacks. */
static hal_ir_value butterfly_reduce(hal_ir_rewrite *r, const hal_ir_record *record)
{
    static const uint32_t opcodes[HAL_IR_REDUCE_COUNT] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX};
    hal_ir_builder *b = r->to;
    const uint32_t items = hal_ir_group_items(r->from);
    const uint32_t lanes = items < HAL_IR_EMULATED_SUBGROUP ? items : HAL_IR_EMULATED_SUBGROUP;
    const bool some_short = items % lanes != 0;
    hal_ir_value values[HAL_IR_EMULATED_SUBGROUP], there[HAL_IR_EMULATED_SUBGROUP];
    for (uint32_t i = 0; i < lanes; i++) {
        there[i] = HAL_IR_NONE;
        if (some_short && i > 0) {
            const hal_ir_value number = hal_ir_add(b, r->lane_zero, u32(b, i));
            there[i] = hal_ir_lt(b, number, u32(b, items));
        }
        values[i] = exchange_load(r, record->type, r->lane_zero, i, there[i]);
    }
    for (uint32_t distance = 1; distance < lanes; distance *= 2) {
        for (uint32_t i = 0; i + distance < lanes; i += 2 * distance) {
            const hal_ir_value both =
                hal_ir_binary(b, opcodes[record->aux], values[i], values[i + distance]);
            const hal_ir_value second = there[i + distance];
            values[i] = second == HAL_IR_NONE ? both : hal_ir_select(b, second, both, values[i]);
        }
    }
    return values[0];
}

hal_type hal_ir_lower_storage(const hal_device_info *info, hal_type type)
{
    if (info->storage_types & HAL_TYPE_BIT(type)) {
        return type;
    }
    if (hal_type_is_narrow_float(type)) {
        return hal_type_size(type) == 1 ? HAL_TYPE_U8 : HAL_TYPE_U16;
    }
    return type == HAL_TYPE_BOOL ? HAL_TYPE_U8 : type;
}

hal_ir_value hal_ir_lower_loaded(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value stored)
{
    if (type == storage) {
        return stored;
    }
    if (type == HAL_TYPE_BOOL) {
        return hal_ir_cast(b, HAL_TYPE_BOOL, stored);
    }
    return is_upper_half(type) ? hal_ir_bitcast(b, HAL_TYPE_F32, shift_left(b, stored, 16))
                               : narrow_to_float(b, type, stored);
}

hal_ir_value hal_ir_lower_stored(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value value)
{
    if (type == storage) {
        return value;
    }
    if (type == HAL_TYPE_BOOL) {
        return hal_ir_cast(b, HAL_TYPE_U32, value);
    }
    return is_upper_half(type) ? float_to_bfloat(b, value) : float_to_narrow(b, type, value);
}

hal_ir_value hal_ir_lower_narrow(hal_ir_builder *b, hal_type type, hal_ir_value value)
{
    if (hal_type_is_narrow_float(type)) {
        const hal_ir_value stored = hal_ir_lower_stored(b, type, HAL_TYPE_NONE, value);
        return hal_ir_lower_loaded(b, type, HAL_TYPE_NONE, stored);
    }
    if (hal_type_is_value(type)) {
        return value;
    }
    const uint32_t unused = 32 - 8 * hal_type_size(type);
    if (!hal_type_is_signed(type)) {
        return and_with(b, value, UINT32_MAX >> unused);
    }
    const hal_ir_value count = hal_ir_i32(b, (int32_t)unused);
    return hal_ir_shr(b, hal_ir_shl(b, value, count), count);
}

void hal_ir_lower_subgroup_begin(hal_ir_rewrite *r)
{
    const hal_ir_kernel *from = r->from;
    hal_ir_builder *b = r->to;
    bool uses = false, uses_32 = false, uses_64 = false;
    for (uint32_t i = 0; i < from->record_count; i++) {
        const hal_ir_record *record = &from->records[i];
        uses |= record->opcode == HAL_IR_LANE_ID;
        if (record->opcode >= HAL_IR_SHUFFLE && record->opcode <= HAL_IR_SUBGROUP_REDUCE) {
            uses = true;
            uses_32 |= hal_type_size(record->type) == 4;
            uses_64 |= hal_type_size(record->type) == 8;
        }
    }
    if (!uses) {
        return;
    }
    hal_ir_value at = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    uint32_t stride = from->group_size[0];
    for (uint32_t i = 1; i < 3; i++) {
        if (from->group_size[i] > 1) {
            const hal_ir_value id = hal_ir_id(b, HAL_IR_LOCAL_ID, i);
            const hal_ir_value part = hal_ir_mul(b, id, u32(b, stride));
            at = hal_ir_add(b, at, part);
        }
        stride *= from->group_size[i];
    }
    r->item = at;
    r->lane = and_with(b, at, HAL_IR_EMULATED_SUBGROUP - 1);
    r->lane_zero = hal_ir_sub(b, at, r->lane);
    r->exchange_32 = uses_32 ? declare_exchange(r, "subgroup_32", HAL_TYPE_U32) : HAL_IR_NONE;
    r->exchange_64 = uses_64 ? declare_exchange(r, "subgroup_64", HAL_TYPE_U64) : HAL_IR_NONE;
}

hal_ir_value hal_ir_lower_subgroup(hal_ir_rewrite *r, const hal_ir_record *record)
{
    hal_ir_builder *b = r->to;
    const uint32_t items = hal_ir_group_items(r->from);
    if (record->opcode == HAL_IR_LANE_ID) {
        return r->lane;
    }
    const hal_ir_value bits = as_bits(r, r->values[record->a]);
    const hal_ir_memory_id exchange =
        hal_type_size(record->type) == 8 ? r->exchange_64 : r->exchange_32;
    hal_ir_value result;
    hal_ir_store(b, exchange, r->item, bits);
    hal_ir_barrier(b);
    if (record->opcode == HAL_IR_SUBGROUP_REDUCE) {
        result = butterfly_reduce(r, record);
    } else {
        hal_ir_value source;
        if (record->opcode == HAL_IR_SHUFFLE) {
            source = and_with(b, r->values[record->b], HAL_IR_EMULATED_SUBGROUP - 1);
        } else {
            const uint32_t mask = (uint32_t)record->imm % HAL_IR_EMULATED_SUBGROUP;
            source = hal_ir_xor(b, r->lane, u32(b, mask));
        }
        source = hal_ir_add(b, r->lane_zero, source);
        if (items % HAL_IR_EMULATED_SUBGROUP != 0) {
            /* Lanes that a short subgroup lacks read as the own value. */
            const hal_ir_value there = hal_ir_lt(b, source, u32(b, items));
            source = hal_ir_select(b, there, source, r->item);
        }
        result = exchange_load(r, record->type, source, 0, HAL_IR_NONE);
    }
    hal_ir_barrier(b); /* the next exchange writes where this one reads */
    return result;
}

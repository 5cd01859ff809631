/* The block of scalars of a dispatch, see scalars.h. */
#include "scalars.h"

#include "rounding.h"

#include <stdio.h>
#include <string.h>

static void put_integer(ops_block *block, hal_type type, double value)
{
    if (type == HAL_TYPE_I64) {
        ops_put_u64(block, value < 0x1p63 ? (uint64_t)(int64_t)value : (uint64_t)INT64_MAX);
    } else if (type == HAL_TYPE_U64) {
        ops_put_u64(block, value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
    } else {
        ops_put_u32(block, hal_type_is_signed(type) ? (uint32_t)(int32_t)value : (uint32_t)value);
    }
}

/* The block stays a whole number of 8 bytes, with zeros where nothing was put. */
void ops_put_u32(ops_block *block, uint32_t value)
{
    const uint32_t at = block->used;
    const uint64_t with_zeros = value;
    if (at % 8 == 0 && at + 8 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &with_zeros, 8);
    } else if (at + 4 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &value, 4);
    }
    block->used = at + 4;
}

void ops_put_u64(ops_block *block, uint64_t value)
{
    const uint32_t at = (block->used + 7) & ~7u;
    if (at + 8 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &value, 8);
    }
    block->used = at + 8;
    block->alignment = 8;
}

void ops_put_index(ops_block *block, bool index64, int64_t value)
{
    if (index64) {
        ops_put_u64(block, (uint64_t)value);
    } else {
        ops_put_u32(block, (uint32_t)value);
    }
}

void ops_put_number(ops_block *block, hal_type type, double value)
{
    if (type == HAL_TYPE_F32) {
        const float number = (float)ops_round_to(HAL_TYPE_F32, value);
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        ops_put_u32(block, bits);
    } else if (type == HAL_TYPE_F64) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        ops_put_u64(block, bits);
    } else {
        put_integer(block, type, ops_round_to_integer(type, value));
    }
}

hal_ir_value ops_scalar(hal_ir_builder *builder, const char *name, uint32_t i, uint32_t j,
                        hal_type type)
{
    char text[40];
    snprintf(text, sizeof text, "%s_%u_%u", name, i, j);
    return hal_ir_scalar_value(builder, text, type);
}

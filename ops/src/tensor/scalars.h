/* The block of scalars of a dispatch, and their declaration in a kernel. */
#ifndef OPS_SRC_TENSOR_SCALARS_H
#define OPS_SRC_TENSOR_SCALARS_H

#include <hal/hal.h>
#include <stdbool.h>

/* Laid out as hal_ir_scalar_value does. */
typedef struct ops_block {
    uint32_t used;
    uint32_t alignment; /* of the largest scalar: the block is a multiple of it */
    _Alignas(8) uint8_t bytes[HAL_IR_MAX_SCALAR_BYTES];
} ops_block;

static inline void ops_block_begin(ops_block *block)
{
    block->used = 0;
    block->alignment = 4;
}

/* Bytes of the whole block. */
static inline uint32_t ops_block_size(const ops_block *block)
{
    return (block->used + block->alignment - 1) / block->alignment * block->alignment;
}

/* Appends a scalar of 4 or 8 bytes at the next multiple of its size; `block.used` grows beyond the
 * limit when there is no room, which hal then reports. */
void ops_put_u32(ops_block *block, uint32_t value);
void ops_put_u64(ops_block *block, uint64_t value);

/* Appends a place, stride or count of 64 or 32 bits; negative ones wrap. */
void ops_put_index(ops_block *block, bool index64, int64_t value);

/* Appends `value` as a scalar of a value type. */
void ops_put_number(ops_block *block, hal_type type, double value);

/* Declares a scalar of a kernel. Its name ends with the two numbers, which make it unique. */
hal_ir_value ops_scalar(hal_ir_builder *builder, const char *name, uint32_t i, uint32_t j,
                        hal_type type);

#endif

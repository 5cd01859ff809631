/* See divisor.h. x / divisor = (2 x * magic) >> (32 + shift), so that 1 is a divisor as well. */
#include "divisor.h"

#include "indexing.h"

void ops_divisor_put(uint32_t divisor, ops_block *block)
{
    uint32_t magic = UINT32_C(1) << 31, shift = 0;
    if (divisor > 1) {
        ops_magic_division(divisor, &magic, &shift);
        shift++;
    }
    ops_put_u32(block, magic);
    ops_put_u32(block, shift);
}

ops_divisor ops_divisor_declare(hal_ir_builder *b, uint32_t number)
{
    const hal_ir_value magic = ops_scalar(b, "magic", number, 0, HAL_TYPE_U32);
    return (ops_divisor){magic, ops_scalar(b, "shift", number, 0, HAL_TYPE_U32)};
}

hal_ir_value ops_divisor_quotient(hal_ir_builder *b, const ops_divisor *divisor, hal_ir_value x)
{
    const hal_ir_value twice = hal_ir_shl(b, x, hal_ir_u32(b, 1));
    return hal_ir_shr(b, hal_ir_mulhi(b, twice, divisor->magic), divisor->shift);
}

/* Keys of elements, see sort_key.h. */
#include "sort_key.h"

#include "bits.h"
#include "tensor/indexing.h"

static uint64_t greatest_bits(hal_type type)
{
    return type == HAL_TYPE_F64                   ? UINT64_C(0x7ff) << 52
           : hal_type_float_format(type).infinite ? hal_type_overflow_bits(type)
                                                  : hal_type_overflow_bits(type) - 1;
}

void ops_sort_key_choose(const ops_context *context, hal_type element, bool descending,
                         ops_sort_key *key)
{
    const bool has_bits = ops_bits_type(context, element) != element;
    const hal_type format = has_bits ? element : hal_type_of_value(element); /* else as loaded */
    *key = (ops_sort_key){.bits = (uint8_t)(8 * hal_type_size(format)),
                          .is_float = hal_type_is_float(format),
                          .is_signed = hal_type_is_signed(format),
                          .descending = descending};
    key->type = key->bits == 64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    if (key->is_float) {
        key->greatest = greatest_bits(format);
    }
}

/* The key of an element's bits. */
static hal_ir_value emit_key(hal_ir_builder *b, const ops_sort_key *key, hal_ir_value x)
{
    const hal_type type = key->type;
    const uint64_t sign_bit = UINT64_C(1) << (key->bits - 1), mask = sign_bit | (sign_bit - 1);
    const hal_ir_value sign = ops_index_constant(b, type, sign_bit);
    const hal_ir_value all = ops_index_constant(b, type, mask);
    x = hal_ir_and(b, ops_value_cast(b, type, x), all);
    if (key->is_float) {
        const hal_ir_value zero = ops_index_constant(b, type, 0);
        const hal_ir_value size = hal_ir_and(b, x, ops_index_constant(b, type, sign_bit - 1));
        x = hal_ir_select(b, hal_ir_eq(b, size, zero), zero, x);
        const hal_ir_value is_negative = hal_ir_ne(b, hal_ir_and(b, x, sign), zero);
        x = hal_ir_select(b, is_negative, hal_ir_xor(b, x, all), hal_ir_or(b, x, sign));
        const hal_ir_value is_nan = hal_ir_lt(b, ops_index_constant(b, type, key->greatest), size);
        x = hal_ir_select(b, is_nan, all, x);
    } else if (key->is_signed) {
        x = hal_ir_xor(b, x, sign);
    }
    return key->descending ? hal_ir_xor(b, x, all) : x;
}

hal_ir_value ops_sort_key_load(hal_ir_builder *b, const ops_sort_key *key, hal_ir_memory_id memory,
                               hal_ir_value index, hal_ir_value guard)
{
    hal_ir_value x = hal_ir_load_wide(b, memory, index, 0, 1, guard);
    const hal_type type = hal_ir_type_of(b, x);
    if (type == HAL_TYPE_BOOL) {
        x = hal_ir_cast(b, HAL_TYPE_U32, x);
    } else {
        x = hal_ir_bitcast(b, hal_type_size(type) == 8 ? HAL_TYPE_U64 : HAL_TYPE_U32, x);
    }
    return emit_key(b, key, x);
}

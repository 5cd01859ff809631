/* Digits of lines and of k, see separable.h. */
#include "separable.h"

#include "tensor/indexing.h"

bool ops_gemm_digits_add(ops_gemm_digits *d, int64_t length, int64_t stride)
{
    const uint32_t last = d->count - 1;
    if (d->count > 0 && length == 1) {
        return true;
    }
    if (d->count > 0 && (d->length[last] == 1 || d->stride[last] == length * stride)) {
        d->length[last] *= length;
        d->stride[last] = stride;
        return true;
    }
    if (d->count == OPS_GEMM_MAX_DIGITS) {
        return false;
    }
    d->length[d->count] = length;
    d->stride[d->count++] = stride;
    return true;
}

int64_t ops_gemm_digits_reach(const ops_gemm_digits *d)
{
    int64_t reach = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        reach += (d->length[i] - 1) * d->stride[i];
    }
    return reach;
}

int64_t ops_gemm_digits_bits(const ops_gemm_digits *d, bool is_unit)
{
    int64_t bits = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        bits |= is_unit && i + 1 == d->count ? (i > 0 ? d->length[i] : 0) : d->stride[i];
    }
    return bits;
}

void ops_gemm_declare_digits(hal_ir_builder *b, uint32_t i, uint32_t j, uint32_t count,
                             bool is_unit, hal_type type, ops_gemm_digit_values *values)
{
    static const char *const lengths[] = {"l0_", "l1_", "l2_", "l3_"};
    static const char *const magics[] = {"m0_", "m1_", "m2_", "m3_"};
    static const char *const shifts[] = {"h0_", "h1_", "h2_", "h3_"};
    static const char *const strides[] = {"s0_", "s1_", "s2_", "s3_"};
    values->count = count;
    values->is_unit = is_unit;
    values->type = type;
    for (uint32_t d = 0; d < count; d++) {
        if (d > 0) {
            values->length[d] = ops_scalar(b, lengths[d], i, j, HAL_TYPE_U32);
            values->magic[d] = ops_scalar(b, magics[d], i, j, HAL_TYPE_U32);
            values->shift[d] = ops_scalar(b, shifts[d], i, j, HAL_TYPE_U32);
        }
        values->stride[d] = ops_scalar(b, strides[d], i, j, type);
    }
}

void ops_gemm_put_digits(ops_block *block, bool index64, uint32_t count,
                         const ops_gemm_digits *digits)
{
    const uint32_t missing = count - digits->count;
    for (uint32_t d = 0; d < count; d++) {
        const int64_t length = d < missing ? 1 : digits->length[d - missing];
        if (d > 0) {
            uint32_t magic, shift;
            ops_magic_division((uint32_t)length, &magic, &shift);
            ops_put_u32(block, (uint32_t)length);
            ops_put_u32(block, magic);
            ops_put_u32(block, shift);
        }
        ops_put_index(block, index64, d < missing ? 0 : digits->stride[d - missing]);
    }
}

hal_ir_value ops_gemm_digits_place(hal_ir_builder *b, const ops_gemm_digit_values *v,
                                   hal_ir_value number)
{
    hal_ir_value place = HAL_IR_NONE;
    for (uint32_t d = v->count; d-- > 0;) {
        hal_ir_value digit = number;
        if (d > 0) {
            hal_ir_value quotient =
                hal_ir_shr(b, hal_ir_mulhi(b, number, v->magic[d]), v->shift[d]);
            digit = hal_ir_sub(b, number, hal_ir_mul(b, quotient, v->length[d]));
            number = quotient;
        }
        digit = ops_value_cast(b, v->type, digit);
        if (!v->is_unit || d + 1 < v->count) {
            digit = hal_ir_mul(b, digit, v->stride[d]);
        }
        place = place == HAL_IR_NONE ? digit : hal_ir_add(b, place, digit);
    }
    return place;
}

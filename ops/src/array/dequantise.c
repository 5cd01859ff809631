/* Public call of quantised weights as an array. */
#include "deferred.h"
#include "quantised_match.h"

#include "gemm/quantised_decode.h"
#include "tensor/number.h"

#include <math.h>
#include <string.h>

static bool type_is_float(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F16 || type == HAL_TYPE_BF16;
}

static hal_status check_types(const char *function, hal_type type, ops_quantised_format format,
                              ops_array *const *operands, uint32_t count)
{
    const hal_type values = operands[0]->view.type, scales = operands[1]->view.type;
    const hal_type zeros = count > 2 ? operands[2]->view.type : (hal_type)HAL_TYPE_F32;
    if (format < OPS_QUANTISED_I8 || format > OPS_QUANTISED_E2M1) {
        return ops_invalid("%s: format: expected an ops_quantised_format, got %d", function,
                           (int)format);
    }
    if (!type_is_float(type)) {
        return ops_invalid("%s: type: expected f32, f16 or bf16, got %s", function,
                           hal_type_name(type));
    }
    if (!ops_quantised_takes_type(format, values)) {
        return ops_invalid("%s: values: expected %s for the format, got %s", function,
                           format == OPS_QUANTISED_I8 ? "i8" : "u8", hal_type_name(values));
    }
    if ((!type_is_float(scales) && scales != HAL_TYPE_U8) ||
        (!type_is_float(zeros) && zeros != HAL_TYPE_I8 && zeros != HAL_TYPE_U8)) {
        return ops_invalid("%s: scales and zeros: expected f32, f16, bf16 or bytes, got %s and %s",
                           function, hal_type_name(scales), hal_type_name(zeros));
    }
    return HAL_OK;
}

static hal_status check_shapes(const char *function, ops_quantised_format format,
                               ops_array *const *operands, uint32_t count, int64_t *k)
{
    const ops_tensor *values = &operands[0]->view, *scales = &operands[1]->view;
    const int64_t packed = 8 / ops_quantised_bits(format);
    bool fits = values->rank == 2 && scales->rank == 2 && scales->shape[1] > 0;
    *k = fits ? values->shape[1] * packed : 0;
    fits = fits && *k % scales->shape[1] == 0 && *k / scales->shape[1] % packed == 0 &&
           (scales->shape[0] == values->shape[0] || scales->shape[0] == 1) &&
           (count < 3 || ops_same_shape(&operands[2]->view, scales));
    char text[2][OPS_TEXT_BYTES];
    return fits
               ? HAL_OK
               : ops_invalid("%s: values, scales and zeros: expected [n, k%s] and twice [n, blocks "
                             "of k], got %s and %s",
                             function, packed == 2 ? " / 2" : "", ops_describe(values, text[0]),
                             ops_describe(scales, text[1]));
}

ops_array *ops_array_dequantise(hal_type type, ops_quantised_format format, ops_array *values,
                                ops_array *scales, ops_array *zeros, double zero)
{
    const char *function = "ops_array_dequantise";
    ops_array *const operands[3] = {values, scales, zeros};
    const uint32_t count = zeros ? 3 : 2;
    ops_result result;
    int64_t k;
    ops_arrays *arrays = ops_check_operands(function, operands, count);
    if (!arrays || check_types(function, type, format, operands, count) ||
        ops_check_type(function, arrays, type) ||
        check_shapes(function, format, operands, count, &k)) {
        return NULL;
    }
    const double most = ops_quantised_is_float(format) ? 0 : 0x1p15;
    if (!(fabs(zero) <= most) || zero != floor(zero)) {
        ops_invalid("%s: zero: expected a whole number of at most %s in size, got %s", function,
                    most > 0 ? "2^15" : "0", OPS_NUMBER(zero, -1));
        return NULL;
    }
    ops_quantised_form form;
    memset(&form, 0, sizeof form);
    form.format = format;
    form.by_columns = form.in_blocks = 1;
    form.blocks = scales->view.shape[1];
    form.zero = zero;
    ops_result_like(values, &result);
    result.type = type;
    ops_result_own_shape(&result)[1] = k;
    result.form = &form;
    result.form_bytes = sizeof form;
    return ops_defer(function, OPS_OPERATION_DEQUANTISE, 0, operands, count, &result);
}

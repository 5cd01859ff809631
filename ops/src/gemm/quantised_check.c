/* The checks of quantised weights. */
#include "quantised.h"

#include "quantised_decode.h"
#include "tensor/number.h"

#include <math.h>

static bool type_is_float(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F16 || type == HAL_TYPE_BF16;
}

static hal_status check_types(const char *function, const char *argument, const ops_quantised *q)
{
    if (q->format < OPS_QUANTISED_I8 || q->format > OPS_QUANTISED_E2M1) {
        return ops_invalid("%s: %s.format: expected an ops_quantised_format, got %d", function,
                           argument, (int)q->format);
    }
    if (!ops_quantised_takes_type(q->format, q->values.type)) {
        return ops_invalid("%s: %s.values: expected %s for the format, got %s", function, argument,
                           q->format == OPS_QUANTISED_I8 ? "i8" : "u8",
                           hal_type_name(q->values.type));
    }
    if (!type_is_float(q->scales.type) && q->scales.type != HAL_TYPE_U8) {
        return ops_invalid("%s: %s.scales: expected f32, f16, bf16 or u8, got %s", function,
                           argument, hal_type_name(q->scales.type));
    }
    const hal_type zeros = q->zeros ? q->zeros->type : HAL_TYPE_F32;
    if (!type_is_float(zeros) && zeros != HAL_TYPE_I8 && zeros != HAL_TYPE_U8) {
        return ops_invalid("%s: %s.zeros: expected f32, f16, bf16, i8 or u8, got %s", function,
                           argument, hal_type_name(zeros));
    }
    const bool takes_zero = !ops_quantised_is_float(q->format);
    if (!(fabs(q->zero) <= (takes_zero ? 0x1p15 : 0)) || q->zero != floor(q->zero)) {
        return ops_invalid("%s: %s.zero: expected %s, got %s", function, argument,
                           takes_zero ? "a whole number of at most 2^15 in size" : "0 for floats",
                           OPS_NUMBER(q->zero, -1));
    }
    return HAL_OK;
}

/* Rows, columns and batch; false where the rank is another. */
static bool get_lengths(const ops_tensor *t, int64_t lengths[3])
{
    lengths[0] = t->rank == 3 ? t->shape[0] : 1;
    lengths[1] = t->rank >= 2 ? t->shape[t->rank - 2] : 0;
    lengths[2] = t->rank >= 2 ? t->shape[t->rank - 1] : 0;
    return t->rank == 2 || t->rank == 3;
}

static hal_status check_shapes(const char *function, const char *argument, const ops_quantised *q,
                               ops_quantised_weights *w)
{
    int64_t values[3], scales[3], zeros[3];
    char text[2][OPS_TEXT_BYTES];
    w->bits = ops_quantised_bits(q->format);
    const int64_t packed = 8 / w->bits;
    bool fits = get_lengths(&q->values, values) && get_lengths(&q->scales, scales);
    w->batch = values[0];
    w->k = values[1] * packed;
    w->n = values[2];
    const int64_t blocks = fits && scales[1] > 0 ? scales[1] : 1;
    w->block = w->k / blocks;
    fits = fits && scales[1] > 0 && w->block * blocks == w->k && w->block % packed == 0 &&
           (scales[2] == w->n || scales[2] == 1) && (scales[0] == w->batch || scales[0] == 1);
    if (!fits) {
        return ops_invalid("%s: %s: expected values of [k%s, n] and scales of [blocks of k, n], "
                           "with or without a leading batch, got %s and %s",
                           function, argument, packed == 2 ? " / 2" : "",
                           ops_describe(&q->values, text[0]), ops_describe(&q->scales, text[1]));
    }
    if (q->zeros && (!get_lengths(q->zeros, zeros) || !ops_same_shape(q->zeros, &q->scales))) {
        return ops_invalid("%s: %s.zeros: expected the shape of the scales %s, got %s", function,
                           argument, ops_describe(&q->scales, text[0]),
                           ops_describe(q->zeros, text[1]));
    }
    if (w->k > INT32_MAX || w->n > INT32_MAX) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: %s: expected lengths up to 2^31 - 1, got %s", function, argument,
                              ops_describe(&q->values, text[0]));
    }
    return HAL_OK;
}

hal_status ops_quantised_check(const ops_context *context, const char *function,
                               const char *argument, const ops_quantised *q,
                               ops_quantised_weights *w)
{
    if (!q) {
        return ops_invalid("%s: %s: expected weights, got null", function, argument);
    }
    HAL_TRY(ops_check_size(function, argument, q->size, sizeof *q));
    HAL_TRY(check_types(function, argument, q));
    HAL_TRY(ops_check_tensor(context, function, "values", &q->values));
    HAL_TRY(ops_check_tensor(context, function, "scales", &q->scales));
    if (q->zeros) {
        HAL_TRY(ops_check_tensor(context, function, "zeros", q->zeros));
    }
    HAL_TRY(check_shapes(function, argument, q, w));
    w->given = q;
    w->values = q->values;
    w->values.type = HAL_TYPE_U8; /* elements of one byte, whatever they mean */
    return HAL_OK;
}

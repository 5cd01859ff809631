/* Forms of complex matrices on the device, see pairs.h. */
#include "pairs.h"

#include "operand.h"

ops_tensor blas_pairs_view(blas_type type, const ops_tensor *pairs)
{
    ops_tensor view = *pairs;
    if (blas_type_is_complex(type)) {
        view.rank = 3;
        view.shape[1] /= 2;
        view.stride[1] *= 2;
        view.shape[2] = 2;
        view.stride[2] = pairs->stride[1];
    }
    return view;
}

/* The real or imaginary parts. */
static ops_tensor part_of(const ops_tensor *pairs, int64_t part)
{
    ops_tensor view = *pairs;
    view.offset += part * pairs->stride[1];
    view.shape[1] /= 2;
    view.stride[1] *= 2;
    return view;
}

/* Every second row, from `first` on. */
static ops_tensor rows_of(const ops_tensor *tensor, int64_t first)
{
    ops_tensor view = *tensor;
    view.offset += first * tensor->stride[0];
    view.shape[0] /= 2;
    view.stride[0] *= 2;
    return view;
}

/* (re, im) and (-im, re). */
static hal_status expand(ops_context *context, const ops_tensor *pairs, const ops_tensor *expanded)
{
    const ops_tensor first = rows_of(expanded, 0), second = rows_of(expanded, 1);
    const ops_tensor left = part_of(&second, 0), right = part_of(&second, 1);
    const ops_tensor re = part_of(pairs, 0), im = part_of(pairs, 1);
    HAL_TRY(ops_copy(context, pairs, &first));
    HAL_TRY(ops_unary(context, OPS_NEG, &im, &left));
    return ops_copy(context, &re, &right);
}

hal_status blas_pairs_expand(blas_lane *lane, blas_type type, const ops_tensor *pairs,
                             ops_tensor *expanded)
{
    if (!blas_type_is_complex(type)) {
        hal_buffer_retain(pairs->buffer);
        *expanded = *pairs;
        return HAL_OK;
    }
    const int64_t shape[2] = {2 * pairs->shape[0], pairs->shape[1]};
    HAL_TRY(ops_tensor_create(lane->context, pairs->type, 2, shape, expanded));
    const hal_status status = expand(lane->context, pairs, expanded);
    if (status != HAL_OK) {
        ops_tensor_release(expanded);
    }
    return status;
}

hal_status blas_pairs_adjoint(blas_lane *lane, blas_type type, const ops_tensor *x,
                              const ops_tensor *y)
{
    ops_tensor turned = *x;
    if (!blas_type_is_complex(type)) {
        HAL_TRY(ops_tensor_transpose(x, 0, 1, &turned));
        return ops_copy(lane->context, &turned, y);
    }
    const ops_tensor re = part_of(x, 0), im = part_of(x, 1);
    const ops_tensor y_re = part_of(y, 0), y_im = part_of(y, 1);
    HAL_TRY(ops_tensor_transpose(&re, 0, 1, &turned));
    HAL_TRY(ops_copy(lane->context, &turned, &y_re));
    HAL_TRY(ops_tensor_transpose(&im, 0, 1, &turned));
    return ops_unary(lane->context, OPS_NEG, &turned, &y_im);
}

/* Transfers between the host's matrices and tensors, see operand.h. */
#include "operand.h"

#include <stdlib.h>
#include <string.h>

static hal_type real_type(blas_type type)
{
    return blas_type_real_bytes(type) == sizeof(double) ? HAL_TYPE_F64 : HAL_TYPE_F32;
}

/* The reals of an element. */
static int64_t parts(blas_type type)
{
    return blas_type_is_complex(type) ? 2 : 1;
}

ops_tensor blas_operand_part(const ops_tensor *tensor, int64_t row, int64_t rows, int64_t column,
                             int64_t columns)
{
    ops_tensor part = *tensor;
    part.offset += row * tensor->stride[0] + column * tensor->stride[1];
    part.shape[0] = rows;
    part.shape[1] = columns;
    return part;
}

hal_status blas_operand_create(blas_lane *lane, blas_type type, int64_t rows, int64_t columns,
                               ops_tensor *tensor)
{
    const int64_t shape[2] = {columns, rows * parts(type)};
    return ops_tensor_create(lane->context, real_type(type), 2, shape, tensor);
}

/* What is stored, as it is. */
static hal_status load_in_place(blas_lane *lane, const blas_matrix *matrix, ops_tensor *tensor)
{
    const int64_t rows = matrix->is_transposed ? matrix->columns : matrix->rows;
    const int64_t columns = matrix->is_transposed ? matrix->rows : matrix->columns;
    HAL_TRY(blas_operand_create(lane, matrix->type, rows, columns, tensor));
    const int64_t strides[2] = {matrix->leading * parts(matrix->type), 1};
    const int64_t elements = (columns - 1) * matrix->leading + rows;
    const hal_status status =
        ops_tensor_write_strided(lane->context, tensor, matrix->data, strides,
                                 (uint64_t)elements * blas_type_bytes(matrix->type));
    if (status != HAL_OK) {
        ops_tensor_release(tensor);
        return status;
    }
    if (matrix->is_transposed) {
        const ops_tensor stored = *tensor;
        HAL_TRY(ops_tensor_transpose(&stored, 0, 1, tensor));
    }
    return HAL_OK;
}

hal_status blas_operand_load(blas_lane *lane, const blas_matrix *matrix, blas_number scale,
                             blas_form form, ops_tensor *tensor)
{
    const bool is_complex = blas_type_is_complex(matrix->type);
    const bool is_expanded = is_complex && form == BLAS_EXPANDED;
    const bool is_stored =
        matrix->structure == BLAS_GENERAL && scale.re == 1 && scale.im == 0 &&
        (!is_complex || (!is_expanded && !matrix->is_transposed && !matrix->is_conjugated));
    if (is_stored) {
        return load_in_place(lane, matrix, tensor);
    }
    HAL_TRY(blas_operand_create(lane, matrix->type, matrix->rows,
                                matrix->columns * (is_expanded ? 2 : 1), tensor));
    const size_t bytes =
        (size_t)ops_tensor_get_element_count(tensor) * blas_type_real_bytes(matrix->type);
    void *packed = malloc(bytes);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (packed) {
        blas_matrix_pack(matrix, scale, is_expanded, packed);
        status = ops_tensor_write(lane->context, tensor, packed, bytes);
        free(packed);
    }
    if (status != HAL_OK) {
        ops_tensor_release(tensor);
    }
    return status;
}

/* Elements of a result that was read, column after column, to where the call wants them. */
static void store_elements(const char *packed, const blas_call *call, bool is_transposed)
{
    const blas_type type = blas_call_type(call);
    const blas_kind kind = blas_call_kind(call);
    const char triangle = blas_result_triangle(call);
    const size_t bytes = blas_type_bytes(type);
    for (int64_t j = 0; j < call->n; j++) {
        char *column = (char *)call->c + (size_t)(j * call->ldc) * bytes;
        const int64_t first = triangle == 'L' ? j : 0, last = triangle == 'U' ? j + 1 : call->m;
        if (!is_transposed) {
            memcpy(column + (size_t)first * bytes, packed + (size_t)(j * call->m + first) * bytes,
                   (size_t)(last - first) * bytes);
        } else {
            for (int64_t i = first; i < last; i++) {
                memcpy(column + (size_t)i * bytes, packed + (size_t)(i * call->n + j) * bytes,
                       bytes);
            }
        }
        if (kind == BLAS_HERK || kind == BLAS_HER2K) {
            const blas_number value = blas_number_load(column, type, j);
            blas_number_store(column, type, j, (blas_number){value.re, 0});
        }
    }
}

hal_status blas_operand_store(blas_lane *lane, const ops_tensor *tensor, const blas_call *call,
                              bool is_transposed)
{
    const blas_type type = blas_call_type(call);
    if (blas_result_triangle(call) == 0 && !is_transposed) {
        const int64_t strides[2] = {call->ldc * parts(type), 1};
        const int64_t elements = (call->n - 1) * call->ldc + call->m;
        return ops_tensor_read_strided(lane->context, tensor, strides,
                                       (uint64_t)elements * blas_type_bytes(type), call->c);
    }
    const size_t bytes = (size_t)call->m * (size_t)call->n * blas_type_bytes(type);
    char *packed = malloc(bytes);
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    if (packed) {
        status = ops_tensor_read(lane->context, tensor, bytes, packed);
        if (status == HAL_OK) {
            store_elements(packed, call, is_transposed);
        }
        free(packed);
    }
    return status;
}

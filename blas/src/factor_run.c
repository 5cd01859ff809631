/* Parts of the matrix that is being factored, see factor_run.h. A tensor has it transposed: its
 * rows are columns of A. */
#include "factor_run.h"

ops_tensor blas_factor_part(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                            int64_t columns)
{
    return blas_operand_part(&f->a, column, columns, row, rows);
}

hal_status blas_factor_multiply(const blas_factor_run *f, double alpha, const ops_tensor *left,
                                const ops_tensor *right, double beta, const ops_tensor *result)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_ACCURATE;
    options.alpha = alpha;
    options.beta = beta;
    return ops_gemm(f->lane->context, &options, left, right, result);
}

hal_status blas_factor_read(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, void *target)
{
    const ops_tensor part = blas_factor_part(f, row, rows, column, columns);
    const size_t bytes = (size_t)(rows * columns) * f->element;
    f->lane->moved_bytes += bytes;
    return ops_tensor_read(f->lane->context, &part, bytes, target);
}

hal_status blas_factor_write(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                             int64_t columns, const void *source)
{
    const ops_tensor part = blas_factor_part(f, row, rows, column, columns);
    const size_t bytes = (size_t)(rows * columns) * f->element;
    f->lane->moved_bytes += bytes;
    return ops_tensor_write(f->lane->context, &part, source, bytes);
}

char *blas_factor_at(const blas_factor_run *f, int64_t row, int64_t column)
{
    return (char *)f->call->a + (size_t)(row + column * f->call->lda) * f->element;
}

hal_status blas_factor_store(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                             int64_t columns)
{
    if (rows == 0 || columns == 0) {
        return HAL_OK;
    }
    const ops_tensor part = blas_factor_part(f, row, rows, column, columns);
    const int64_t strides[2] = {f->call->lda, 1};
    f->lane->moved_bytes += (uint64_t)(rows * columns) * f->element;
    return ops_tensor_read_strided(f->lane->context, &part, strides,
                                   (uint64_t)((columns - 1) * f->call->lda + rows) * f->element,
                                   blas_factor_at(f, row, column));
}

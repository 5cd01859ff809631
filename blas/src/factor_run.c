/* Parts of the matrix that is being factored, see factor_run.h. A tensor has it transposed: its
 * rows are columns of A. */
#include "factor_run.h"

#include "resident.h"

#include <stdlib.h>
#include <string.h>

ops_tensor blas_factor_part(const blas_factor_run *f, int64_t row, int64_t rows, int64_t column,
                            int64_t columns)
{
    return blas_operand_part(&f->a, column, columns, f->parts * row, f->parts * rows);
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

hal_status blas_factor_store(const blas_factor_run *f)
{
    const blas_factoring *c = f->call;
    char *all = blas_memory_create((size_t)(c->m * c->n) * f->element);
    if (!all) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = blas_factor_read(f, 0, c->m, 0, c->n, all);
    for (int64_t j = 0; j < c->n && status == HAL_OK; j++) {
        const bool is_triangle = c->kind == BLAS_POTRF;
        const int64_t first = is_triangle && c->uplo == 'L' ? j : 0;
        const int64_t last = is_triangle && c->uplo == 'U' ? j + 1 : c->m;
        memcpy(blas_factor_at(f, first, j), all + (size_t)(first + j * c->m) * f->element,
               (size_t)(last - first) * f->element);
    }
    free(all);
    return status;
}

void blas_factor_forget(void *memory, size_t bytes)
{
    if (memory) {
        halyard_blas_written(memory, bytes);
        free(memory);
    }
}

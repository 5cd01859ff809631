/* Operands on the device: tensors made of the host's matrices. */
#ifndef BLAS_SRC_OPERAND_H
#define BLAS_SRC_OPERAND_H

#include "lane.h"
#include "matrix.h"

/* The transposed matrix times `scale` as a row-major tensor of rank 2 of real numbers: shape
 * {columns, rows}; of complex types {columns, 2 rows}, expanded {2 columns, 2 rows}. Several have
 * their number as a leading axis. One that is
 * only read may be the host's own memory, which is used until the queue has been waited for, or one
 * that has stayed on the device, see resident.h.
 * Ownership: the caller's, until ops_tensor_release. Threads: the lane's.
 * Errors: OUT_OF_MEMORY, those of queues. */
hal_status blas_operand_load(blas_lane *lane, const blas_matrix *matrix, blas_number scale,
                             blas_form form, bool is_read_only, HAL_OUT ops_tensor *tensor);

/* An uninitialised one of `count` matrices of this type in pairs. Ownership, Threads, Errors: as
 * above. */
hal_status blas_operand_create(blas_lane *lane, blas_type type, int64_t count, int64_t rows,
                               int64_t columns, HAL_OUT ops_tensor *tensor);

/* A general matrix that is not transposed as a tensor in pairs over the host's own memory. Of a
 * result, `access` is HAL_ACCESS_READ_WRITE; the memory is used until the queue has been waited
 * for.
 * Ownership, Threads: as above. Errors: UNSUPPORTED where the lane is not in place, or elements
 * are not aligned; OUT_OF_MEMORY. */
hal_status blas_operand_import(blas_lane *lane, const blas_matrix *matrix, uint32_t access,
                               HAL_OUT ops_tensor *tensor);

/* Temporary host memory for a matrix; with huge pages if it is large, because page faults on small
 * pages can take longer than the copy. Null: out of memory.
 * Ownership: the caller's, until free. Threads: any. */
void *blas_memory_create(size_t bytes);

/* Writes a tensor in pairs to the host's matrix of a call, of which a triangle may be kept; with
 * `is_transposed` the tensor's rows are the matrix's. Waits for the work that computes it. After an
 * error the matrix is as it was, unless the host computes it without reading it.
 * Threads: the lane's. Errors: OUT_OF_MEMORY, those of queues. */
hal_status blas_operand_store(blas_lane *lane, const ops_tensor *tensor, const blas_call *call,
                              bool is_transposed);

/* result = alpha left right + beta result, in class accurate. Threads: the lane's. Errors: those of
 * ops_gemm. */
hal_status blas_operand_multiply(blas_lane *lane, double alpha, const ops_tensor *left,
                                 const ops_tensor *right, double beta, const ops_tensor *result);

/* Rows and columns of a tensor, those of all its matrices, as a view. */
ops_tensor blas_operand_part(const ops_tensor *tensor, int64_t row, int64_t rows, int64_t column,
                             int64_t columns);

#endif

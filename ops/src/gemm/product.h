/* A checked matrix product, and the matrices that it views. */
#ifndef OPS_SRC_GEMM_PRODUCT_H
#define OPS_SRC_GEMM_PRODUCT_H

#include "tensor/context.h"
#include "kernel_key.h"

#include <ops/gemm.h>

#include <stdbool.h>

/* Bytes to which the lines of copies are aligned: what copy engines of matrix units ask for, and
 * for longer lines what a GPU's caches have: a line of a tile is then one of theirs, not two. */
#define OPS_GEMM_LINE_BYTES 16
#define OPS_GEMM_CACHE_LINE_BYTES 128

/* Elements from one line of a copy to the next. */
static inline int64_t ops_gemm_copied_line(hal_type type, int64_t length)
{
    const int64_t size = hal_type_size(type), few = 4 * OPS_GEMM_CACHE_LINE_BYTES;
    const int64_t step =
        (length * size < few ? OPS_GEMM_LINE_BYTES : OPS_GEMM_CACHE_LINE_BYTES) / size;
    return (length + step - 1) / step * step;
}

/* A prepared B. One buffer: the copy of B, then the sums of its blocks. */
struct ops_gemm_prepared {
    ops_tensor b;    /* holds the buffer's only reference */
    ops_tensor sums; /* see normwise, in the same buffer; only with levels */
    uint32_t levels; /* 0: no sums */
};

/* Element (batch, row, column) of a tensor at offset + batch * batch_stride + .... The stride of a
 * dimension of length 1 is 1. */
typedef struct ops_matrix {
    const ops_tensor *tensor;
    int64_t rows, columns;
    int64_t row_stride, column_stride, batch_stride;
    const ops_gemm_separable *separable; /* in place of strides of A or B, which tell by a 1 which
                                            one is contiguous, and of columns of C; or null */
} ops_matrix;

/* C = epilogue(alpha A B + beta C) of checked arguments. A tensor without a buffer has its layout
 * alone: it will be copied there. */
typedef struct ops_product {
    const ops_gemm_options *options;
    uint32_t precision; /* the class; a planner replaces HAL_GEMM_NORMWISE */
    uint32_t batch;
    hal_type accumulator;
    int64_t k;                 /* of the caller's A and B */
    bool has_sums;             /* options.a_sums or options.c_sums: A or C may have no tensor */
    const ops_tensor *offsets; /* of groups of rows, of which the batch is the count; or null */
    ops_tensor unread[2];      /* A and B of an alpha of 0, which have a k of 0 */
    ops_matrix a, b, c;
    ops_matrix inputs[OPS_GEMM_MAX_INPUTS]; /* options->input_count of them are set */
} ops_product;

/* F64 for F64, else F32. */
hal_type ops_gemm_accumulator(hal_type type);

/* Views a tensor of rank 2 or 3 as matrices, broadcast to `shape` of rank 3. */
ops_matrix ops_matrix_of(const ops_tensor *tensor, const int64_t shape[3]);

/* A view of the matrices of a batch, of which there is one where all products share it. */
ops_tensor ops_matrix_view(const ops_matrix *matrix, uint32_t batch);

/* Of checked arguments, not for sums. */
void ops_product_init(ops_product *product, const ops_gemm_options *options, const ops_tensor *a,
                      const ops_tensor *b, const ops_tensor *c);

/* Copies a product; its matrices refer to the tensors of the original. */
void ops_product_copy(ops_product *to, const ops_product *from);

/* Replaces matrices of which neither rows nor columns are contiguous by `layouts` without buffers.
 * Returns their bits: 1: A, 2: B, 4: C. */
uint32_t ops_product_make_contiguous(ops_product *product, ops_tensor layouts[3]);

#endif

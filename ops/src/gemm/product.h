/* A checked matrix product. gemm.c checks it and passes it to an implementation: gemm/portable.c
 * (with gemm/split_k.c) or gemm/native.c. */
#ifndef OPS_SRC_GEMM_PRODUCT_H
#define OPS_SRC_GEMM_PRODUCT_H

#include "tensor/context.h"
#include "plan.h"

#include <ops/gemm.h>

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

/* Element (batch, row, column) of a tensor at offset + batch * batch_stride + .... The stride of a
 * dimension of length 1 is 1. */
typedef struct ops_matrix {
    const ops_tensor *tensor;
    int64_t rows, columns;
    int64_t row_stride, column_stride, batch_stride;
} ops_matrix;

/* A line about what was chosen; `bytes` of room. */
typedef struct ops_gemm_text {
    char *line;
    uint64_t bytes, length;
    const char *native_needs; /* what a native kernel expects and the product lacks, or null */
} ops_gemm_text;

/* Appends to the line what it has room for. */
void ops_gemm_tell(ops_gemm_text *text, const char *format, ...) HAL_PRINTF(2, 3);

typedef struct ops_product {
    const ops_gemm_options *options;
    ops_gemm_text *text; /* receives what is chosen; null: it is not asked for */
    int is_dry;          /* nothing is recorded */
    int *lacked_memory;  /* set where another kernel was taken, since there was no memory */
    uint32_t levels;     /* of Strassen's algorithm in the plugin's kernel; 0: none */
    hal_type accumulator;
    uint32_t batch;
    ops_matrix a, b, c;
    ops_matrix inputs[OPS_GEMM_MAX_INPUTS]; /* options->input_count of them are set */
} ops_product;

/* Views a tensor of rank 2 or 3 as matrices, broadcast to `shape` of rank 3. */
ops_matrix ops_matrix_of(const ops_tensor *tensor, const int64_t shape[3]);

/* The two implementations. The native one returns UNSUPPORTED for products that it does not
 * support. */
hal_status ops_gemm_portable(ops_context *context, const ops_product *product);
hal_status ops_gemm_native(ops_context *context, const ops_product *product);

/* Estimated nanoseconds of the portable implementation, a function of types, lengths, strides and
 * the device; 0 where there is no estimate. Records nothing. */
double ops_gemm_portable_ns(ops_context *context, const ops_product *product);

/* Whether ops_gemm with these arguments, which are valid, takes a kernel of the plugin. Records
 * nothing, and needs memory for copies of strided operands alone. C may have no buffer. Not for
 * levels. Invalid arguments: 0. */
int ops_gemm_is_native(ops_context *context, const ops_gemm_options *options, const ops_tensor *a,
                       const ops_tensor *b, const ops_tensor *c);

/* Whether the plugin has a kernel with levels for contiguous matrices of one batch. */
int ops_gemm_native_has_levels(ops_context *context, hal_type type, int64_t m, int64_t n, int64_t k,
                               uint32_t levels);

#endif

/* Matrices of a product, see product.h. */
#include "product.h"

#include <stddef.h>
#include <string.h>

hal_type ops_gemm_accumulator(hal_type type)
{
    return hal_type_of_value(type);
}

ops_matrix ops_matrix_of(const ops_tensor *tensor, const int64_t shape[3])
{
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(tensor, 3, shape, strides);
    return (ops_matrix){tensor,
                        shape[1],
                        shape[2],
                        shape[1] == 1 ? 1 : strides[1],
                        shape[2] == 1 ? 1 : strides[2],
                        shape[0] == 1 ? 0 : strides[0],
                        NULL};
}

ops_tensor ops_matrix_view(const ops_matrix *matrix, uint32_t batch)
{
    return (ops_tensor){matrix->tensor->buffer,
                        matrix->tensor->type,
                        3,
                        matrix->tensor->offset,
                        {matrix->batch_stride ? batch : 1, matrix->rows, matrix->columns},
                        {matrix->batch_stride, matrix->row_stride, matrix->column_stride}};
}

void ops_product_init(ops_product *product, const ops_gemm_options *options, const ops_tensor *a,
                      const ops_tensor *b, const ops_tensor *c)
{
    product->k = a->shape[a->rank - 1];
    if (options->alpha == 0) { /* as in BLAS, A and B are not read: the product has k = 0 */
        product->unread[0] = *a;
        product->unread[1] = *b;
        product->unread[0].shape[a->rank - 1] = product->unread[1].shape[b->rank - 2] = 0;
        a = &product->unread[0];
        b = &product->unread[1];
    }
    const int64_t batch = c->rank == 3 ? c->shape[0] : 1;
    const int64_t m = c->shape[c->rank - 2], n = c->shape[c->rank - 1], k = a->shape[a->rank - 1];
    const int64_t shape_a[3] = {batch, m, k}, shape_b[3] = {batch, k, n},
                  shape_c[3] = {batch, m, n};
    product->options = options;
    /* Sums of integers are exact up to a power of two, in any order. */
    product->precision = hal_type_is_float(a->type) ? options->precision : HAL_GEMM_STRICT;
    product->batch = (uint32_t)batch;
    product->accumulator = ops_gemm_accumulator(a->type);
    product->has_sums = false;
    product->offsets = NULL;
    product->a = ops_matrix_of(a, shape_a);
    product->b = ops_matrix_of(b, shape_b);
    product->c = ops_matrix_of(c, shape_c);
    for (uint32_t i = 0; i < options->input_count; i++) {
        product->inputs[i] = ops_matrix_of(&options->inputs[i], shape_c);
    }
}

void ops_product_copy(ops_product *to, const ops_product *from)
{
    memcpy(to, from,
           offsetof(ops_product, inputs) + from->options->input_count * sizeof(ops_matrix));
}

uint32_t ops_product_make_contiguous(ops_product *product, ops_tensor layouts[3])
{
    ops_matrix *const matrices[3] = {&product->a, &product->b, &product->c};
    uint32_t made = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const ops_tensor *from = matrices[i]->tensor;
        if (matrices[i]->row_stride == 1 || matrices[i]->column_stride == 1) {
            continue;
        }
        ops_tensor *layout = &layouts[i];
        *layout = (ops_tensor){.type = from->type, .rank = from->rank};
        int64_t stride = 1;
        for (uint32_t axis = from->rank; axis-- > 0;) {
            layout->shape[axis] = from->shape[axis];
            layout->stride[axis] = stride;
            stride *= from->shape[axis] > 0 ? from->shape[axis] : 1;
        }
        const int64_t shape[3] = {from->rank == 3 ? from->shape[0] : 1, matrices[i]->rows,
                                  matrices[i]->columns};
        *matrices[i] = ops_matrix_of(layout, shape);
        made |= 1u << i;
    }
    return made;
}

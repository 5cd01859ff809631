/* The native implementation: describes a product to the device's plugin and records the kernel that
 * the plugin returns. Called by gemm.c. */
#include "tensor/overlap.h"
#include "product.h"
#include "product_cache.h"
#include "tensor/allocation.h"
#include "tensor/plan_recorder.h"

#include <ops/index.h>

#include <stddef.h>
#include <string.h>

/* A matrix in BLAS terms: row-major, perhaps transposed. */
typedef struct blas_layout {
    uint8_t transposed;
    int64_t leading;
} blas_layout;

/* Whether a matrix is stored by rows or columns with a leading dimension and forward batches. */
static int matrix_blas_layout(const ops_matrix *matrix, blas_layout *s)
{
    int64_t rows = matrix->rows, columns = matrix->columns;
    int by_rows = matrix->column_stride == 1 && (rows == 1 || matrix->row_stride >= columns);
    int by_columns = matrix->row_stride == 1 && (columns == 1 || matrix->column_stride >= rows);
    s->transposed = !by_rows;
    int64_t length = by_rows ? columns : rows, count = by_rows ? rows : columns;
    int64_t stride = by_rows ? matrix->row_stride : matrix->column_stride;
    length = length > 0 ? length : 1;
    s->leading = count == 1 || stride < length ? length : stride;
    return (by_rows || by_columns) && matrix->batch_stride >= 0;
}

static int starts_aligned(const ops_context *context, const ops_tensor *tensor)
{
    uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
    return (offset & (context->info->binding_alignment - 1)) == 0; /* a power of two */
}

/* Whether an operand has to be copied: its start is not aligned as bindings are, or its strides are
 * not those of BLAS. */
static int needs_copy(const ops_context *context, const ops_matrix *matrix)
{
    blas_layout layout;
    return !(matrix_blas_layout(matrix, &layout) && starts_aligned(context, matrix->tensor)) &&
           matrix->rows != 0 && matrix->columns != 0;
}

/* Gives a matrix the strides that its copy will have. */
static void matrix_set_copy_strides(ops_matrix *matrix)
{
    const ops_tensor *from = matrix->tensor;
    int has_batch = from->rank == 3 && from->shape[0] > 1;
    matrix->row_stride = matrix->columns;
    matrix->column_stride = 1;
    matrix->batch_stride = has_batch ? matrix->rows * matrix->columns : 0;
}

/* UNSUPPORTED; without a message where the portable implementation is used instead. */
static hal_status product_decline(const ops_product *p, const char *expected, const char *got)
{
    if (p->text) {
        p->text->native_needs = expected;
    }
    if (p->options->impl != OPS_GEMM_NATIVE) {
        return HAL_ERROR_UNSUPPORTED;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED,
                          "ops_gemm: options.impl: OPS_GEMM_NATIVE expected %s, got %s; use "
                          "OPS_GEMM_ANY",
                          expected, got);
}

static hal_status product_describe(const ops_context *context, const ops_product *p,
                                   hal_gemm_description *d)
{
    blas_layout a, b, c;
    if (!matrix_blas_layout(&p->a, &a) || !matrix_blas_layout(&p->b, &b)) {
        return product_decline(p, "a and b with a leading dimension", "other strides");
    }
    if (!matrix_blas_layout(&p->c, &c) || c.transposed || !starts_aligned(context, p->c.tensor)) {
        return product_decline(p, "c stored by rows from an aligned offset", "another layout");
    }
    if (ops_spans_meet(p->a.tensor, p->c.tensor) || ops_spans_meet(p->b.tensor, p->c.tensor)) {
        return product_decline(p, "c outside of the range of a and b", "an overlap of ranges");
    }
    memset(d, 0, offsetof(hal_gemm_description, inputs));
    d->size = sizeof *d;
    d->type_a = p->a.tensor->type;
    d->type_b = p->b.tensor->type;
    d->type_c = p->c.tensor->type;
    d->transpose_a = a.transposed;
    d->transpose_b = b.transposed;
    d->beta_is_zero = p->options->beta == 0;
    d->precision = (uint8_t)p->options->precision;
    d->required = p->options->impl == OPS_GEMM_NATIVE;
    d->batch = p->batch;
    d->m = p->c.rows;
    d->n = p->c.columns;
    d->k = p->a.columns;
    d->lda = a.leading;
    d->ldb = b.leading;
    d->ldc = c.leading;
    d->stride_a = p->a.batch_stride;
    d->stride_b = p->b.batch_stride;
    d->stride_c = p->c.batch_stride;
    d->input_count = p->options->input_count;
    d->epilogue = ops_expression_get_fragment(p->options->epilogue);
    for (uint32_t i = 0; i < d->input_count; i++) {
        const ops_matrix *in = &p->inputs[i];
        if (!starts_aligned(context, in->tensor) || in->row_stride < 0 || in->column_stride < 0 ||
            in->batch_stride < 0 || ops_spans_meet(in->tensor, p->c.tensor)) {
            return product_decline(p, "aligned further inputs with forward strides, apart from c",
                                   "others");
        }
        d->inputs[i] = (hal_gemm_input){.type = in->tensor->type,
                                        .row_stride = in->rows == 1 ? 0 : in->row_stride,
                                        .column_stride = in->columns == 1 ? 0 : in->column_stride,
                                        .batch_stride = in->batch_stride};
    }
    return HAL_OK;
}

/* The kernel of a description, or UNSUPPORTED; both are cached. */
static hal_status kernel_find(ops_context *context, const ops_product *p,
                              const hal_gemm_description *d, ops_entry **entry)
{
    const ops_expression *epilogue = p->options->epilogue;
    ops_cache_key key;
    uint64_t hash[2], workspace = 0;
    ops_cache_key_begin(&key, OPS_FAMILY_NATIVE_GEMM);
    ops_cache_key_append(&key, d, offsetof(hal_gemm_description, inputs));
    ops_cache_key_append(&key, d->inputs, d->input_count * sizeof *d->inputs);
    if (epilogue) {
        ops_cache_key_append(&key, epilogue->hash, sizeof epilogue->hash);
    }
    *entry = ops_cache_find(context, &key, hash);
    if (!*entry) {
        hal_kernel *kernel = NULL;
        hal_status status = hal_kernel_create_gemm(context->device, d, &kernel, &workspace);
        if (status && status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
        hal_status kept = ops_cache_insert(context, hash, status ? NULL : kernel, workspace, entry);
        if (status || kept) {
            return status ? status : kept;
        }
    }
    return (*entry)->kernel
               ? HAL_OK
               : product_decline(p, "a shape and types for which the plugin has a kernel",
                                 "others");
}

static hal_status matrix_copy(ops_context *context, ops_matrix *matrix, ops_tensor *copy)
{
    const ops_tensor *from = matrix->tensor;
    hal_status status = ops_tensor_create(context, from->type, from->rank, from->shape, copy);
    if (!status) {
        status = ops_copy(context, from, copy);
    }
    matrix->tensor = copy;
    return status;
}

/* The range of a tensor's elements; empty for one without elements. */
static hal_range tensor_range(const ops_tensor *tensor)
{
    int64_t first, end;
    uint64_t size = hal_type_size(tensor->type);
    if (ops_tensor_get_element_count(tensor) == 0) {
        return (hal_range){NULL, 0, 0};
    }
    ops_span(tensor, &first, &end);
    return (hal_range){tensor->buffer, (uint64_t)first * size, (uint64_t)(end - first) * size};
}

static hal_status kernel_record(ops_context *context, const ops_product *p, const ops_entry *entry)
{
    const uint32_t grid[3] = {1, 1, 1};
    const double scalars[2] = {p->options->alpha, p->options->beta};
    hal_range ranges[4 + OPS_GEMM_MAX_INPUTS];
    ranges[0] = tensor_range(p->a.tensor);
    ranges[1] = tensor_range(p->b.tensor);
    ranges[2] = tensor_range(p->c.tensor);
    ranges[3] = (hal_range){NULL, 0, 0};
    for (uint32_t i = 0; i < p->options->input_count; i++) {
        ranges[4 + i] = tensor_range(p->inputs[i].tensor);
    }
    if (entry->workspace_bytes) {
        hal_status status = ops_buffer_create(context, entry->workspace_bytes, &ranges[3].buffer);
        if (status) {
            return status;
        }
        ranges[3].length = entry->workspace_bytes;
    }
    hal_status status = ops_record_dispatch(context, entry->kernel, grid, ranges,
                                            4 + p->options->input_count, scalars, sizeof scalars);
    hal_buffer_release(ranges[3].buffer);
    return status;
}

static void native_tell(const ops_product *p, const hal_gemm_description *d, const ops_entry *entry,
                        const char *copies)
{
    if (p->text) {
        ops_gemm_tell(p->text,
                      "native: %s, a by %s, b by %s%s, %llu bytes of workspace; the plugin has a "
                      "kernel for it",
                      hal_type_name(d->type_a), d->transpose_a ? "columns" : "rows",
                      d->transpose_b ? "columns" : "rows", copies,
                      (unsigned long long)entry->workspace_bytes);
    }
}

/* Finds the kernel before copying, since the plugin may have none. */
static hal_status record_with_copies(ops_context *context, const ops_product *product)
{
    ops_product p = *product;
    ops_tensor copies[2] = {{0}, {0}};
    const int copy_a = needs_copy(context, &p.a), copy_b = needs_copy(context, &p.b);
    hal_gemm_description description;
    ops_entry *entry;
    if (copy_a) {
        matrix_set_copy_strides(&p.a);
    }
    if (copy_b) {
        matrix_set_copy_strides(&p.b);
    }
    hal_status status = product_describe(context, &p, &description);
    if (!status) {
        status = kernel_find(context, &p, &description, &entry);
    }
    if (!status) {
        native_tell(&p, &description, entry,
                    copy_a && copy_b ? ", both copied"
                    : copy_a         ? ", a copied"
                                     : ", b copied");
    }
    if (status || p.is_dry) {
        return status;
    }
    /* Copies may insert entries and so evict this one. */
    ops_entry found = *entry;
    hal_kernel_retain(found.kernel);
    if (copy_a) {
        status = matrix_copy(context, &p.a, &copies[0]);
    }
    if (!status && copy_b) {
        status = matrix_copy(context, &p.b, &copies[1]);
    }
    if (!status) {
        status = kernel_record(context, &p, &found);
    }
    hal_kernel_release(found.kernel);
    ops_tensor_release(&copies[0]);
    ops_tensor_release(&copies[1]);
    return status;
}

hal_status ops_gemm_native(ops_context *context, const ops_product *product)
{
    hal_gemm_description description;
    ops_entry *entry;
    if (needs_copy(context, &product->a) || needs_copy(context, &product->b)) {
        return record_with_copies(context, product);
    }
    hal_status status = product_describe(context, product, &description);
    if (!status) {
        status = kernel_find(context, product, &description, &entry);
    }
    if (!status) {
        native_tell(product, &description, entry, "");
    }
    if (!status && !product->is_dry) {
        ops_product_cache_insert(context, product, entry);
        status = kernel_record(context, product, entry);
    }
    return status;
}

/* The native implementation: describes a product to the device's plugin and records the kernel
 * that it gives.
 * Called by gemm.c. */
#include "tensor/overlap.h"
#include "product.h"
#include "tensor/allocation.h"
#include "tensor/plan_recorder.h"

#include <ops/index.h>

#include <stddef.h>
#include <string.h>

/* A matrix as the plugin wants it: stored row by row, perhaps of the transposed one. */
typedef struct stored {
    uint8_t transposed;
    int64_t leading;
} stored;

/* Whether a matrix is stored by rows or columns with a leading dimension and batches ahead. */
static int store(const ops_matrix *matrix, stored *s)
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

/* Whether an operand has to be copied, because it begins at an odd place (bindings begin at aligned
 * ones) or is no plain matrix. */
static int needs_copy(const ops_context *context, const ops_matrix *matrix)
{
    stored s;
    return !(store(matrix, &s) && starts_aligned(context, matrix->tensor)) && matrix->rows != 0 &&
           matrix->columns != 0;
}

/* The matrix gets the copy's strides. */
static void become_copy(ops_matrix *matrix)
{
    const ops_tensor *from = matrix->tensor;
    int has_batch = from->rank == 3 && from->shape[0] > 1;
    matrix->row_stride = matrix->columns;
    matrix->column_stride = 1;
    matrix->batch_stride = has_batch ? matrix->rows * matrix->columns : 0;
}

/* No sentence where the portable implementation is taken instead: that is no failure. */
static hal_status decline(const ops_product *p, const char *what)
{
    if (p->options->impl != OPS_GEMM_NATIVE) {
        return HAL_ERROR_UNSUPPORTED;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED,
                          "ops_gemm: the native implementation takes no product whose %s; the "
                          "portable implementation "
                          "does",
                          what);
}

static hal_status describe(const ops_context *context, const ops_product *p,
                           hal_gemm_description *d)
{
    stored a, b, c;
    if (!store(&p->a, &a) || !store(&p->b, &b)) {
        return decline(p, "a or b is no plain matrix");
    }
    if (!store(&p->c, &c) || c.transposed || !starts_aligned(context, p->c.tensor)) {
        return decline(p, "c is not stored by rows from an aligned place");
    }
    if (ops_spans_meet(p->a.tensor, p->c.tensor) || ops_spans_meet(p->b.tensor, p->c.tensor)) {
        return decline(p, "c lies between the elements of a or b");
    }
    memset(d, 0, offsetof(hal_gemm_description, inputs)); /* inputs: those that there are, below */
    d->size = sizeof *d;
    d->type_a = p->a.tensor->type;
    d->type_b = p->b.tensor->type;
    d->type_c = p->c.tensor->type;
    d->transpose_a = a.transposed;
    d->transpose_b = b.transposed;
    d->beta_is_zero = p->options->beta == 0;
    d->precision = (uint8_t)p->options->precision;
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
            return decline(p, "further inputs begin at an odd place, run backwards or overlap c");
        }
        d->inputs[i] = (hal_gemm_input){.type = in->tensor->type,
                                        .row_stride = in->rows == 1 ? 0 : in->row_stride,
                                        .column_stride = in->columns == 1 ? 0 : in->column_stride,
                                        .batch_stride = in->batch_stride};
    }
    return HAL_OK;
}

static void sign(const hal_gemm_description *d, const ops_expression *epilogue,
                 ops_cache_key *signature)
{
    ops_cache_key_append(signature, OPS_FAMILY_NATIVE_GEMM);
    ops_cache_key_append(signature,
                         d->type_a | (uint64_t)d->type_c << 8 | (uint64_t)d->transpose_a << 16 |
                             (uint64_t)d->transpose_b << 17 | (uint64_t)d->beta_is_zero << 18 |
                             (uint64_t)d->precision << 20 | (uint64_t)d->input_count << 24 |
                             (uint64_t)d->batch << 32);
    const int64_t numbers[9] = {d->m,   d->n,        d->k,        d->lda,     d->ldb,
                                d->ldc, d->stride_a, d->stride_b, d->stride_c};
    for (uint32_t i = 0; i < 9; i++) {
        ops_cache_key_append(signature, (uint64_t)numbers[i]);
    }
    for (uint32_t i = 0; i < d->input_count; i++) {
        ops_cache_key_append(signature, d->inputs[i].type);
        ops_cache_key_append(signature, (uint64_t)d->inputs[i].row_stride);
        ops_cache_key_append(signature, (uint64_t)d->inputs[i].column_stride);
        ops_cache_key_append(signature, (uint64_t)d->inputs[i].batch_stride);
    }
    if (epilogue) {
        ops_cache_key_append(signature, epilogue->hash[0]);
        ops_cache_key_append(signature, epilogue->hash[1]);
    }
}

/* The kernel of a description, or UNSUPPORTED; both are remembered. */
static hal_status find_kernel(ops_context *context, const ops_product *p,
                              const hal_gemm_description *d, ops_entry **entry)
{
    ops_cache_key signature;
    uint64_t key[2], workspace = 0;
    signature.count = 0;
    sign(d, p->options->epilogue, &signature);
    *entry = ops_cache_find(context, &signature, key);
    if (!*entry) {
        hal_kernel *kernel = NULL;
        hal_status status = hal_kernel_create_gemm(context->device, d, &kernel, &workspace);
        if (status && status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
        hal_status kept = ops_cache_insert(context, key, status ? NULL : kernel, workspace, entry);
        if (status || kept) {
            return status ? status : kept;
        }
    }
    return (*entry)->kernel ? HAL_OK : decline(p, "shape and types the plugin has no kernel for");
}

static hal_status make_copy(ops_context *context, ops_matrix *matrix, ops_tensor *copy)
{
    const ops_tensor *from = matrix->tensor;
    hal_status status = ops_tensor_create(context, from->type, from->rank, from->shape, copy);
    if (!status) {
        status = ops_copy(context, from, copy);
    }
    matrix->tensor = copy;
    return status;
}

/* From a tensor's first element to its last; nothing for one without elements. */
static hal_range range_of(const ops_tensor *tensor)
{
    int64_t first, end;
    uint64_t size = hal_type_size(tensor->type);
    if (ops_tensor_get_element_count(tensor) == 0) {
        return (hal_range){NULL, 0, 0};
    }
    ops_span(tensor, &first, &end);
    return (hal_range){tensor->buffer, (uint64_t)first * size, (uint64_t)(end - first) * size};
}

static hal_status record(ops_context *context, const ops_product *p, const ops_entry *entry)
{
    const uint32_t grid[3] = {1, 1, 1};
    const double scalars[2] = {p->options->alpha, p->options->beta};
    hal_range ranges[4 + OPS_GEMM_MAX_INPUTS];
    ranges[0] = range_of(p->a.tensor);
    ranges[1] = range_of(p->b.tensor);
    ranges[2] = range_of(p->c.tensor);
    ranges[3] = (hal_range){NULL, 0, 0};
    for (uint32_t i = 0; i < p->options->input_count; i++) {
        ranges[4 + i] = range_of(p->inputs[i].tensor);
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

/* The kernel is looked for before anything is copied, since there may be none. */
static hal_status with_copies(ops_context *context, const ops_product *product)
{
    ops_product p = *product;
    ops_tensor copies[2] = {{0}, {0}};
    const int copy_a = needs_copy(context, &p.a), copy_b = needs_copy(context, &p.b);
    hal_gemm_description description;
    ops_entry *entry;
    if (copy_a) {
        become_copy(&p.a);
    }
    if (copy_b) {
        become_copy(&p.b);
    }
    hal_status status = describe(context, &p, &description);
    if (!status) {
        status = find_kernel(context, &p, &description, &entry);
    }
    /* Copies may add entries, and with them remove this one. */
    ops_entry found = status ? (ops_entry){{0, 0}, NULL, 0, 0} : *entry;
    hal_kernel_retain(found.kernel);
    if (!status && copy_a) {
        status = make_copy(context, &p.a, &copies[0]);
    }
    if (!status && copy_b) {
        status = make_copy(context, &p.b, &copies[1]);
    }
    if (!status) {
        status = record(context, &p, &found);
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
        return with_copies(context, product);
    }
    hal_status status = describe(context, product, &description);
    if (!status) {
        status = find_kernel(context, product, &description, &entry);
    }
    return status ? status : record(context, product, entry);
}

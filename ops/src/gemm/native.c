/* The native implementation, see native.h: describes a product to the device's plugin, and records
 * the kernel that the plugin returns. */
#include "native.h"

#include "tensor/allocation.h"
#include "tensor/overlap.h"
#include "tensor/compile_ahead.h"
#include "tensor/message.h"
#include "tensor/plan_recorder.h"
#include "tensor/kernel_cache.h"

#include <ops/index.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A matrix in BLAS terms: row-major, perhaps transposed. */
typedef struct blas_layout {
    uint8_t transposed;
    int64_t leading, count; /* elements from line to line; lines */
} blas_layout;

/* Whether a matrix is stored by rows or columns with a leading dimension and forward batches. */
static bool matrix_blas_layout(const ops_matrix *matrix, blas_layout *s)
{
    int64_t rows = matrix->rows, columns = matrix->columns;
    const bool by_rows = matrix->column_stride == 1 && (rows == 1 || matrix->row_stride >= columns);
    const bool by_columns =
        matrix->row_stride == 1 && (columns == 1 || matrix->column_stride >= rows);
    s->transposed = !by_rows;
    int64_t length = by_rows ? columns : rows, count = by_rows ? rows : columns;
    int64_t stride = by_rows ? matrix->row_stride : matrix->column_stride;
    length = length > 0 ? length : 1;
    s->leading = count == 1 || stride < length ? length : stride;
    s->count = count;
    return (by_rows || by_columns) && matrix->batch_stride >= 0;
}

static bool starts_aligned(const ops_context *context, const ops_tensor *tensor)
{
    uint64_t offset = (uint64_t)tensor->offset * hal_type_size(tensor->type);
    return (offset & (context->info->binding_alignment - 1)) == 0; /* a power of two */
}

/* Whether an operand has to be copied: its start is not aligned as bindings are, or its strides are
 * not those of BLAS. */
static bool needs_copy(const ops_context *context, const ops_matrix *matrix)
{
    blas_layout layout;
    return !(matrix_blas_layout(matrix, &layout) && starts_aligned(context, matrix->tensor)) &&
           matrix->rows != 0 && matrix->columns != 0;
}

/* Whether all lines of an operand in BLAS strides start at multiples of OPS_GEMM_LINE_BYTES. */
static bool lines_are_aligned(const ops_matrix *matrix)
{
    const int64_t size = hal_type_size(matrix->tensor->type);
    blas_layout layout;
    return !matrix_blas_layout(matrix, &layout) || matrix->rows == 0 || matrix->columns == 0 ||
           ((layout.count == 1 || layout.leading * size % OPS_GEMM_LINE_BYTES == 0) &&
            matrix->batch_stride * size % OPS_GEMM_LINE_BYTES == 0);
}

/* Gives a matrix the strides of its copy: in the order of the original where that has contiguous
 * rows or columns, else by rows, with aligned lines; one column is one line. Returns its elements.
 */
static int64_t matrix_set_copy_strides(ops_matrix *matrix, uint32_t batch)
{
    const bool by_columns =
        matrix->rows > 1 &&
        (matrix->columns == 1 || (matrix->column_stride != 1 && matrix->row_stride == 1));
    const int64_t length = by_columns ? matrix->rows : matrix->columns;
    const int64_t count = by_columns ? matrix->columns : matrix->rows;
    const int64_t line = ops_gemm_copied_line(matrix->tensor->type, length);
    matrix->row_stride = by_columns ? 1 : line;
    matrix->column_stride = by_columns ? line : 1;
    matrix->batch_stride = matrix->batch_stride ? line * count : 0;
    return line * count * (matrix->batch_stride ? batch : 1);
}

/* UNSUPPORTED; without a message where the portable implementation is used instead. */
static hal_status product_decline(const ops_product *p, ops_gemm_plan *plan, const char *expected,
                                  const char *got)
{
    plan->native_needs = expected;
    if (p->options->impl != OPS_GEMM_NATIVE) {
        return HAL_ERROR_UNSUPPORTED;
    }
    return hal_status_set(HAL_ERROR_UNSUPPORTED,
                          "ops_gemm: options.impl: OPS_GEMM_NATIVE expected %s, got %s; use "
                          "OPS_GEMM_ANY",
                          expected, got);
}

/* Describes a product for a plan with levels or none. */
static hal_status product_describe(const ops_context *context, const ops_product *p,
                                   ops_gemm_plan *plan, hal_gemm_description *d)
{
    blas_layout a, b, c;
    if (!matrix_blas_layout(&p->a, &a) || !matrix_blas_layout(&p->b, &b)) {
        return product_decline(p, plan, "a and b with a leading dimension", "other strides");
    }
    if (!matrix_blas_layout(&p->c, &c) || c.transposed || !starts_aligned(context, p->c.tensor)) {
        return product_decline(p, plan, "c stored by rows from an aligned offset",
                               "another layout");
    }
    if (ops_spans_meet(p->a.tensor, p->c.tensor) || ops_spans_meet(p->b.tensor, p->c.tensor)) {
        return product_decline(p, plan, "c outside of the range of a and b",
                               "an overlap of ranges");
    }
    memset(d, 0, offsetof(hal_gemm_description, inputs));
    d->size = sizeof *d;
    d->type_a = p->a.tensor->type;
    d->type_b = p->b.tensor->type;
    d->type_c = p->c.tensor->type;
    d->transpose_a = a.transposed;
    d->transpose_b = b.transposed;
    d->beta_is_zero = p->options->beta == 0;
    d->precision = (uint8_t)p->precision;
    d->levels = (uint8_t)plan->levels;
    d->type_offsets = p->offsets ? p->offsets->type : (hal_type)HAL_TYPE_NONE;
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
            return product_decline(
                p, plan, "aligned further inputs with forward strides, apart from c", "others");
        }
        d->inputs[i] = (hal_gemm_input){.type = in->tensor->type,
                                        .row_stride = in->rows == 1 ? 0 : in->row_stride,
                                        .column_stride = in->columns == 1 ? 0 : in->column_stride,
                                        .batch_stride = in->batch_stride};
    }
    return HAL_OK;
}

/* The plugin has declined a description before. For OPS_GEMM_NATIVE it is asked again, since its
 * reason is not cached, unless another way follows. */
static hal_status kernel_decline(const ops_context *context, const ops_product *p,
                                 ops_gemm_plan *plan, const hal_gemm_description *d, bool is_last)
{
    hal_kernel *kernel = NULL;
    uint64_t workspace;
    if (p->options->impl == OPS_GEMM_NATIVE && is_last) {
        const hal_status status = hal_kernel_create_gemm(context->device, d, &kernel, &workspace);
        hal_kernel_release(kernel);
        if (status != HAL_OK) {
            return status;
        }
    }
    return product_decline(p, plan, "a shape and types for which the plugin has a kernel",
                           "others");
}

/* The kernel of a description, or UNSUPPORTED; both are cached. */
static hal_status kernel_find(ops_context *context, const ops_product *p, ops_gemm_plan *plan,
                              const hal_gemm_description *d, bool is_last, ops_entry **entry)
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
        context->kernels.natives++;
        hal_status status = ops_compile_ahead_create_gemm(context, d, &kernel, &workspace);
        if (status != HAL_OK && status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
        HAL_TRY(
            ops_cache_insert(context, hash, status == HAL_OK ? kernel : NULL, workspace, entry));
        if (status != HAL_OK && (p->options->impl == OPS_GEMM_NATIVE && is_last)) {
            return status; /* with the plugin's reason */
        }
    }
    if (!(*entry)->kernel) {
        return kernel_decline(context, p, plan, d, is_last);
    }
    const uint64_t most = p->options->max_workspace;
    return most && (*entry)->workspace_bytes > most
               ? product_decline(p, plan, "options.max_workspace of at least its workspace", "less")
               : HAL_OK;
}

/* Gives the operands of the bits `copied` the strides of their copies, of `counts` elements. */
static void operands_align(ops_product *p, uint32_t copied, int64_t counts[2])
{
    ops_matrix *const matrices[2] = {&p->a, &p->b};
    for (uint32_t i = 0; i < 2; i++) {
        counts[i] = copied >> i & 1 ? matrix_set_copy_strides(matrices[i], p->batch) : 0;
    }
}

/* Gives the operands of the bits `copied` the layouts of their copies, without buffers. */
static void operands_view(ops_product *p, uint32_t copied, ops_tensor copies[2])
{
    ops_matrix *const matrices[2] = {&p->a, &p->b};
    for (uint32_t i = 0; i < 2; i++) {
        if (copied >> i & 1) {
            copies[i] = ops_matrix_view(matrices[i], p->batch);
            copies[i].buffer = NULL;
            copies[i].offset = 0;
            matrices[i]->tensor = &copies[i];
        }
    }
}

/* Plans the kernel with copies of the operands whose bits are set. */
static hal_status plan_with_copies(ops_context *context, const ops_product *product,
                                   uint32_t copied, bool is_last, ops_gemm_plan *plan)
{
    ops_product p;
    ops_tensor copies[2];
    int64_t counts[2];
    hal_gemm_description description;
    ops_entry *entry;
    ops_product_copy(&p, product);
    operands_align(&p, copied, counts);
    const uint64_t bytes = (uint64_t)(counts[0] + counts[1]) * hal_type_size(p.a.tensor->type);
    if (p.options->max_workspace && bytes > p.options->max_workspace) {
        return product_decline(&p, plan, "options.max_workspace of at least the copies of a and b",
                               "less");
    }
    operands_view(&p, copied, copies);
    HAL_TRY(product_describe(context, &p, plan, &description));
    HAL_TRY(kernel_find(context, &p, plan, &description, is_last, &entry));
    plan->path = OPS_GEMM_PATH_NATIVE;
    plan->copies |= copied << OPS_GEMM_ALIGNS_SHIFT;
    plan->by_columns = description.transpose_a | (uint32_t)description.transpose_b << 1;
    plan->copied_bytes = bytes;
    plan->workspace_bytes = entry->workspace_bytes;
    if (p.options->impl != OPS_GEMM_NATIVE) {
        plan->spares = plan->levels ? OPS_GEMM_WITHOUT_LEVELS : OPS_GEMM_WITHOUT_PLUGIN;
    }
    return HAL_OK;
}

static bool copies_may_pay(const ops_context *context, const ops_product *p)
{
    const ops_gemm_tuning *tuning = &context->tuning->gemm;
    const double rows = (double)p->c.rows * (p->offsets ? 1 : p->batch); /* of all groups */
    return p->options->impl == OPS_GEMM_NATIVE ||
           (p->a.columns >= tuning->min_copied_steps &&
            rows * (double)p->c.columns * (double)p->a.columns >= tuning->min_copied_work);
}

/* A way to call the plugin's kernel: with copies of the operands of the bits. */
typedef struct native_way {
    uint32_t copied;
    double ns; /* estimated time with the copies; 0: not known */
} native_way;

/* Estimates a way; UNSUPPORTED where there is no kernel for it, or none that is faster than the
 * portable one. */
static hal_status way_estimate(ops_context *context, const ops_product *product, double portable_ns,
                               ops_gemm_plan *plan, native_way *way)
{
    const ops_gemm_tuning *tuning = &context->tuning->gemm;
    const double rate = tuning->copy_bytes_per_ns * context->info->compute_units;
    ops_product p;
    ops_tensor copies[2];
    int64_t counts[2];
    hal_gemm_description description;
    double copied_ns = 0;
    ops_product_copy(&p, product);
    operands_align(&p, way->copied, counts);
    operands_view(&p, way->copied, copies);
    for (uint32_t i = 0; i < 2; i++) {
        const double bytes = 2 * (double)counts[i] * hal_type_size(p.a.tensor->type);
        copied_ns += way->copied >> i & 1 ? tuning->copy_launch_ns + bytes / rate : 0;
    }
    HAL_TRY(product_describe(context, &p, plan, &description));
    description.epilogue = NULL;
    description.input_count = 0;
    description.beta_is_zero = 1;
    if (!hal_type_is_float(p.accumulator)) {
        description.type_c = p.accumulator; /* floats are the epilogue's */
    }
    const hal_status status =
        hal_gemm_estimate(context->device, &description, portable_ns, &way->ns);
    if (status == HAL_ERROR_UNSUPPORTED) {
        plan->native_needs = "a shape and types for which the plugin has a kernel";
    }
    if (status != HAL_OK || way->ns == 0) {
        return status;
    }
    way->ns += copied_ns;
    const bool is_slower = portable_ns > 0 && portable_ns <= way->ns;
    const bool is_strict =
        p.precision == HAL_GEMM_STRICT && hal_type_is_float(p.accumulator); /* no matrix units */
    const bool is_excluded =
        way->copied && is_strict && !tuning->copies_strict && p.options->impl != OPS_GEMM_NATIVE;
    return is_slower || is_excluded
               ? product_decline(
                     &p, plan, "a shape that the portable kernel multiplies more slowly", "another")
               : HAL_OK;
}

hal_status ops_gemm_native_plan(ops_context *context, const ops_product *product, uint32_t levels,
                                double portable_ns, ops_gemm_plan *plan)
{
    const uint32_t needed =
        (needs_copy(context, &product->a) ? 1u : 0) | (needs_copy(context, &product->b) ? 2u : 0);
    const uint32_t useful = needed | (lines_are_aligned(&product->a) ? 0 : 1u) |
                            (lines_are_aligned(&product->b) ? 0 : 2u);
    native_way ways[2] = {{.copied = needed}, {.copied = useful}};
    uint32_t count = 0;
    hal_status status = HAL_OK;
    plan->levels = levels;
    if (!hal_type_is_float(product->accumulator) &&
        !(context->info->features & HAL_FEATURE_INTEGER_PRODUCTS)) {
        return product_decline(product, plan, "floats", "integers");
    }
    if (product->offsets && !(context->info->features & HAL_FEATURE_GROUPED_PRODUCTS)) {
        return product_decline(product, plan, "a plugin with products of groups of rows",
                               "another");
    }
    const uint32_t possible = useful != needed && copies_may_pay(context, product) ? 2 : 1;
    for (uint32_t i = 0; i < possible; i++) {
        native_way way = ways[i];
        status = way_estimate(context, product, portable_ns, plan, &way);
        if (status == HAL_OK) {
            ways[count++] = way;
        } else if (status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
    }
    const bool is_swapped = count == 2 && ways[1].ns < ways[0].ns;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t copied = ways[is_swapped ? 1 - i : i].copied;
        status = plan_with_copies(context, product, copied, i + 1 == count, plan);
        if (status != HAL_ERROR_UNSUPPORTED) {
            break;
        }
    }
    return status;
}

/* Records the kernel of a product whose operands are where it reads them. `keep`: of a product
 * without copies and workspace. */
static hal_status kernel_record(ops_context *context, const ops_product *p, const ops_entry *entry,
                                hal_buffer *workspace, const ops_product *keep)
{
    const uint32_t grid[3] = {1, 1, 1};
    const double scalars[2] = {p->options->alpha, p->options->beta};
    uint32_t count = 4 + p->options->input_count;
    hal_range ranges[5 + OPS_GEMM_MAX_INPUTS];
    ranges[0] = ops_tensor_range(p->a.tensor);
    ranges[1] = ops_tensor_range(p->b.tensor);
    ranges[2] = ops_tensor_range(p->c.tensor);
    ranges[3] = (hal_range){workspace, 0, workspace ? entry->workspace_bytes : 0};
    for (uint32_t i = 0; i < p->options->input_count; i++) {
        ranges[4 + i] = ops_tensor_range(p->inputs[i].tensor);
    }
    if (p->offsets) {
        ranges[count++] = ops_tensor_range(p->offsets);
    }
    if (keep && !workspace) {
        ops_product_dispatch dispatch;
        ops_product_dispatch_set(&dispatch, entry->kernel, grid, ranges, count, scalars,
                                 sizeof scalars);
        ops_gemm_cache_keep(context, keep, &dispatch, 1, NULL, 0);
    }
    return ops_record_dispatch(context, entry->kernel, grid, ranges, count, scalars,
                               sizeof scalars);
}

hal_status ops_gemm_native_record(ops_context *context, const ops_product *product,
                                  const ops_gemm_plan *plan, const ops_product *keep)
{
    const uint32_t copied = plan->copies >> OPS_GEMM_ALIGNS_SHIFT & 3;
    const ops_matrix *const from[2] = {&product->a, &product->b};
    ops_gemm_plan described = *plan;
    ops_product p;
    ops_tensor copies[2] = {{0}, {0}};
    int64_t counts[2];
    hal_gemm_description description;
    ops_entry *entry;
    hal_buffer *workspace = NULL;
    ops_product_copy(&p, product);
    operands_align(&p, copied, counts);
    operands_view(&p, copied, copies);
    HAL_TRY(product_describe(context, &p, &described, &description));
    HAL_TRY(kernel_find(context, &p, &described, &description, true, &entry));
    /* Copies may insert entries and so evict this one. */
    const ops_entry found = *entry;
    hal_kernel_retain(found.kernel);
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 2 && status == HAL_OK; i++) {
        if (copied >> i & 1) {
            const uint64_t bytes = (uint64_t)counts[i] * hal_type_size(copies[i].type);
            status = ops_buffer_create(context, bytes, &copies[i].buffer);
        }
    }
    if (status == HAL_OK && found.workspace_bytes) {
        status = ops_buffer_create(context, found.workspace_bytes, &workspace);
    }
    for (uint32_t i = 0; i < 2 && status == HAL_OK; i++) {
        if (copied >> i & 1) {
            const ops_tensor view = ops_matrix_view(from[i], p.batch);
            status = ops_copy(context, &view, &copies[i]);
        }
    }
    if (status == HAL_OK) {
        status = kernel_record(context, &p, &found, workspace, copied ? NULL : keep);
    }
    hal_buffer_release(workspace);
    ops_tensor_release(&copies[0]);
    ops_tensor_release(&copies[1]);
    hal_kernel_release(found.kernel);
    return status;
}

bool ops_gemm_native_has_levels(ops_context *context, hal_type type, int64_t m, int64_t n,
                                int64_t k, uint32_t levels)
{
    const hal_gemm_description description = {.size = sizeof description,
                                              .type_a = type,
                                              .type_b = type,
                                              .type_c = type,
                                              .precision = HAL_GEMM_ACCURATE,
                                              .levels = (uint8_t)levels,
                                              .batch = 1,
                                              .m = m,
                                              .n = n,
                                              .k = k,
                                              .lda = k,
                                              .ldb = n,
                                              .ldc = n};
    hal_kernel *kernel = NULL;
    uint64_t workspace;
    ops_message message; /* a plugin that declines is no failure of the caller */
    ops_message_save(&message);
    const hal_status status =
        hal_kernel_create_gemm(context->device, &description, &kernel, &workspace);
    hal_kernel_release(kernel);
    ops_message_restore(&message);
    return status == HAL_OK;
}

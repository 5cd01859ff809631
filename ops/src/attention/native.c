/* The plugin's own attention, see native.h: describes a call to the plugin, and records the kernel
 * that it returns. */
#include "native.h"

#include "tensor/allocation.h"
#include "tensor/kernel_cache.h"
#include "tensor/overlap.h"
#include "tensor/plan_recorder.h"

#include <ops/index.h>

#include <math.h>

enum {
    VECTOR = 8, /* elements of 16 bytes */
    INPUTS = 3,
    TENSORS = 4
};

/* Elements of a head at most, of kernels that a plugin may have. */
enum { MAX_HEAD = 256 };

static bool head_fits(const ops_tensor *x)
{
    const int64_t head = x->shape[OPS_ATTENTION_COLUMN];
    return head > 0 && head <= MAX_HEAD && head % VECTOR == 0;
}

/* Whether rows begin at multiples of 16 bytes, of a tensor of 16-bit elements. `shares`: matrices
 * may be one, by a stride of 0. */
static bool rows_are_aligned(const ops_context *context, const ops_tensor *x, bool shares)
{
    const uint64_t offset = (uint64_t)x->offset * hal_type_size(x->type);
    bool fit = x->stride[OPS_ATTENTION_COLUMN] == 1 &&
               (offset & (context->info->binding_alignment - 1)) == 0;
    for (uint32_t i = 0; i < OPS_ATTENTION_COLUMN; i++) {
        const bool may_be_one = shares && i != OPS_ATTENTION_ROW;
        fit = fit &&
              (x->shape[i] == 1 || (x->stride[i] >= !may_be_one && x->stride[i] % VECTOR == 0));
    }
    return fit;
}

bool ops_attention_native_fits(const ops_attention_call *call)
{
    const hal_device_info *info = call->context->info;
    return call->options.form != OPS_ATTENTION_BLOCKS &&
           call->options.precision != HAL_GEMM_STRICT && hal_type_is_narrow_float(call->type) &&
           (info->matrix_types & HAL_TYPE_BIT(call->type)) && !call->options.mask &&
           call->options.scale > 0 && !isinf(call->options.scale) && head_fits(&call->q) &&
           head_fits(&call->v);
}

static hal_attention_strides strides_of(const ops_tensor *x)
{
    const int64_t row = (x->shape[OPS_ATTENTION_COLUMN] + VECTOR - 1) / VECTOR * VECTOR;
    const bool has_rows = x->shape[OPS_ATTENTION_ROW] > 1;
    const bool has_batch = x->shape[OPS_ATTENTION_BATCH] > 1;
    const bool has_outer = x->shape[OPS_ATTENTION_OUTER] > 1;
    return (hal_attention_strides){.row = has_rows ? x->stride[OPS_ATTENTION_ROW] : row,
                                   .batch = has_batch ? x->stride[OPS_ATTENTION_BATCH] : 0,
                                   .outer = has_outer ? x->stride[OPS_ATTENTION_OUTER] : 0};
}

/* One query of each head: the heads that share keys and values become rows of one matrix. */
static void fold_heads(const ops_attention_call *call, hal_attention_description *d)
{
    if (d->m == 1 && d->batch > 1 && call->k.shape[OPS_ATTENTION_BATCH] == 1 &&
        call->v.shape[OPS_ATTENTION_BATCH] == 1) {
        d->m = d->batch;
        d->batch = 1;
        d->causal = 0; /* the one query has all columns */
        d->q.row = d->q.batch;
        d->y.row = d->y.batch;
        d->q.batch = d->y.batch = 0;
    }
}

static hal_attention_description describe(const ops_attention_call *call,
                                          const ops_tensor views[TENSORS])
{
    hal_attention_description d = {.size = sizeof(hal_attention_description),
                                   .type = call->type,
                                   .causal = call->options.causal != 0,
                                   .precision =
                                       (uint8_t)(call->options.precision == HAL_GEMM_NORMWISE
                                                     ? HAL_GEMM_ACCURATE
                                                     : call->options.precision),
                                   .batch = (uint32_t)call->q.shape[OPS_ATTENTION_BATCH],
                                   .outer = (uint32_t)call->q.shape[OPS_ATTENTION_OUTER],
                                   .m = call->rows,
                                   .n = call->columns,
                                   .d = call->q.shape[OPS_ATTENTION_COLUMN],
                                   .e = call->v.shape[OPS_ATTENTION_COLUMN],
                                   .q = strides_of(&views[0]),
                                   .k = strides_of(&views[1]),
                                   .v = strides_of(&views[2]),
                                   .y = strides_of(&views[3])};
    fold_heads(call, &d);
    return d;
}

/* The kernel of a description, or UNSUPPORTED; both are cached. */
static hal_status kernel_find(ops_context *context, const hal_attention_description *d,
                              ops_entry **entry)
{
    ops_cache_key key;
    uint64_t hash[2];
    ops_cache_key_begin(&key, OPS_FAMILY_NATIVE_ATTENTION);
    ops_cache_key_append(&key, d, sizeof *d);
    *entry = ops_cache_find(context, &key, hash);
    if (!*entry) {
        hal_kernel *kernel = NULL;
        context->kernels.natives++;
        const hal_status status = hal_kernel_create_attention(context->device, d, &kernel);
        if (status != HAL_OK && status != HAL_ERROR_UNSUPPORTED) {
            return status;
        }
        HAL_TRY(ops_cache_insert(context, hash, status == HAL_OK ? kernel : NULL, 0, entry));
    }
    return (*entry)->kernel ? HAL_OK : HAL_ERROR_UNSUPPORTED;
}

/* What takes the place of a tensor: itself, or a row-major tensor without a buffer. */
static ops_tensor tensor_view(const ops_attention_call *call, const ops_tensor *x)
{
    ops_tensor view = *x;
    if (!rows_are_aligned(call->context, x, x == &call->k || x == &call->v)) {
        view = ops_row_major(x);
        view.buffer = NULL;
        view.offset = 0;
    }
    return view;
}

/* Memory for the views that have none, and copies of the inputs among them. */
static hal_status views_fill(const ops_attention_call *call, const ops_tensor *const of[TENSORS],
                             ops_tensor views[TENSORS])
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        if (!views[i].buffer) {
            const uint64_t bytes =
                (uint64_t)ops_tensor_get_element_count(&views[i]) * hal_type_size(call->type);
            HAL_TRY(ops_buffer_create(call->context, bytes, &views[i].buffer));
            HAL_TRY(i < INPUTS ? ops_copy(call->context, of[i], &views[i]) : HAL_OK);
        }
    }
    return HAL_OK;
}

static hal_status kernel_record(const ops_attention_call *call, hal_kernel *kernel,
                                const ops_tensor views[TENSORS])
{
    const uint32_t grid[3] = {1, 1, 1};
    hal_range ranges[TENSORS];
    for (uint32_t i = 0; i < TENSORS; i++) {
        ranges[i] = ops_tensor_range(&views[i]);
    }
    HAL_TRY(ops_record_dispatch(call->context, kernel, grid, ranges, TENSORS, &call->options.scale,
                                sizeof call->options.scale));
    return views[INPUTS].buffer == call->y.buffer
               ? HAL_OK
               : ops_copy(call->context, &views[INPUTS], &call->y);
}

hal_status ops_attention_native_record(const ops_attention_call *call)
{
    const ops_tensor *const of[TENSORS] = {&call->q, &call->k, &call->v, &call->y};
    ops_tensor views[TENSORS];
    ops_entry *entry;
    for (uint32_t i = 0; i < TENSORS; i++) {
        views[i] = tensor_view(call, of[i]);
    }
    const hal_attention_description description = describe(call, views);
    HAL_TRY(kernel_find(call->context, &description, &entry));
    hal_kernel *kernel = hal_kernel_retain(entry->kernel); /* copies may evict the entry */
    hal_status status = views_fill(call, of, views);
    if (status == HAL_OK) {
        status = kernel_record(call, kernel, views);
    }
    for (uint32_t i = 0; i < TENSORS; i++) {
        if (views[i].buffer != of[i]->buffer) {
            hal_buffer_release(views[i].buffer);
        }
    }
    hal_kernel_release(kernel);
    return status;
}

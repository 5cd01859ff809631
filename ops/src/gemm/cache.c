/* The cache of plans, see cache.h. A table with one place for each hash; dispatches are valid until
 * a kernel is inserted into the context's cache. */
#include "cache.h"

#include "tensor/allocation.h"
#include "tensor/expression.h"
#include "tensor/plan_recorder.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 256 };

/* What a tensor is apart from its buffer; axes beyond the rank are 0. */
typedef struct tensor_layout {
    hal_type type;
    uint32_t rank;
    int64_t offset, shape[3], stride[3];
} tensor_layout;

/* Whose buffer a range is. */
enum { OF_A, OF_B, OF_C, OF_WORKSPACE, OF_NONE };

typedef struct cached_product {
    uint64_t key[2]; /* of the plan; {0, 0}: a free place */
    ops_gemm_plan plan;
    uint64_t
        insertions; /* of the context's cache when the dispatches were kept; 0: none are kept */
    tensor_layout layouts[3];
    double alpha, beta;
    uint32_t precision, impl;
    uint32_t count; /* of dispatches */
    uint64_t workspace_bytes;
    uint64_t max_workspace; /* of the options */
    bool shares_buffer;     /* A and B do */
    uint8_t owners[OPS_PRODUCT_DISPATCHES][OPS_PRODUCT_RANGES];
    ops_product_dispatch dispatches[OPS_PRODUCT_DISPATCHES];
} cached_product;

static inline uint64_t product_place(const ops_tensor *a, const ops_tensor *b, const ops_tensor *c)
{
    const int64_t m = c->shape[c->rank - 2], n = c->shape[c->rank - 1], k = a->shape[a->rank - 1];
    const int64_t layout = (a->stride[a->rank - 1] == 1) * 2 + (b->stride[b->rank - 1] == 1);
    const uint64_t mixed =
        (uint64_t)(m * 961 + n * 31 + k + layout * 29791) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> 56; /* PLACES is 2^8 */
}

/* Not 0 if a tensor has another layout; without branches except for the rank. */
static inline uint64_t layout_differs(const tensor_layout *layout, const ops_tensor *tensor)
{
    uint64_t differs = (layout->type ^ tensor->type) | (layout->rank ^ tensor->rank) |
                       (uint64_t)(layout->offset ^ tensor->offset) |
                       (uint64_t)(layout->shape[0] ^ tensor->shape[0]) |
                       (uint64_t)(layout->stride[0] ^ tensor->stride[0]) |
                       (uint64_t)(layout->shape[1] ^ tensor->shape[1]) |
                       (uint64_t)(layout->stride[1] ^ tensor->stride[1]);
    if (layout->rank == 3) {
        differs |= (uint64_t)(layout->shape[2] ^ tensor->shape[2]) |
                   (uint64_t)(layout->stride[2] ^ tensor->stride[2]);
    }
    return differs;
}

static tensor_layout layout_of(const ops_tensor *tensor)
{
    tensor_layout layout = {.type = tensor->type, .rank = tensor->rank, .offset = tensor->offset};
    memcpy(layout.shape, tensor->shape, tensor->rank * sizeof *layout.shape);
    memcpy(layout.stride, tensor->stride, tensor->rank * sizeof *layout.stride);
    return layout;
}

/* Not 0 if options are others than the entry's, or of a product that is not kept. */
static uint64_t options_differ(const cached_product *product, const ops_gemm_options *options)
{
    return (product->precision ^ options->precision) | (product->impl ^ (uint32_t)options->impl) |
           (uint64_t)(product->alpha != options->alpha) |
           (uint64_t)(product->beta != options->beta) | (uint64_t)(uintptr_t)options->epilogue |
           (uint64_t)(uintptr_t)options->config |
           (product->max_workspace ^ options->max_workspace) | options->input_count |
           options->levels | (uint64_t)(uintptr_t)options->a_sums |
           (uint64_t)(uintptr_t)options->c_sums;
}

/* The entry of a product, or null. */
static const cached_product *product_find(const ops_context *context,
                                          const ops_gemm_options *options,
                                          const ops_tensor *const tensors[3])
{
    const cached_product *table = context->plans;
    for (uint32_t i = 0; i < 3; i++) {
        if (!tensors[i] || !tensors[i]->buffer || tensors[i]->rank < 2 || tensors[i]->rank > 3) {
            return NULL;
        }
    }
    const cached_product *found = &table[product_place(tensors[0], tensors[1], tensors[2])];
    const hal_buffer *c = tensors[2]->buffer;
    if (options->size != sizeof *options || found->insertions != context->kernels.insertions ||
        options_differ(found, options) || tensors[0]->buffer == c || tensors[1]->buffer == c ||
        (tensors[0]->buffer == tensors[1]->buffer) != found->shares_buffer) {
        return NULL;
    }
    return layout_differs(&found->layouts[0], tensors[0]) |
                   layout_differs(&found->layouts[1], tensors[1]) |
                   layout_differs(&found->layouts[2], tensors[2])
               ? NULL
               : found;
}

bool ops_gemm_cache_replay(ops_context *context, const ops_gemm_options *options,
                           const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                           hal_status *status)
{
    const ops_tensor *const tensors[3] = {a, b, c};
    const cached_product *found =
        context && context->plans ? product_find(context, options, tensors) : NULL;
    hal_buffer *workspace = NULL;
    if (!found || (found->workspace_bytes &&
                   ops_buffer_create(context, found->workspace_bytes, &workspace) != HAL_OK)) {
        return false;
    }
    hal_buffer *const buffers[] = {a->buffer, b->buffer, c->buffer, workspace, NULL};
    *status = HAL_OK;
    for (uint32_t i = 0; i < found->count && *status == HAL_OK; i++) {
        const ops_product_dispatch *d = &found->dispatches[i];
        hal_range ranges[OPS_PRODUCT_RANGES];
        memcpy(ranges, d->ranges, sizeof ranges);
        for (uint32_t r = 0; r < d->range_count; r++) {
            ranges[r].buffer = buffers[found->owners[i][r]];
        }
        *status = ops_record_dispatch(context, d->kernel, d->grid, ranges, d->range_count,
                                      d->scalars, d->scalar_bytes);
    }
    hal_buffer_release(workspace);
    /* The dispatch has checked the buffers; what is wrong with them is told by the other way. */
    return *status != HAL_ERROR_INVALID_ARGUMENT;
}

void ops_product_dispatch_set(ops_product_dispatch *dispatch, hal_kernel *kernel,
                              const uint32_t grid[3], const hal_range *ranges, uint32_t range_count,
                              const void *scalars, uint32_t scalar_bytes)
{
    dispatch->kernel = NULL;
    if (range_count > OPS_PRODUCT_RANGES || scalar_bytes > sizeof dispatch->scalars) {
        return;
    }
    memcpy(dispatch->grid, grid, sizeof dispatch->grid);
    memset(dispatch->ranges, 0, sizeof dispatch->ranges);
    memcpy(dispatch->ranges, ranges, range_count * sizeof *ranges);
    memcpy(dispatch->scalars, scalars, scalar_bytes);
    dispatch->range_count = range_count;
    dispatch->scalar_bytes = scalar_bytes;
    dispatch->kernel = kernel;
}

/* Sets whose buffers the ranges of a dispatch are. Returns whether all are known. */
static bool owners_find(const ops_product_dispatch *dispatch, const ops_tensor *const tensors[3],
                        const hal_buffer *workspace, uint8_t *owners)
{
    for (uint32_t i = 0; i < dispatch->range_count; i++) {
        const hal_buffer *buffer = dispatch->ranges[i].buffer;
        uint8_t owner = OF_A;
        while (owner < OF_WORKSPACE && tensors[owner]->buffer != buffer) {
            owner++;
        }
        if (owner == OF_WORKSPACE && buffer != workspace) {
            if (buffer) {
                return false;
            }
            owner = OF_NONE;
        }
        owners[i] = buffer ? owner : OF_NONE;
    }
    return true;
}

static cached_product *plan_place(const ops_context *context, const ops_product *product)
{
    cached_product *table = context->plans;
    return &table[product_place(product->a.tensor, product->b.tensor, product->c.tensor)];
}

/* Layouts, and where operands begin as far as bindings and vectors ask for it; the exact places of
 * those that share a buffer with C. */
static void matrix_key(const ops_context *context, const ops_matrix *matrix, const ops_matrix *c,
                       ops_cache_key *key)
{
    const ops_tensor *t = matrix->tensor;
    const bool is_shared = t->buffer && (matrix == c || t->buffer == c->tensor->buffer);
    const uint64_t alignment = context->info->binding_alignment,
                   most = alignment > OPS_GEMM_LINE_BYTES ? alignment : OPS_GEMM_LINE_BYTES;
    const uint64_t offset = (uint64_t)t->offset * hal_type_size(t->type);
    const int64_t numbers[] = {t->type,
                               matrix->rows,
                               matrix->columns,
                               matrix->row_stride,
                               matrix->column_stride,
                               matrix->batch_stride,
                               (int64_t)(offset & (most - 1)),
                               is_shared && matrix != c ? 1 + t->offset - c->tensor->offset : 0};
    ops_cache_key_append(key, numbers, sizeof numbers);
}

void ops_gemm_cache_key(const ops_context *context, const ops_product *product, uint64_t key[2])
{
    const ops_gemm_options *o = product->options;
    const uint64_t numbers[] = {product->batch,
                                product->precision,
                                o->impl,
                                o->alpha == 0,
                                o->beta == 0,
                                o->max_workspace,
                                o->levels,
                                o->prepared ? o->prepared->levels : 0,
                                o->input_count,
                                o->epilogue ? o->epilogue->hash[0] : 0,
                                o->epilogue ? o->epilogue->hash[1] : 0,
                                context->tuning->gemm.split_depth};
    ops_cache_key whole;
    ops_cache_key_begin(&whole, OPS_FAMILY_GEMM);
    ops_cache_key_append(&whole, numbers, sizeof numbers);
    matrix_key(context, &product->a, &product->c, &whole);
    matrix_key(context, &product->b, &product->c, &whole);
    matrix_key(context, &product->c, &product->c, &whole);
    for (uint32_t i = 0; i < o->input_count; i++) {
        matrix_key(context, &product->inputs[i], &product->c, &whole);
    }
    ops_cache_key_hash(&whole, key);
}

const ops_gemm_plan *ops_gemm_cache_find(const ops_context *context, const ops_product *product,
                                         const uint64_t key[2])
{
    const cached_product *found = context->plans ? plan_place(context, product) : NULL;
    return found && found->key[0] == key[0] && found->key[1] == key[1] ? &found->plan : NULL;
}

void ops_gemm_cache_insert(ops_context *context, const ops_product *product, const uint64_t key[2],
                           const ops_gemm_plan *plan)
{
    if (!context->plans) {
        context->plans = calloc(PLACES, sizeof(cached_product));
    }
    if (context->plans) {
        cached_product *kept = plan_place(context, product);
        kept->key[0] = key[0];
        kept->key[1] = key[1];
        kept->plan = *plan;
        kept->insertions = 0;
    }
}

/* Whether calls with the same layouts record the same dispatches. A range's owner is found by its
 * buffer: C needs one that neither A nor B has. */
static bool product_is_kept(const ops_product *product)
{
    const ops_gemm_options *options = product->options;
    const hal_buffer *c = product->c.tensor->buffer;
    return !options->epilogue && !options->config && options->alpha != 0 &&
           product->a.columns > 0 && options->precision != HAL_GEMM_NORMWISE &&
           product->a.tensor->buffer != c && product->b.tensor->buffer != c;
}

void ops_gemm_cache_keep(ops_context *context, const ops_product *product,
                         const ops_product_dispatch *dispatches, uint32_t count,
                         const hal_buffer *workspace, uint64_t workspace_bytes)
{
    const ops_gemm_options *options = product->options;
    const ops_tensor *const tensors[3] = {product->a.tensor, product->b.tensor, product->c.tensor};
    bool can_keep = context->plans && count <= OPS_PRODUCT_DISPATCHES && product_is_kept(product);
    for (uint32_t i = 0; i < count && can_keep; i++) {
        can_keep = dispatches[i].kernel != NULL;
    }
    if (!can_keep) {
        return;
    }
    cached_product *kept = plan_place(context, product);
    kept->insertions = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!owners_find(&dispatches[i], tensors, workspace, kept->owners[i])) {
            return;
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        kept->layouts[i] = layout_of(tensors[i]);
    }
    memcpy(kept->dispatches, dispatches, count * sizeof *dispatches);
    kept->count = count;
    kept->workspace_bytes = workspace_bytes;
    kept->shares_buffer = tensors[0]->buffer == tensors[1]->buffer;
    kept->precision = options->precision;
    kept->impl = options->impl;
    kept->max_workspace = options->max_workspace;
    kept->alpha = options->alpha;
    kept->beta = options->beta;
    kept->insertions = context->kernels.insertions;
}

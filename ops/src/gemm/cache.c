/* Products that were described before, see product_cache.h. A table with one place for each hash;
 * entries are valid until a kernel is inserted into the context's cache. */
#include "product_cache.h"

#include "tensor/allocation.h"
#include "tensor/plan_recorder.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 64 };

/* What a tensor is apart from its buffer; axes beyond the rank are 0. */
typedef struct tensor_layout {
    hal_type type;
    uint32_t rank;
    int64_t offset, shape[3], stride[3];
} tensor_layout;

/* Whose buffer a range is. */
enum { OF_A, OF_B, OF_C, OF_WORKSPACE, OF_NONE };

typedef struct cached_product {
    tensor_layout layouts[3];
    double alpha, beta;
    uint32_t precision, impl, candidate;
    uint32_t count;      /* of dispatches */
    uint64_t insertions; /* of the context's cache when this was kept; 0: a free place */
    uint64_t workspace_bytes;
    uint64_t max_workspace; /* of the options */
    int shares_buffer;      /* A and B do */
    uint8_t owners[OPS_PRODUCT_DISPATCHES][OPS_PRODUCT_RANGES];
    ops_product_dispatch dispatches[OPS_PRODUCT_DISPATCHES];
} cached_product;

static uint64_t product_place(const ops_tensor *a, const ops_tensor *c)
{
    const int64_t m = c->shape[c->rank - 2], n = c->shape[c->rank - 1], k = a->shape[a->rank - 1];
    const uint64_t mixed = (uint64_t)(m * 961 + n * 31 + k) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> 58; /* PLACES is 2^6 */
}

/* Not 0 if a tensor has another layout; without branches but for the rank. */
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
           (product->candidate ^ options->candidate) |
           (product->max_workspace ^ options->max_workspace) | options->input_count |
           options->levels | (uint64_t)(uintptr_t)options->a_sums |
           (uint64_t)(uintptr_t)options->c_sums;
}

/* The entry of a product, or null. */
static const cached_product *product_find(const ops_context *context,
                                          const ops_gemm_options *options,
                                          const ops_tensor *const tensors[3])
{
    const cached_product *table = context->products;
    for (uint32_t i = 0; i < 3; i++) {
        if (!tensors[i] || !tensors[i]->buffer || tensors[i]->rank < 2 || tensors[i]->rank > 3) {
            return NULL;
        }
    }
    const cached_product *found = &table[product_place(tensors[0], tensors[2])];
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

int ops_product_cache_record(ops_context *context, const ops_gemm_options *options,
                             const ops_tensor *a, const ops_tensor *b, const ops_tensor *c,
                             hal_status *status)
{
    const ops_tensor *const tensors[3] = {a, b, c};
    const cached_product *found =
        context && context->products ? product_find(context, options, tensors) : NULL;
    hal_buffer *workspace = NULL;
    if (!found || (found->workspace_bytes &&
                   ops_buffer_create(context, found->workspace_bytes, &workspace) != HAL_OK)) {
        return 0;
    }
    hal_buffer *const buffers[] = {a->buffer, b->buffer, c->buffer, workspace, NULL};
    *status = HAL_OK;
    for (uint32_t i = 0; i < found->count && !*status; i++) {
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
static int owners_find(const ops_product_dispatch *dispatch, const ops_tensor *const tensors[3],
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
                return 0;
            }
            owner = OF_NONE;
        }
        owners[i] = buffer ? owner : OF_NONE;
    }
    return 1;
}

void ops_product_cache_insert(ops_context *context, const ops_product *product,
                              const ops_product_dispatch *dispatches, uint32_t count,
                              const hal_buffer *workspace, uint64_t workspace_bytes)
{
    const ops_gemm_options *options = product->options;
    const ops_tensor *tensors[3] = {product->a.tensor, product->b.tensor, product->c.tensor};
    /* A range's owner is found by its buffer: C needs one that neither A nor B has. */
    int can_keep = !options->epilogue && options->alpha != 0 && product->a.columns > 0 &&
                   !product->levels && !*product->lacked_memory &&
                   count <= OPS_PRODUCT_DISPATCHES && tensors[0]->buffer != tensors[2]->buffer &&
                   tensors[1]->buffer != tensors[2]->buffer;
    for (uint32_t i = 0; i < count && can_keep; i++) {
        can_keep = dispatches[i].kernel != NULL;
    }
    if (!can_keep) {
        return;
    }
    if (!context->products) {
        context->products = calloc(PLACES, sizeof(cached_product));
    }
    cached_product *table = context->products;
    if (!table) {
        return;
    }
    cached_product *kept = &table[product_place(tensors[0], tensors[2])];
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
    kept->candidate = options->candidate;
    kept->max_workspace = options->max_workspace;
    kept->alpha = options->alpha;
    kept->beta = options->beta;
    kept->insertions = context->kernels.insertions;
}

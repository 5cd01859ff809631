/* Products that were described before, see product_cache.h. A table with one place for each hash;
 * entries are valid until a kernel is inserted into the context's cache. */
#include "product_cache.h"

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

typedef struct cached_product {
    tensor_layout layouts[3];
    uint64_t first[3], bytes[3]; /* the range of the elements */
    uint32_t precision, impl;
    int beta_is_zero;
    uint64_t insertions; /* of the context's cache when this was kept; 0: a free place */
    hal_kernel *kernel;
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
           (uint64_t)(product->beta_is_zero != (options->beta == 0)) |
           (uint64_t)(options->alpha == 0) | (uint64_t)(uintptr_t)options->epilogue |
           options->input_count | options->levels | options->candidate;
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
        options_differ(found, options) || tensors[0]->buffer == c || tensors[1]->buffer == c) {
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
    static const uint32_t grid[3] = {1, 1, 1};
    const ops_tensor *const tensors[3] = {a, b, c};
    const cached_product *found =
        context && context->products ? product_find(context, options, tensors) : NULL;
    if (!found) {
        return 0;
    }
    hal_range ranges[4] = {{NULL, 0, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        ranges[i] = (hal_range){tensors[i]->buffer, found->first[i], found->bytes[i]};
    }
    ranges[3] = (hal_range){NULL, 0, 0};
    const double scalars[2] = {options->alpha, options->beta};
    *status = ops_record_dispatch(context, found->kernel, grid, ranges, 4, scalars, sizeof scalars);
    /* The dispatch has checked the buffers; what is wrong with them is told by the other way. */
    return *status != HAL_ERROR_INVALID_ARGUMENT;
}

void ops_product_cache_insert(ops_context *context, const ops_product *product,
                              const ops_entry *entry)
{
    const ops_gemm_options *options = product->options;
    const ops_tensor *tensors[3] = {product->a.tensor, product->b.tensor, product->c.tensor};
    if (options->epilogue || options->alpha == 0 || product->levels || options->candidate != 0 ||
        entry->workspace_bytes != 0) {
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
    for (uint32_t i = 0; i < 3; i++) {
        int64_t first, end;
        const uint64_t size = hal_type_size(tensors[i]->type);
        ops_span(tensors[i], &first, &end);
        kept->layouts[i] = layout_of(tensors[i]);
        kept->first[i] = (uint64_t)first * size;
        kept->bytes[i] = (uint64_t)(end - first) * size;
    }
    kept->precision = options->precision;
    kept->impl = options->impl;
    kept->beta_is_zero = options->beta == 0;
    kept->insertions = context->kernels.insertions;
    kept->kernel = entry->kernel;
}

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

static int layout_matches(const tensor_layout *layout, const ops_tensor *tensor)
{
    int equal = layout->type == tensor->type && layout->rank == tensor->rank &&
                layout->offset == tensor->offset;
    for (uint32_t i = 0; i < layout->rank && equal; i++) {
        equal = layout->shape[i] == tensor->shape[i] && layout->stride[i] == tensor->stride[i];
    }
    return equal;
}

static tensor_layout layout_of(const ops_tensor *tensor)
{
    tensor_layout layout = {.type = tensor->type, .rank = tensor->rank, .offset = tensor->offset};
    memcpy(layout.shape, tensor->shape, tensor->rank * sizeof *layout.shape);
    memcpy(layout.stride, tensor->stride, tensor->rank * sizeof *layout.stride);
    return layout;
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
    if (found->insertions != context->kernels.insertions ||
        found->precision != options->precision || found->impl != (uint32_t)options->impl ||
        found->beta_is_zero != (options->beta == 0) || options->alpha == 0 || options->epilogue ||
        options->input_count != 0 || options->levels != 0 || options->candidate != 0 ||
        options->size != sizeof *options) {
        return NULL;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (!layout_matches(&found->layouts[i], tensors[i]) ||
            hal_buffer_get_device(tensors[i]->buffer) != context->device ||
            hal_buffer_get_bytes(tensors[i]->buffer) < found->first[i] + found->bytes[i]) {
            return NULL;
        }
    }
    const hal_buffer *c = tensors[2]->buffer;
    return tensors[0]->buffer != c && tensors[1]->buffer != c ? found : NULL;
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
    return 1;
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

/* See spatial.h. */
#include "spatial.h"

#include <string.h>

ops_tensor ops_spatial_view(const ops_tensor *images, const ops_tensor *of)
{
    ops_tensor view = *images;
    memset(view.stride, 0, sizeof view.stride);
    view.offset = 0;
    if (of) {
        view.buffer = of->buffer;
        view.type = of->type;
        view.offset = of->offset;
        view.stride[0] = of->stride[0];
        view.stride[1] = of->stride[1];
    }
    return view;
}

uint32_t ops_spatial_widest(const ops_context *context, const ops_tensor *x, const ops_tensor *y)
{
    const uint32_t size = hal_type_size(x->type), other = hal_type_size(y->type);
    const bool is_last = y->shape[1] > 1 && x->stride[1] == 1 && y->stride[1] == 1;
    return is_last ? ops_elementwise_widest(context, size > other ? size : other) : 1;
}

uint32_t ops_spatial_aligned(uint32_t widest, int64_t step)
{
    while (step % widest != 0) {
        widest /= 2;
    }
    return widest;
}

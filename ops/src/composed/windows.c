/* Nodes of windows: copies by affine coordinates, and depthwise convolutions. */
#include "compose.h"

#include <string.h>

void ops_compose_places(uint32_t rank, ops_unfold_places *places)
{
    memset(places, 0, sizeof *places);
    places->size = sizeof *places;
    for (uint32_t i = 0; i < rank; i++) {
        places->axis[i] = i;
        places->step[i] = 1;
    }
}

ops_array *ops_compose_unfold(const ops_unfold_places *places, ops_array *x, ops_array *outside,
                              uint32_t rank, const int64_t *shape)
{
    ops_array *const operands[2] = {x, outside};
    ops_result result;
    if (!x || !outside) {
        return NULL;
    }
    ops_result_like(x, &result);
    result.rank = rank;
    result.shape = shape;
    result.form = places;
    result.form_bytes = sizeof *places;
    return ops_defer("ops_unfold", OPS_OPERATION_UNFOLD, 0, operands, 2, &result);
}

ops_array *ops_compose_pad(const int64_t *before, const int64_t *shape, double value, ops_array *x)
{
    const uint32_t rank = x->view.rank;
    ops_unfold_places places;
    ops_tensor inner;
    if (!x->owner->context->tuning->convolution.pads_by_copies) {
        ops_compose_places(rank, &places);
        for (uint32_t i = 0; i < rank; i++) {
            places.origin[i] = -before[i];
        }
        return ops_compose_unfold(&places, x, ops_compose_scalar(x, value), rank, shape);
    }
    ops_array *full = ops_array_full(x->owner->context, x->view.type, rank, shape, value);
    if (!full || ops_array_describe(full, &inner)) {
        return NULL;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (ops_tensor_slice(&inner, (int32_t)i, before[i], x->view.shape[i], 1, &inner)) {
            return NULL;
        }
    }
    return ops_array_update(full, &inner, x);
}

ops_array *ops_compose_depthwise(const ops_depthwise_options *options, bool channels_last,
                                 ops_array *x, ops_array *w, ops_array *bias, const int64_t *places)
{
    ops_array *const operands[3] = {x, w, bias};
    const uint32_t rank = options->rank, channels = channels_last ? rank + 1 : 1;
    int64_t shape[OPS_MAX_RANK] = {x->view.shape[0]};
    ops_depthwise_options form;
    ops_result result;
    memset(&form, 0, sizeof form); /* a part of the key */
    form.size = sizeof form;
    form.rank = rank;
    form.activation = options->activation;
    memcpy(form.stride, options->stride, rank * sizeof *form.stride);
    memcpy(form.dilation, options->dilation, rank * sizeof *form.dilation);
    memcpy(form.before, options->before, rank * sizeof *form.before);
    memcpy(shape + (channels_last ? 1 : 2), places, rank * sizeof *places);
    shape[channels] = w->view.shape[0];
    ops_result_like(x, &result);
    result.rank = rank + 2;
    result.shape = shape;
    result.form = &form;
    result.form_bytes = sizeof form;
    return ops_defer("ops_depthwise", OPS_OPERATION_DEPTHWISE, channels_last, operands,
                     bias ? 3 : 2, &result);
}

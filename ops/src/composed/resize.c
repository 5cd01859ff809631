/* Resizing: one kernel, or gathers along an axis, and their transposes: scattered sums. */
#include "compose.h"
#include "kernels/resize.h"
#include "tensor/context.h"

#include <ops/resize.h>
#include <stdlib.h>
#include <string.h>

/* One axis: for each element of the longer or shorter one, its neighbours in x and the share of the
 * second. */
typedef struct resize_axis {
    uint32_t axis;
    int64_t from, to;              /* lengths of x and of the result */
    ops_array *low, *high, *share; /* of rank 1: I32, I32, floats; high and share of LINEAR */
} resize_axis;

static ops_resize_coordinate coordinate(ops_resize_kind kind, ops_resize_places places,
                                        const resize_axis *a)
{
    const bool is_nearest = kind == OPS_RESIZE_NEAREST;
    ops_resize_coordinate c = {2 * a->from, 0, 2 * a->to};
    if (places == OPS_RESIZE_HALF) {
        c.start = is_nearest ? a->from : a->from - a->to;
    } else if (places == OPS_RESIZE_ALIGN && a->from > 1 && a->to > 1) {
        c = (ops_resize_coordinate){2 * (a->from - 1), is_nearest ? a->to - 1 : 0, 2 * (a->to - 1)};
    }
    return c;
}

/* Makes the arrays of an axis; `type` is F32 or F64. */
static bool axis_make(ops_resize_kind kind, ops_resize_places places, ops_context *context,
                      hal_type type, resize_axis *a)
{
    const size_t count = (size_t)a->to;
    int32_t *near = malloc(2 * count * sizeof *near);
    float *single = malloc(count * sizeof *single);
    double *share = malloc(count * sizeof *share);
    const ops_resize_coordinate c = coordinate(kind, places, a);
    bool is_made = near && single && share;
    for (int64_t i = 0; is_made && i < a->to; i++) {
        const int64_t number = c.slope * i + c.start > 0 ? c.slope * i + c.start : 0;
        const bool has_high = number / c.divisor < a->from - 1;
        near[i] = (int32_t)(has_high ? number / c.divisor : a->from - 1);
        near[a->to + i] = near[i] + has_high;
        share[i] = has_high ? (double)(number % c.divisor) / (double)c.divisor : 0;
        single[i] = (float)share[i];
    }
    if (!is_made) {
        hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                       "ops_array_resize: the host has no memory for %lld coordinates",
                       (long long)a->to);
    } else {
        a->low = ops_array_from_host(context, HAL_TYPE_I32, 1, &a->to, near);
        is_made = a->low != NULL;
    }
    if (is_made && kind == OPS_RESIZE_LINEAR) {
        const void *shares = type == HAL_TYPE_F64 ? (const void *)share : (const void *)single;
        a->high = ops_array_from_host(context, HAL_TYPE_I32, 1, &a->to, near + a->to);
        a->share = ops_array_from_host(context, type, 1, &a->to, shares);
        is_made = a->high && a->share;
    }
    free(near);
    free(single);
    free(share);
    return is_made;
}

/* An array of rank 1 along the axis of an array of this rank. */
static ops_array *along(ops_array *line, const resize_axis *a, uint32_t rank)
{
    int64_t shape[OPS_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i == a->axis ? a->to : 1;
    }
    return line ? ops_array_reshape(line, rank, shape) : NULL;
}

static ops_array *forward(ops_resize_kind kind, const resize_axis *a, ops_array *x)
{
    const int32_t axis = (int32_t)a->axis;
    ops_array *low = ops_array_gather(axis, x, a->low);
    if (kind == OPS_RESIZE_NEAREST) {
        return low;
    }
    ops_array *share = along(a->share, a, x->view.rank);
    return ops_add(ops_mul(low, ops_array_scalar_binary(OPS_SUB, 1, share)),
                   ops_mul(ops_array_gather(axis, x, a->high), share));
}

/* Adds dy to the elements of x that it came from. */
static ops_array *backward(ops_resize_kind kind, const resize_axis *a, ops_array *dy)
{
    int64_t shape[OPS_MAX_RANK], many[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(dy, shape);
    const int32_t axis = (int32_t)a->axis;
    ops_compose_shape(dy, many);
    shape[a->axis] = a->from;
    ops_array *dx = ops_array_full(dy->owner->context, dy->view.type, rank, shape, 0);
    ops_array *low = along(a->low, a, rank), *high = along(a->high, a, rank);
    low = low ? ops_array_broadcast(low, rank, many) : NULL;
    if (kind == OPS_RESIZE_NEAREST) {
        return ops_array_scatter(OPS_SCATTER_ADD, axis, dx, low, dy);
    }
    high = high ? ops_array_broadcast(high, rank, many) : NULL;
    ops_array *share = along(a->share, a, rank);
    dx = ops_array_scatter(OPS_SCATTER_ADD, axis, dx, low,
                           ops_mul(dy, ops_array_scalar_binary(OPS_SUB, 1, share)));
    return ops_array_scatter(OPS_SCATTER_ADD, axis, dx, high, ops_mul(dy, share));
}

/* Elements of the result that come from an element of x, at most about, for which a gradient has
 * one kernel: more are added along one axis after the other, by more work-items. */
enum { MOST_JOINT = 64 };

/* Whether the device resizes all axes by one kernel. Sets its form. */
static bool form_make(ops_resize_kind kind, ops_resize_places places, uint32_t first,
                      uint32_t axis_count, const int64_t *lengths, bool is_gradient,
                      const ops_array *x, ops_resize_form *form)
{
    bool fits = x->owner->context->tuning->convolution.pools_at_once;
    double joint = 1;
    memset(form, 0, sizeof *form); /* a part of the key */
    form->first = first;
    form->axes = axis_count;
    form->is_linear = kind == OPS_RESIZE_LINEAR;
    form->is_gradient = is_gradient;
    for (uint32_t i = 0; i < axis_count; i++) {
        const int64_t length = x->view.shape[first + i];
        const resize_axis a = {.axis = first + i,
                               .from = is_gradient ? lengths[i] : length,
                               .to = is_gradient ? length : lengths[i]};
        form->along[i] = coordinate(kind, places, &a);
        fits = fits && ops_resize_fits(&form->along[i], a.from, a.to);
        joint *= 1 + (double)a.to / (double)a.from;
    }
    return fits && (!is_gradient || axis_count == 1 || joint <= MOST_JOINT);
}

/* The kernel's result. */
static ops_array *resize_at_once(const ops_resize_form *form, const int64_t *lengths, ops_array *x)
{
    int64_t shape[OPS_MAX_RANK];
    ops_result result;
    ops_result_like(x, &result);
    ops_compose_shape(x, shape);
    memcpy(shape + form->first, lengths, form->axes * sizeof *shape);
    result.shape = shape;
    result.form = form;
    result.form_bytes = sizeof *form;
    return ops_defer("ops_array_resize", OPS_OPERATION_RESIZE, 0, &x, 1, &result);
}

static hal_status check_resize(const char *function, ops_resize_kind kind, ops_resize_places places,
                               uint32_t axis_count, const int64_t *lengths, uint32_t first,
                               const ops_array *x, bool needs_float)
{
    bool fits = lengths && axis_count >= 1 && axis_count <= 3 &&
                (uint32_t)kind < OPS_RESIZE_KIND_COUNT &&
                (uint32_t)places < OPS_RESIZE_PLACES_COUNT && first + axis_count <= x->view.rank &&
                (!needs_float || hal_type_is_float(x->view.type));
    for (uint32_t i = 0; fits && i < axis_count; i++) {
        const int64_t length = x->view.shape[first + i];
        fits = lengths[i] >= 1 && lengths[i] <= INT32_MAX && length >= 1 && length <= INT32_MAX;
    }
    char text[OPS_TEXT_BYTES];
    return fits ? HAL_OK
                : ops_invalid("%s: kind, places, lengths: expected an ops_resize_kind (LINEAR and "
                              "gradients of floats), an ops_resize_places and 1 to 3 lengths of 1 "
                              "to 2^31 - 1, got %d, %d and %u for %s",
                              function, (int)kind, (int)places, axis_count,
                              ops_describe(&x->view, text));
}

/* One axis after the other; of gradients in the other order. */
static ops_array *resize(const char *function, ops_resize_kind kind, ops_resize_places places,
                         uint32_t axis_count, const int64_t *lengths, bool channels_last,
                         bool is_gradient, ops_array *x)
{
    const hal_type type = x->view.type;
    const uint32_t rank = x->view.rank, after = axis_count + channels_last;
    const uint32_t first = rank >= after ? rank - after : rank;
    const bool has_sums = is_gradient || kind == OPS_RESIZE_LINEAR;
    if (check_resize(function, kind, places, axis_count, lengths, first, x, has_sums)) {
        return NULL;
    }
    ops_resize_form form;
    if (form_make(kind, places, first, axis_count, lengths, is_gradient, x, &form)) {
        return resize_at_once(&form, lengths, x);
    }
    ops_array *y = has_sums ? ops_compose_cast(ops_compose_sum_type(type), x) : x;
    for (uint32_t i = 0; y && i < axis_count; i++) {
        const uint32_t k = is_gradient ? axis_count - 1 - i : i;
        if (form_make(kind, places, first + k, 1, lengths + k, is_gradient, y, &form)) {
            y = resize_at_once(&form, lengths + k, y);
            continue;
        }
        const int64_t length = y->view.shape[first + k];
        resize_axis a = {.axis = first + k,
                         .from = is_gradient ? lengths[k] : length,
                         .to = is_gradient ? length : lengths[k]};
        if (!axis_make(kind, places, y->owner->context, y->view.type, &a)) {
            return NULL;
        }
        y = is_gradient ? backward(kind, &a, y) : forward(kind, &a, y);
    }
    return has_sums ? ops_compose_cast(type, y) : y;
}

ops_array *ops_array_resize(ops_resize_kind kind, ops_resize_places places, uint32_t axis_count,
                            const int64_t *lengths, int channels_last, ops_array *x)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_resize", &x, 1);
    return arrays ? ops_compose_end(arrays, resize("ops_array_resize", kind, places, axis_count,
                                                   lengths, channels_last != 0, false, x))
                  : NULL;
}

ops_array *ops_array_resize_gradient(ops_resize_kind kind, ops_resize_places places,
                                     uint32_t axis_count, const int64_t *lengths, int channels_last,
                                     ops_array *dy)
{
    ops_arrays *arrays = ops_compose_begin("ops_array_resize_gradient", &dy, 1);
    return arrays
               ? ops_compose_end(arrays, resize("ops_array_resize_gradient", kind, places,
                                                axis_count, lengths, channels_last != 0, true, dy))
               : NULL;
}

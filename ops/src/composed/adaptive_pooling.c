/* Adaptive pooling, one axis after the other: reductions of windows, which are views where all have
 * one length, else gathered elements. */
#include "convolution.h"
#include "pooling.h"

#include <ops/pooling.h>
#include <string.h>

/* The windows along an axis: `count` of them over `length` elements; window i is from floor(i
 * length / count) to ceil((i + 1) length / count). */
typedef struct axis_windows {
    uint32_t axis;
    int64_t length, count, most; /* elements of the longest one, or more */
} axis_windows;

static axis_windows windows_of(uint32_t axis, int64_t length, int64_t count)
{
    const int64_t most = length % count == 0   ? length / count
                         : count % length == 0 ? 1
                                               : length / count + 2;
    return (axis_windows){axis, length, count, most};
}

static bool windows_are_even(const axis_windows *w)
{
    return w->length % w->count == 0;
}

/* The first element of each window, and the one after its last, [count, 1] of I64. */
static ops_array *windows_start(ops_context *context, const axis_windows *w, ops_array **end)
{
    ops_array *lines = ops_compose_count(context, 2, 0, w->count, 0, w->length);
    ops_array *divisor = lines ? ops_compose_scalar(lines, (double)w->count) : NULL;
    *end = ops_div(ops_add_scalar(lines, (double)(w->length + w->count - 1)), divisor);
    return ops_div(lines, divisor);
}

/* An array of one number for each window in the shape of x, with lengths of 1 elsewhere. */
static ops_array *along_axis(const axis_windows *w, const ops_array *x, ops_array *numbers)
{
    int64_t shape[OPS_MAX_RANK];
    for (uint32_t i = 0; i < x->view.rank; i++) {
        shape[i] = i == w->axis ? w->count : 1;
    }
    return numbers ? ops_array_reshape(numbers, x->view.rank, shape) : NULL;
}

/* The windows of x: [..., count, ...] with an axis of their elements, *element. Those that a window
 * does not have are the last one again, or 0 for sums. */
static ops_array *windows_take(const axis_windows *w, bool sums, ops_array *x, int32_t *element)
{
    const int64_t total = w->count * w->most;
    int64_t shape[OPS_MAX_RANK];
    *element = (int32_t)x->view.rank;
    if (windows_are_even(w)) {
        return ops_array_windows(x, (int32_t)w->axis, w->most, w->most, 1);
    }
    ops_context *context = x->owner->context;
    ops_array *end, *start = windows_start(context, w, &end);
    ops_array *at = ops_add(start, ops_compose_count(context, 2, 1, w->most, 0, 1));
    if (sums) {
        at = at ? ops_array_where(ops_lt(at, end), at, ops_compose_scalar(at, -1)) : NULL; /* 0 */
    } else {
        at = ops_minimum(at, ops_add_scalar(end, -1));
    }
    at = at ? ops_array_reshape(at, 1, &total) : NULL;
    const uint32_t rank = ops_compose_shape(x, shape);
    memmove(shape + w->axis + 2, shape + w->axis + 1, (rank - w->axis - 1) * sizeof *shape);
    shape[w->axis] = w->count;
    shape[w->axis + 1] = w->most;
    *element = (int32_t)w->axis + 1;
    x = ops_array_gather((int32_t)w->axis, x, at);
    return x ? ops_array_reshape(x, rank + 1, shape) : NULL;
}

static ops_array *reduce_axis(ops_reduction reduction, const axis_windows *w, ops_array *x)
{
    int32_t element;
    x = windows_take(w, reduction != OPS_REDUCE_MAX, x, &element);
    return ops_array_reduce(reduction, element, 0, x);
}

/* x over the lengths of the windows that its elements along the axis are of. */
static ops_array *divide_by_lengths(const axis_windows *w, ops_array *x)
{
    ops_array *end, *start = windows_start(x->owner->context, w, &end);
    ops_array *lengths = ops_compose_cast(x->view.type, ops_sub(end, start));
    return windows_are_even(w) ? ops_div_scalar(x, (double)w->most)
                               : ops_div(x, along_axis(w, x, lengths));
}

static ops_array *average_axis(const axis_windows *w, ops_array *x)
{
    if (windows_are_even(w)) {
        return reduce_axis(OPS_REDUCE_MEAN, w, x);
    }
    x = reduce_axis(OPS_REDUCE_SUM, w, x);
    return x ? divide_by_lengths(w, x) : NULL;
}

/* The element of each window that is its maximum, [..., 1, ...] of I64: the first one, or the last
 * NaN. */
static ops_array *windows_argmax(const axis_windows *w, ops_array *windows, int32_t element)
{
    ops_array *found = ops_array_reduce(OPS_REDUCE_ARGMAX, element, 1, windows);
    found = found ? ops_array_cast(HAL_TYPE_I64, found) : NULL;
    if (!found || !hal_type_is_float(windows->view.type)) {
        return found;
    }
    ops_array *numbers = ops_compose_count(windows->owner->context, windows->view.rank,
                                           (uint32_t)element, w->most, 0, 1);
    ops_array *of_nan = numbers ? ops_array_where(ops_ne(windows, windows), numbers,
                                                  ops_compose_scalar(numbers, -1))
                                : NULL;
    ops_array *last = ops_array_reduce(OPS_REDUCE_MAX, element, 1, of_nan);
    return ops_array_where(ops_array_binary_scalar(OPS_GE, last, 0), last, found);
}

/* Maxima along one axis, and where they are: *places are those of x, or null for the first axis,
 * which is the last one in memory. `scale`: the distance of neighbours along this axis. */
static ops_array *maxima_of_axis(const axis_windows *w, int64_t scale, ops_array *x,
                                 ops_array **places)
{
    int32_t element;
    ops_array *windows = windows_take(w, false, x, &element);
    ops_array *most = ops_array_reduce(OPS_REDUCE_MAX, element, 0, windows);
    ops_array *found = most ? windows_argmax(w, windows, element) : NULL;
    if (!found) {
        return NULL;
    }
    ops_array *end, *start = windows_start(x->owner->context, w, &end);
    ops_array *at = ops_array_reshape(found, most->view.rank, most->view.shape);
    at = ops_add(at, along_axis(w, most, start));
    if (!windows_are_even(w)) { /* the last element again */
        at = ops_minimum(at, along_axis(w, most, ops_add_scalar(end, -1)));
    }
    at = ops_mul_scalar(at, (double)scale);
    if (*places) {
        ops_array *within = windows_take(w, false, *places, &element);
        within = ops_array_take_along_axis(element, within, found);
        within = within ? ops_array_reshape(within, most->view.rank, most->view.shape) : NULL;
        at = ops_add(at, within);
    }
    *places = at;
    return at ? most : NULL;
}

/* A call: [N, C, lengths] on one side, [N, C, places] on the other. */
static hal_status check_call(const char *function, ops_pool_kind kind, const int64_t *lengths,
                             uint32_t first, const ops_array *x)
{
    const hal_type type = x->view.type;
    const uint32_t rank = x->view.rank;
    char text[OPS_TEXT_BYTES];
    bool fits = lengths && rank >= 3 && rank <= OPS_MAX_SPATIAL + 2 &&
                (uint32_t)kind < OPS_POOL_KIND_COUNT && type != HAL_TYPE_BOOL &&
                (kind == OPS_POOL_MAX || hal_type_is_float(type));
    for (uint32_t i = 0; fits && i < rank - 2; i++) {
        const int64_t length = x->view.shape[first + i];
        fits = lengths[i] > 0 && lengths[i] <= INT32_MAX && length > 0 && length <= INT32_MAX;
    }
    return fits ? HAL_OK
                : ops_invalid("%s: x, places: expected numbers with 1 to %u spatial axes, averages "
                              "of floats, and 1 to 2^31 - 1 places along each, got %s",
                              function, OPS_MAX_SPATIAL, ops_describe(&x->view, text));
}

/* Along the last axis first, so that of equal maxima the first one in memory is found. */
static ops_array *maxima_with_places(const int64_t *places, ops_array *x, ops_array **found)
{
    int64_t scale = 1, lengths[OPS_MAX_RANK];
    const uint32_t rank = ops_compose_shape(x, lengths);
    for (uint32_t i = rank; x && i-- > 2; scale *= lengths[i]) {
        const axis_windows w = windows_of(i, lengths[i], places[i - 2]);
        x = maxima_of_axis(&w, scale, x, found);
    }
    return x;
}

ops_array *ops_array_adaptive_pool(ops_pool_kind kind, const int64_t *places, int channels_last,
                                   ops_array *x)
{
    const char *function = "ops_array_adaptive_pool";
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    const uint32_t first = channels_last ? 1 : 2;
    if (!arrays) {
        return NULL;
    }
    if (check_call(function, kind, places, first, x)) {
        return ops_compose_end(arrays, NULL);
    }
    const hal_type type = x->view.type;
    const uint32_t spatial = x->view.rank - 2;
    ops_array *y = kind == OPS_POOL_MAX ? x : ops_compose_cast(ops_compose_sum_type(type), x);
    for (uint32_t i = 0; y && i < spatial; i++) {
        const axis_windows w = windows_of(first + i, y->view.shape[first + i], places[i]);
        y = kind == OPS_POOL_MAX ? reduce_axis(OPS_REDUCE_MAX, &w, y) : average_axis(&w, y);
    }
    return ops_compose_end(arrays, y ? ops_compose_cast(type, y) : NULL);
}

ops_array *ops_array_adaptive_maxima(const int64_t *places, int channels_last, ops_array *x,
                                     ops_array **found)
{
    const char *function = "ops_array_adaptive_maxima";
    ops_array *results[2] = {NULL, NULL};
    if (!found) {
        ops_invalid("%s: found: expected a pointer, got null", function);
        return NULL;
    }
    *found = NULL;
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    if (!arrays) {
        return NULL;
    }
    if (check_call(function, OPS_POOL_MAX, places, channels_last ? 1 : 2, x) == HAL_OK) {
        const ops_convolution_form f = {.rank = x->view.rank - 2,
                                        .channels_last = channels_last != 0};
        ops_array *y = ops_convolution_channels_second(&f, x);
        y = y ? maxima_with_places(places, y, &results[1]) : NULL;
        results[0] = ops_convolution_channels_last(&f, y);
    }
    results[1] = results[0] ? results[1] : NULL;
    ops_compose_end_all(arrays, results, 2);
    *found = results[1];
    return results[0];
}

/* Each element gets dy / length of the windows that it is in: these are windows of dy's places over
 * the elements of x, by the formula of windows with both lengths exchanged. */
static ops_array *gradient_of_averages(const int64_t *lengths, uint32_t first, ops_array *dy)
{
    const hal_type type = dy->view.type;
    const uint32_t spatial = dy->view.rank - 2;
    dy = ops_compose_cast(ops_compose_sum_type(type), dy);
    for (uint32_t i = 0; dy && i < spatial; i++) {
        const int64_t places = dy->view.shape[first + i];
        const axis_windows w = windows_of(first + i, lengths[i], places);
        const axis_windows back = windows_of(first + i, places, lengths[i]);
        dy = divide_by_lengths(&w, dy);
        dy = dy ? reduce_axis(OPS_REDUCE_SUM, &back, dy) : NULL;
    }
    return dy ? ops_compose_cast(type, dy) : NULL;
}

ops_array *ops_array_adaptive_pool_gradient(ops_pool_kind kind, const int64_t *lengths,
                                            int channels_last, ops_array *dy, ops_array *places)
{
    const char *function = "ops_array_adaptive_pool_gradient";
    ops_array *const operands[2] = {dy, places};
    ops_arrays *arrays = ops_compose_begin(function, operands, places ? 2 : 1);
    const uint32_t first = channels_last ? 1 : 2;
    ops_array *dx = NULL;
    if (!arrays) {
        return NULL;
    }
    hal_status status = check_call(function, kind, lengths, first, dy);
    if (status == HAL_OK && (places != NULL) != (kind == OPS_POOL_MAX)) {
        status = ops_invalid("%s: places: expected those of maxima, null for averages, got %s",
                             function, places ? "an array" : "null");
    }
    if (status == HAL_OK && kind == OPS_POOL_MAX) {
        const ops_convolution_form f = {.rank = dy->view.rank - 2,
                                        .channels_last = channels_last != 0};
        dy = ops_convolution_channels_second(&f, dy);
        dx = dy ? ops_pool_scatter(function, f.rank, lengths, dy, places) : NULL;
        dx = ops_convolution_channels_last(&f, dx);
    } else if (status == HAL_OK) {
        dx = gradient_of_averages(lengths, first, dy);
    }
    return ops_compose_end(arrays, dx);
}

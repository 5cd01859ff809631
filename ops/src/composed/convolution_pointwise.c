/* See convolution_pointwise.h. */
#include "convolution_pointwise.h"

#include <string.h>

bool ops_convolution_is_pointwise(const ops_convolution_form *f)
{
    return ops_convolution_volume(f, f->window) == 1;
}

/* ---- Places ---- */

/* The elements of an array along each spatial axis that belong to those of another one. */
typedef struct point_places {
    int64_t first[OPS_MAX_SPATIAL], step[OPS_MAX_SPATIAL];
} point_places;

/* Elements of the convolution's input and of its result that belong together: `count` along each
 * axis. */
typedef struct point_pairs {
    point_places input, result;
    int64_t count[OPS_MAX_SPATIAL];
    bool is_empty;
} point_pairs;

/* Element t of the result reads element t step - before of the input. */
static point_pairs pairs_of(const ops_convolution_form *f, const int64_t *inputs,
                            const int64_t *results)
{
    point_pairs p = {.is_empty = false};
    for (uint32_t i = 0; i < f->rank; i++) {
        const int64_t step = f->stride[i], before = f->before[i];
        const int64_t first = before / step + (before % step > 0);
        int64_t end = inputs[i] > 0 ? (inputs[i] - 1 + before) / step + 1 : 0;
        end = end < results[i] ? end : results[i];
        p.result.first[i] = first;
        p.result.step[i] = 1;
        p.input.first[i] = first * step - before;
        p.input.step[i] = step;
        p.count[i] = end - first;
        p.is_empty = p.is_empty || end <= first;
    }
    return p;
}

/* Those elements of x [N, channels, lengths]: a view. */
static ops_array *places_take(const ops_convolution_form *f, const point_places *p,
                              const int64_t *count, ops_array *x)
{
    for (uint32_t i = 0; x && i < f->rank; i++) {
        x = ops_compose_slice(x, i + 2, p->first[i], count[i], p->step[i]);
    }
    return x;
}

/* The lengths of a result in the caller's order, whose channels have an axis for groups and one for
 * the channels of a group. Returns the rank. */
static uint32_t split_shape(const ops_convolution_form *f, const int64_t *count,
                            int64_t shape[OPS_MAX_RANK])
{
    shape[0] = f->images;
    memcpy(shape + (f->channels_last ? 1 : 3), count, f->rank * sizeof *shape);
    shape[f->channels_last ? f->rank + 1 : 1] = f->groups;
    shape[f->channels_last ? f->rank + 2 : 2] = f->outputs;
    return f->rank + 3;
}

/* The same of the caller's result, without those axes. */
static uint32_t joined_shape(const ops_convolution_form *f, const int64_t *count,
                             int64_t shape[OPS_MAX_RANK])
{
    shape[0] = f->images;
    memcpy(shape + (f->channels_last ? 1 : 2), count, f->rank * sizeof *shape);
    shape[f->channels_last ? f->rank + 1 : 1] = f->groups * f->outputs;
    return f->rank + 2;
}

/* The caller's result, where those elements are `part`, and others what they are without x. */
static ops_array *places_put(const ops_convolution_form *f, const point_pairs *pairs,
                             const point_places *p, ops_array *part, ops_array *bias)
{
    ops_tensor view;
    if (!part || memcmp(pairs->count, f->places, f->rank * sizeof *f->places) == 0) {
        return part;
    }
    ops_array *y = ops_convolution_background(f, part, bias);
    if (!y || ops_array_describe(y, &view)) {
        return NULL;
    }
    for (uint32_t i = 0; i < f->rank; i++) {
        const int32_t axis = (int32_t)i + (f->channels_last ? 1 : 2);
        if (ops_tensor_slice(&view, axis, p->first[i], pairs->count[i], p->step[i], &view)) {
            return NULL;
        }
    }
    return ops_array_update(y, &view, part);
}

/* ---- Products ---- */

/* A product with bias, null or of a shape that is broadcast to that of y, and activation. */
static ops_array *product_end(const ops_convolution_form *f, ops_array *y, ops_array *bias)
{
    y = y && bias ? ops_add(y, bias) : y;
    return y && f->activation != OPS_IDENTITY ? ops_array_unary(f->activation, y) : y;
}

/* Of one channel per group, x [N, G, p] times w [G, O, 1], which has no sums. The axes are those of
 * split_shape. */
static ops_array *multiply_channels(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                    ops_array *bias)
{
    const hal_type type = x->view.type, sum_type = ops_compose_sum_type(type);
    const int64_t channels[OPS_MAX_RANK] = {f->groups, f->outputs, 1, 1, 1};
    const uint32_t rank = f->channels_last ? 2 : f->rank + 2;
    int32_t axes[OPS_MAX_RANK] = {0}; /* [N, p, G, 1] or [N, G, 1, p] */
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[i + (f->channels_last ? 1 : 3)] = (int32_t)i + 2;
    }
    axes[f->channels_last ? f->rank + 1 : 1] = 1;
    axes[f->channels_last ? f->rank + 2 : 2] = (int32_t)f->rank + 2;
    x = ops_array_windows(x, 1, 1, 1, 1); /* with a last axis of length 1 */
    x = x ? ops_array_permute(x, axes) : NULL;
    w = ops_array_reshape(w, rank, channels);
    bias = bias ? ops_array_reshape(bias, rank, channels) : NULL;
    if (!x || !w) {
        return NULL;
    }
    bias = bias ? ops_compose_cast(sum_type, bias) : NULL;
    ops_array *y = ops_mul(ops_compose_cast(sum_type, x), ops_compose_cast(sum_type, w));
    return ops_compose_cast(type, product_end(f, y, bias));
}

/* With channels last, for each group: w [G, O, C] times the places of x, or the transpose of that,
 * whose lines fill vectors. The axes are those of split_shape. */
static ops_array *multiply_last(const ops_convolution_form *f, const int64_t *count, ops_array *x,
                                ops_array *w, ops_array *bias)
{
    enum { MIN_COLUMNS = 16 };
    const bool by_places = f->groups > 1 && f->outputs < MIN_COLUMNS;
    const uint32_t at = by_places ? 2 : 1, channel = by_places ? 1 : f->rank + 2;
    int64_t shape[OPS_MAX_RANK] = {f->groups};
    int32_t axes[OPS_MAX_RANK] = {(int32_t)at};
    const int64_t channels[3] = {f->groups, by_places ? f->outputs : 1, by_places ? 1 : f->outputs};
    shape[at] = f->images;
    for (uint32_t i = 0; i < f->rank; i++) {
        shape[at + 1 + i] = count[i];
        axes[1 + i] = (int32_t)(at + 1 + i);
    }
    shape[channel] = f->outputs;
    axes[f->rank + 1] = 0;
    axes[f->rank + 2] = (int32_t)channel;
    x = ops_array_reshape(ops_convolution_channels_last(f, x), 3,
                          (int64_t[]){-1, f->groups, f->inputs});
    x = x ? ops_array_permute(x, by_places ? (int32_t[]){1, 2, 0} : (int32_t[]){1, 0, 2}) : NULL;
    w = by_places ? w : ops_array_transpose(w, 1, 2);
    bias = bias ? ops_array_reshape(bias, 3, channels) : NULL;
    if (!x || !w) {
        return NULL;
    }
    ops_array *y = ops_array_matmul(by_places ? w : x, by_places ? x : w, f->precision);
    y = product_end(f, y, bias);
    y = y ? ops_array_reshape(y, f->rank + 3, shape) : NULL;
    return y ? ops_array_permute(y, axes) : NULL;
}

/* x [G, a, b] for each image: [N G, a, b], or x itself where it can be broadcast. */
static ops_array *repeat_groups(const ops_convolution_form *f, ops_array *x)
{
    if (!x || f->groups == 1 || f->images == 1) {
        return x;
    }
    const int64_t *lengths = x->view.shape;
    x = ops_array_broadcast(x, 4, (int64_t[]){f->images, lengths[0], lengths[1], lengths[2]});
    return x ? ops_array_reshape(x, 3, (int64_t[]){-1, x->view.shape[2], x->view.shape[3]}) : NULL;
}

/* With channels second: for each image and group w [G, O, C] times x. The axes are those of
 * split_shape. */
static ops_array *multiply_second(const ops_convolution_form *f, const int64_t *count, ops_array *x,
                                  ops_array *w, ops_array *bias)
{
    int64_t shape[OPS_MAX_RANK];
    const uint32_t rank = split_shape(f, count, shape);
    x = ops_array_reshape(x, 3, (int64_t[]){f->images * f->groups, f->inputs, -1});
    bias = bias ? ops_array_reshape(bias, 3, (int64_t[]){f->groups, f->outputs, 1}) : NULL;
    ops_array *y = x ? ops_array_matmul(repeat_groups(f, w), x, f->precision) : NULL;
    y = product_end(f, y, repeat_groups(f, bias));
    return y ? ops_array_reshape(y, rank, shape) : NULL;
}

/* Weights of groups, [G, O, C]. */
static ops_array *weights_of(const ops_convolution_form *f, bool is_transposed, ops_array *w)
{
    const int64_t first = is_transposed ? f->inputs : f->outputs;
    const int64_t second = is_transposed ? f->outputs : f->inputs;
    w = ops_array_reshape(w, 3, (int64_t[]){f->groups, first, second});
    return w && is_transposed ? ops_array_transpose(w, 1, 2) : w;
}

ops_array *ops_convolution_pointwise(const ops_convolution_form *f, bool is_transposed,
                                     ops_array *x, ops_array *w, ops_array *bias)
{
    const int64_t *lengths = x->view.shape + 2;
    const point_pairs pairs =
        is_transposed ? pairs_of(f, f->places, lengths) : pairs_of(f, lengths, f->places);
    const point_places *from = is_transposed ? &pairs.result : &pairs.input;
    const point_places *to = is_transposed ? &pairs.input : &pairs.result;
    int64_t shape[OPS_MAX_RANK];
    if (pairs.is_empty) {
        return ops_convolution_background(f, x, bias);
    }
    x = places_take(f, from, pairs.count, x);
    w = weights_of(f, is_transposed, w);
    if (!x || !w) {
        return NULL;
    }
    ops_array *y = f->inputs == 1     ? multiply_channels(f, x, w, bias)
                   : f->channels_last ? multiply_last(f, pairs.count, x, w, bias)
                                      : multiply_second(f, pairs.count, x, w, bias);
    const uint32_t rank = joined_shape(f, pairs.count, shape);
    y = y ? ops_array_reshape(y, rank, shape) : NULL;
    return places_put(f, &pairs, to, y, bias);
}

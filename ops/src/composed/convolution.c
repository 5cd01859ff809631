/* Convolutions as matrix products of windows; of one channel per group as sums of windows. */
#include "convolution.h"
#include "tensor/context.h"

#include <stdlib.h>
#include <string.h>

/* Products of one call: 4 TiB of windows. */
enum { MAX_PIECES = 65536 };

static hal_status check_number(const char *function, const char *name, uint32_t axis, int64_t value,
                               int64_t least)
{
    return value >= least && value <= INT32_MAX
               ? HAL_OK
               : ops_invalid(
                     "%s: options.%s[%u]: expected a number from %lld to 2^31 - 1, got %lld",
                     function, name, axis, (long long)least, (long long)value);
}

hal_status ops_convolution_begin(const char *function, const ops_convolution_options *options,
                                 uint32_t rank, ops_convolution_form *form)
{
    static const ops_convolution_options defaults = {.size = sizeof defaults};
    const ops_convolution_options *o = options ? options : &defaults;
    HAL_TRY(ops_check_size(function, "options", o->size, sizeof *o));
    if (rank < 1 || rank > OPS_MAX_SPATIAL) {
        return ops_invalid("%s: x: expected 1 to %u spatial axes next to images and channels, got "
                           "%d",
                           function, OPS_MAX_SPATIAL, (int)rank);
    }
    if (o->groups < 0 || o->precision > HAL_GEMM_NORMWISE || o->activation >= OPS_UNARY_COUNT) {
        return ops_invalid("%s: options: expected groups of at least 0, a hal_gemm_precision and "
                           "an ops_unary_function, got %lld, %u and %u",
                           function, (long long)o->groups, o->precision, o->activation);
    }
    *form = (ops_convolution_form){.function = function,
                                   .rank = rank,
                                   .channels_last = o->channels_last != 0,
                                   .precision = o->precision,
                                   .activation = (ops_unary_function)o->activation,
                                   .groups = o->groups ? o->groups : 1};
    for (uint32_t i = 0; i < rank; i++) {
        HAL_TRY(check_number(function, "stride", i, o->stride[i], 0));
        HAL_TRY(check_number(function, "dilation", i, o->dilation[i], 0));
        HAL_TRY(check_number(function, "before", i, o->before[i], 0));
        HAL_TRY(check_number(function, "after", i, o->after[i], 0));
        form->stride[i] = o->stride[i] ? o->stride[i] : 1;
        form->dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
        form->before[i] = o->before[i];
        form->after[i] = o->after[i];
    }
    return HAL_OK;
}

hal_status ops_convolution_places(ops_convolution_form *f)
{
    for (uint32_t i = 0; i < f->rank; i++) {
        const int64_t reach = (f->window[i] - 1) * f->dilation[i];
        const int64_t padded = f->length[i] + f->before[i] + f->after[i];
        if (f->length[i] > INT32_MAX || f->window[i] < 1 || f->window[i] > INT32_MAX ||
            reach >= padded) {
            return ops_invalid("%s: w: expected windows within the padded input of length %lld "
                               "along spatial axis %u, got %lld elements, %lld apart",
                               f->function, (long long)padded, i, (long long)f->window[i],
                               (long long)f->dilation[i]);
        }
        f->places[i] = (padded - 1 - reach) / f->stride[i] + 1;
    }
    return HAL_OK;
}

ops_array *ops_convolution_channels_second(const ops_convolution_form *form, ops_array *x)
{
    int32_t axes[OPS_MAX_RANK] = {0, (int32_t)form->rank + 1};
    for (uint32_t i = 0; i < form->rank; i++) {
        axes[i + 2] = (int32_t)i + 1;
    }
    return form->channels_last ? ops_array_permute(x, axes) : x;
}

ops_array *ops_convolution_channels_last(const ops_convolution_form *form, ops_array *x)
{
    int32_t axes[OPS_MAX_RANK] = {0};
    for (uint32_t i = 0; i < form->rank; i++) {
        axes[i + 1] = (int32_t)i + 2;
    }
    axes[form->rank + 1] = 1;
    return x && form->channels_last ? ops_array_permute(x, axes) : x;
}

/* Whether an array is in its memory without gaps in the order of its axes. */
static bool is_row_major(const ops_array *x)
{
    int64_t stride = 1;
    bool fits = true;
    for (uint32_t i = x->view.rank; i-- > 0;) {
        fits &= x->view.shape[i] == 1 || x->view.stride[i] == stride;
        stride *= x->view.shape[i];
    }
    return fits;
}

ops_array *ops_convolution_row_major(ops_array *x)
{
    return x && !is_row_major(x) ? ops_array_copy(x) : x;
}

/* Along an axis: elements of x before those that are placed, how many are, and the first place. */
typedef struct placed_axis {
    int64_t skipped, count, at;
} placed_axis;

static placed_axis place_axis(int64_t start, int64_t step, int64_t length, int64_t elements)
{
    placed_axis p = {.skipped = start < 0 ? (step - 1 - start) / step : 0};
    p.at = start + p.skipped * step;
    const int64_t room = length > p.at ? (length - p.at - 1) / step + 1 : 0;
    p.count = room < elements - p.skipped ? room : elements - p.skipped;
    return p;
}

/* x, whose axes are in the caller's order, in zeros: element i of axis a at at[a] + i * step[a]. */
static ops_array *spread_in_zeros(const ops_convolution_form *f, const int64_t *at,
                                  const int64_t *step, const int64_t *shape, ops_array *x)
{
    ops_array *zeros = ops_array_full(x->owner->context, x->view.type, x->view.rank, shape, 0);
    ops_tensor target;
    if (!zeros || ops_array_describe(zeros, &target)) {
        return NULL;
    }
    const uint32_t channel = f->channels_last ? f->rank + 1 : 1;
    for (uint32_t i = 0, axis = f->channels_last ? 1 : 2; i < f->rank; i++, axis++) {
        if (ops_tensor_slice(&target, (int32_t)axis, at[axis], x->view.shape[axis], step[i],
                             &target)) {
            return NULL;
        }
    }
    if (ops_tensor_slice(&target, (int32_t)channel, 0, x->view.shape[channel], 1, &target)) {
        return NULL;
    }
    return ops_array_update(zeros, &target, x);
}

/* Whether a copy of x in the caller's order reads across x's memory, which pays after zeros. */
static bool is_read_across(const ops_array *x)
{
    const int64_t least = x->owner->context->tuning->convolution.zeros_first;
    const uint32_t last = x->view.rank - 1;
    bool has_lines = false;
    for (uint32_t i = 0; i < last; i++) {
        has_lines = has_lines || (x->view.stride[i] == 1 && x->view.shape[i] > 1);
    }
    return least > 0 && has_lines && x->view.shape[last] > 1 && x->view.stride[last] > 1 &&
           ops_tensor_get_element_count(&x->view) >= least;
}

ops_array *ops_convolution_place(const ops_convolution_form *f, const int64_t *start,
                                 const int64_t *step, const int64_t *lengths, int64_t channels,
                                 ops_array *x)
{
    int64_t shape[OPS_MAX_RANK], at[OPS_MAX_RANK] = {0};
    const uint32_t first = f->channels_last ? 1 : 2;
    bool is_whole = x && x->view.shape[1] == channels, is_empty = false, is_spread = false;
    for (uint32_t i = 0; x && i < f->rank; i++) {
        const int64_t elements = x->view.shape[i + 2];
        const placed_axis p = place_axis(start[i], step[i], lengths[i], elements);
        is_whole = is_whole && p.at == 0 && p.count == lengths[i] && step[i] == 1;
        is_empty = is_empty || p.count <= 0;
        is_spread = is_spread || step[i] > 1;
        at[i + first] = p.at;
        x = p.count > 0 ? ops_compose_slice(x, i + 2, p.skipped, p.count, 1) : x;
    }
    if (!x || is_whole) {
        return x;
    }
    x = ops_convolution_channels_last(f, x);
    const uint32_t rank = x ? ops_compose_shape(x, shape) : 0;
    memcpy(shape + first, lengths, f->rank * sizeof *shape);
    shape[f->channels_last ? f->rank + 1 : 1] = channels;
    if (x && is_empty) { /* a constant has no strides, and a product reads windows by them */
        x = ops_array_full(x->owner->context, x->view.type, rank, shape, 0);
        x = x ? ops_array_copy(x) : NULL;
    } else if (x) {
        is_spread = is_spread || is_read_across(x);
        x = is_spread ? spread_in_zeros(f, at, step, shape, x) : ops_compose_pad(at, shape, 0, x);
    }
    return x ? ops_convolution_channels_second(f, x) : NULL;
}

ops_array *ops_convolution_pad(const ops_convolution_form *f, ops_array *x)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    int64_t lengths[OPS_MAX_SPATIAL] = {0};
    for (uint32_t i = 0; i < f->rank; i++) {
        lengths[i] = x->view.shape[i + 2] + f->before[i] + f->after[i];
    }
    return ops_convolution_place(f, f->before, step, lengths, x->view.shape[1], x);
}

ops_array *ops_convolution_windows(const ops_convolution_form *form, ops_array *x)
{
    for (uint32_t i = 0; x && i < form->rank; i++) {
        x = ops_array_windows(x, (int32_t)i + 2, form->window[i], form->stride[i],
                              form->dilation[i]);
    }
    return x;
}

int64_t ops_convolution_volume(const ops_convolution_form *form, const int64_t *lengths)
{
    int64_t volume = 1;
    for (uint32_t i = 0; i < form->rank; i++) {
        volume *= lengths[i];
    }
    return volume;
}

ops_array *ops_convolution_background(const ops_convolution_form *f, const ops_array *x,
                                      ops_array *bias)
{
    int64_t shape[OPS_MAX_RANK] = {f->images}, channels[OPS_MAX_RANK];
    const uint32_t rank = f->rank + 2, channel = f->channels_last ? f->rank + 1 : 1;
    memcpy(shape + (f->channels_last ? 1 : 2), f->places, f->rank * sizeof *shape);
    shape[channel] = f->groups * f->outputs;
    ops_array *y = ops_array_full(x->owner->context, x->view.type, rank, shape, 0);
    if (!y || (!bias && f->activation == OPS_IDENTITY)) {
        return y;
    }
    for (uint32_t i = 0; i < rank; i++) {
        channels[i] = i == channel ? shape[channel] : 1;
    }
    bias = bias ? ops_array_reshape(bias, rank, channels) : NULL;
    y = bias ? ops_array_broadcast(bias, rank, shape) : y;
    y = y && f->activation != OPS_IDENTITY ? ops_array_unary(f->activation, y) : y;
    return y ? ops_array_copy(y) : NULL;
}

/* Multiplies weights [O, C k] with the windows [N, C k, p]: [N, O, p]. */
static ops_array *multiply_first(const ops_convolution_form *f, ops_array *windows, ops_array *w,
                                 int64_t images, int64_t depth)
{
    int32_t axes[OPS_MAX_RANK] = {0, 1};
    const uint32_t r = f->rank;
    for (uint32_t i = 0; i < r; i++) {
        axes[2 + i] = (int32_t)(2 + r + i);
        axes[2 + r + i] = (int32_t)(2 + i);
    }
    ops_array *matrix = ops_array_permute(windows, axes);
    matrix = matrix ? ops_array_reshape(matrix, 3, (int64_t[]){images, depth, -1}) : NULL;
    return ops_array_matmul(w, matrix, f->precision);
}

/* Multiplies the windows [N p, k C], whose channels are contiguous in x, with weights [k C, O]. */
static ops_array *multiply_last(const ops_convolution_form *f, ops_array *windows, ops_array *w,
                                int64_t images, int64_t depth)
{
    int32_t axes[OPS_MAX_RANK] = {0}, order[OPS_MAX_RANK] = {0};
    const uint32_t r = f->rank;
    for (uint32_t i = 0; i < 2 * r; i++) {
        axes[1 + i] = (int32_t)(2 + i);
    }
    for (uint32_t i = 0; i < r; i++) {
        order[1 + i] = (int32_t)(2 + i);
    }
    axes[2 * r + 1] = order[r + 1] = 1;
    ops_array *matrix = ops_array_permute(windows, axes);
    matrix = matrix ? ops_array_reshape(matrix, 2, (int64_t[]){-1, depth}) : NULL;
    w = ops_array_permute(w, order);
    w = w ? ops_array_reshape(w, 2, (int64_t[]){-1, depth}) : NULL;
    w = w ? ops_array_transpose(w, 0, 1) : NULL;
    ops_array *y = ops_array_matmul(matrix, w, f->precision);
    y = y ? ops_array_reshape(y, 3, (int64_t[]){images, -1, y->view.shape[1]}) : NULL;
    return y ? ops_array_transpose(y, 1, 2) : NULL;
}

/* One group, of some images and places: [N, O, p]. */
static ops_array *compute_group(const ops_convolution_form *f, ops_array *x, ops_array *w)
{
    ops_array *windows = ops_convolution_windows(f, x);
    if (!windows || !w) {
        return NULL;
    }
    const int64_t images = windows->view.shape[0];
    const int64_t depth = f->inputs * ops_convolution_volume(f, f->window);
    if (f->channels_last) {
        return multiply_last(f, windows, w, images, depth);
    }
    w = ops_array_reshape(w, 2, (int64_t[]){f->outputs, depth});
    return multiply_first(f, windows, w, images, depth);
}

/* All groups of one image, by one product with a batch: [1, groups O, p]. */
static ops_array *compute_image(const ops_convolution_form *f, ops_array *x, ops_array *w)
{
    ops_array *windows = ops_convolution_windows(f, x);
    const int64_t depth = f->inputs * ops_convolution_volume(f, f->window);
    w = ops_array_reshape(w, 3, (int64_t[]){f->groups, f->outputs, depth});
    int32_t axes[OPS_MAX_RANK] = {0, 1};
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[2 + i] = (int32_t)(2 + f->rank + i);
        axes[2 + f->rank + i] = (int32_t)(2 + i);
    }
    ops_array *matrix = windows ? ops_array_permute(windows, axes) : NULL;
    matrix = matrix ? ops_array_reshape(matrix, 3, (int64_t[]){f->groups, depth, -1}) : NULL;
    ops_array *y = ops_array_matmul(w, matrix, f->precision);
    return y ? ops_array_reshape(y, 3, (int64_t[]){1, f->groups * f->outputs, -1}) : NULL;
}

/* The parts [first, first + count) of a group's channels. */
static ops_array *group_of(ops_array *x, uint32_t axis, int64_t group, int64_t channels)
{
    return x ? ops_compose_slice(x, axis, group * channels, channels, 1) : NULL;
}

/* Some images and places. Where there are several groups, a product for each group, or for each
 * image, whichever are fewer. */
static ops_array *compute_piece(const ops_convolution_form *f, ops_array *x, ops_array *w)
{
    const int64_t images = x->view.shape[0];
    if (f->groups == 1) {
        return compute_group(f, x, w);
    }
    const bool by_group = f->groups <= images;
    const int64_t count = by_group ? f->groups : images;
    ops_array **parts = calloc((size_t)count, sizeof(ops_array *));
    bool is_made = parts != NULL;
    for (int64_t i = 0; i < count && is_made; i++) {
        parts[i] =
            by_group ? compute_group(f, group_of(x, 1, i, f->inputs), group_of(w, 0, i, f->outputs))
                     : compute_image(f, ops_compose_slice(x, 0, i, 1, 1), w);
        is_made = parts[i] != NULL;
    }
    ops_array *y = is_made ? ops_array_concatenate(by_group ? 1 : 0, parts, (uint32_t)count) : NULL;
    free(parts);
    return y;
}

/* Pieces of at most `bytes`: images that fit into the limit together, and of one image lines along
 * the first spatial axis. False for more than MAX_PIECES. */
static bool pieces_fit(const ops_convolution_form *f, uint64_t line, uint64_t bytes,
                       int64_t *images, int64_t *lines)
{
    const uint64_t most = line < bytes ? bytes / line : 1;
    *lines = most < (uint64_t)f->places[0] ? (int64_t)most : f->places[0];
    *images = (int64_t)(bytes / line / (uint64_t)f->places[0]);
    *images = *images < 1 ? 1 : *images > f->images ? f->images : *images;
    const int64_t across = (f->images - 1) / *images + 1, down = (f->places[0] - 1) / *lines + 1;
    return across <= MAX_PIECES && down <= MAX_PIECES / across;
}

hal_status ops_convolution_pieces(const ops_convolution_form *f, const ops_array *x,
                                  int64_t *images, int64_t *lines)
{
    const ops_convolution_tuning *tuning = &x->owner->context->tuning->convolution;
    uint64_t line = (uint64_t)f->groups * (uint64_t)f->inputs * hal_type_size(x->view.type);
    line = ops_compose_bytes(line, f->window, f->rank);
    line = ops_compose_bytes(line, f->places + 1, f->rank - 1);
    return pieces_fit(f, line, tuning->piece_bytes, images, lines) ||
                   pieces_fit(f, line, OPS_CONVOLUTION_BYTES, images, lines)
               ? HAL_OK
               : ops_invalid("%s: x: expected a convolution of at most %d pieces of %llu bytes of "
                             "windows, got %lld images of pieces of %lld lines; cut x",
                             f->function, (int)MAX_PIECES,
                             (unsigned long long)OPS_CONVOLUTION_BYTES, (long long)f->images,
                             (long long)*lines);
}

/* The piece of `images` from `first` on and `lines` from `line` on: [N, groups O, places]. */
static ops_array *compute_at(const ops_convolution_form *form, ops_array *x, ops_array *w,
                             ops_array *bias, const int64_t start[2], const int64_t count[2])
{
    ops_convolution_form f = *form;
    int64_t shape[OPS_MAX_RANK] = {count[0], f.groups * f.outputs, count[1], 1, 1};
    f.places[0] = count[1];
    const int64_t reach = (count[1] - 1) * f.stride[0] + (f.window[0] - 1) * f.dilation[0] + 1;
    x = ops_compose_slice(x, 0, start[0], count[0], 1);
    x = ops_compose_slice(x, 2, start[1] * f.stride[0], reach, 1);
    ops_array *y = x ? compute_piece(&f, x, w) : NULL;
    if (y && bias) {
        bias = ops_array_reshape(bias, 2, (int64_t[]){f.groups * f.outputs, 1});
        y = ops_add(y, bias);
    }
    if (y && f.activation != OPS_IDENTITY) {
        y = ops_array_unary(f.activation, y);
    }
    memcpy(shape + 3, f.places + 1, (f.rank - 1) * sizeof *shape);
    return y ? ops_array_reshape(y, f.rank + 2, shape) : NULL;
}

bool ops_convolution_is_depthwise(const ops_convolution_form *f)
{
    return f->inputs == 1 && f->groups > 1 &&
           ops_convolution_volume(f, f->window) <= OPS_DEPTHWISE_ELEMENTS;
}

/* Weights [O, 1, window] as [O, window], whose neighbours in memory are channels where those of x
 * are. */
static ops_array *depthwise_weights(const ops_convolution_form *f, ops_array *w)
{
    int64_t shape[OPS_MAX_RANK] = {f->groups * f->outputs};
    int32_t axes[OPS_MAX_RANK], back[OPS_MAX_RANK];
    memcpy(shape + 1, f->window, f->rank * sizeof *shape);
    w = ops_array_reshape(w, f->rank + 1, shape);
    if (!w || !f->channels_last) {
        return w;
    }
    for (uint32_t i = 0; i <= f->rank; i++) {
        axes[i] = i < f->rank ? (int32_t)i + 1 : 0;
        back[i] = i > 0 ? (int32_t)i - 1 : (int32_t)f->rank;
    }
    w = ops_array_permute(w, axes);
    w = w ? ops_array_copy(w) : NULL;
    return w ? ops_array_permute(w, back) : NULL;
}

/* Of x with padding, or without where the device tests coordinates. */
static ops_array *depthwise_sum(const ops_convolution_form *f, bool is_padded, ops_array *x,
                                ops_array *w, ops_array *bias)
{
    ops_depthwise_options o = {.size = sizeof o, .rank = f->rank, .activation = f->activation};
    memcpy(o.stride, f->stride, sizeof o.stride);
    memcpy(o.dilation, f->dilation, sizeof o.dilation);
    if (!is_padded) {
        memcpy(o.before, f->before, sizeof o.before);
    }
    w = depthwise_weights(f, w);
    return x && w ? ops_compose_depthwise(&o, f->channels_last, x, w, bias, f->places) : NULL;
}

ops_array *ops_convolution_depthwise(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                     ops_array *bias)
{
    const ops_convolution_tuning *tuning = &x->owner->context->tuning->convolution;
    const uint32_t last = f->rank - 1;
    if (!tuning->pads_by_copies) {
        return depthwise_sum(f, false, x, w, bias);
    }
    if (f->channels_last || (f->stride[last] == 1 && f->places[last] >= tuning->min_line)) {
        return depthwise_sum(f, true, ops_convolution_pad(f, x), w, bias);
    }
    /* With channels last in between, whose neighbours are read together whatever the stride. */
    ops_convolution_form inner = *f;
    inner.channels_last = true;
    ops_array *padded = ops_convolution_pad(&inner, x);
    if (padded == x) {
        padded = ops_array_copy(ops_convolution_channels_last(&inner, x));
        padded = padded ? ops_convolution_channels_second(&inner, padded) : NULL;
    }
    ops_array *y = depthwise_sum(&inner, true, padded, w, bias);
    y = y ? ops_convolution_channels_second(&inner, y) : NULL;
    return y ? ops_array_copy(y) : NULL;
}

ops_array *ops_convolution_compute(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                   ops_array *bias)
{
    int64_t images, lines, shape[OPS_MAX_RANK] = {f->images, f->groups * f->outputs};
    memcpy(shape + 2, f->places, f->rank * sizeof *shape);
    if (f->images == 0 || f->groups * f->outputs == 0) {
        return ops_array_full(x->owner->context, x->view.type, f->rank + 2, shape, 0);
    }
    uint64_t bytes;
    if (ops_check_shape(f->function, x->view.type, f->rank + 2, shape, &bytes) ||
        ops_convolution_pieces(f, x, &images, &lines)) {
        return NULL;
    }
    const int64_t across = (f->images + images - 1) / images;
    const int64_t down = (f->places[0] + lines - 1) / lines;
    ops_array **parts = calloc((size_t)(across + down), sizeof(ops_array *));
    bool is_made = parts != NULL;
    for (int64_t i = 0; i < across && is_made; i++) {
        const int64_t first = i * images, rest = f->images - first;
        for (int64_t j = 0; j < down && is_made; j++) {
            const int64_t line = j * lines, left = f->places[0] - line;
            const int64_t start[2] = {first, line};
            const int64_t count[2] = {images < rest ? images : rest, lines < left ? lines : left};
            parts[across + j] = compute_at(f, x, w, bias, start, count);
            is_made = parts[across + j] != NULL;
        }
        if (is_made) {
            parts[i] =
                down > 1 ? ops_array_concatenate(2, parts + across, (uint32_t)down) : parts[across];
            is_made = parts[i] != NULL;
        }
    }
    ops_array *y = !is_made     ? NULL
                   : across > 1 ? ops_array_concatenate(0, parts, (uint32_t)across)
                                : parts[0];
    free(parts);
    return y;
}

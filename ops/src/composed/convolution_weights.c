/* See convolution_weights.h. */
#include "convolution_weights.h"
#include "kernels/depthwise_weights.h"
#include "tensor/context.h"
#include "tensor/loop_limit.h"

#include <stdlib.h>
#include <string.h>

/* Places of a piece, over which a product sums, at least. */
enum { MIN_SUM = 1024 };

/* ---- By elements of the window ---- */

/* With one channel and one result per group a weight's gradient is a sum of products of x and dy,
 * which needs no windows. It pays where neighbours in memory, channels or places, fill vectors. */
static bool is_sum(const ops_convolution_form *f, const ops_array *x)
{
    const int64_t least = x->owner->context->tuning->convolution.min_line;
    const uint32_t last = f->rank - 1;
    return f->inputs == 1 && f->outputs == 1 &&
           ops_convolution_volume(f, f->window) <= OPS_DEPTHWISE_ELEMENTS &&
           (f->channels_last ? f->groups >= least
                             : f->stride[last] == 1 && f->places[last] >= least);
}

/* What an element of the window reads of x, which has its padding: a view [N, channels, places]. */
static ops_array *element_take(const ops_convolution_form *f, const int64_t *element, ops_array *x)
{
    for (uint32_t i = 0; x && i < f->rank; i++) {
        x = ops_compose_slice(x, i + 2, element[i] * f->dilation[i], f->places[i], f->stride[i]);
    }
    return x;
}

/* The sum of x dy [N, G, p], with channels second for each image: [G, 1] or [N, G, 1]. */
static ops_array *element_sum(const ops_convolution_form *f, ops_array *x, ops_array *dy)
{
    x = ops_convolution_channels_last(f, x);
    ops_array *sum = x ? ops_mul(x, dy) : NULL;
    const int64_t last[3] = {1, -1, f->groups}, second[3] = {f->images, f->groups, -1};
    sum = sum ? ops_array_reshape(sum, 3, f->channels_last ? last : second) : NULL;
    sum = sum ? ops_array_reduce(OPS_REDUCE_SUM, f->channels_last ? 1 : 2, 0, sum) : NULL;
    const int64_t images = f->channels_last ? 1 : f->images;
    return sum ? ops_array_reshape(sum, 3, (int64_t[]){images, f->groups, 1}) : NULL;
}

/* x [N, G C, p] with channels last as [N p, G, C]. */
static ops_array *rows_of(const ops_convolution_form *f, int64_t channels, ops_array *x)
{
    x = ops_convolution_channels_last(f, x);
    return x ? ops_array_reshape(x, 3, (int64_t[]){-1, f->groups, channels}) : NULL;
}

/* With channels last: for each group the transpose of dy [N p, G, O] times the rows of x,
 * [1, G O C, 1]. */
static ops_array *element_product(const ops_convolution_form *f, ops_array *x, ops_array *dy)
{
    x = rows_of(f, f->inputs, x);
    x = x ? ops_array_permute(x, (int32_t[]){1, 0, 2}) : NULL;
    dy = ops_array_permute(dy, (int32_t[]){1, 2, 0});
    ops_array *product = x && dy ? ops_array_matmul(dy, x, f->precision) : NULL;
    return product ? ops_array_reshape(product, 3, (int64_t[]){1, -1, 1}) : NULL;
}

/* All elements: [groups O C, window]. */
static ops_array *weights_by_elements(const ops_convolution_form *f, ops_array *x, ops_array *dy)
{
    const int64_t count = ops_convolution_volume(f, f->window);
    const hal_type type = x->view.type;
    const bool sums = f->inputs == 1 && f->outputs == 1;
    int64_t element[OPS_MAX_SPATIAL] = {0};
    if (sums) {
        x = ops_compose_cast(ops_compose_sum_type(type), x);
        dy = ops_convolution_channels_last(f, ops_compose_cast(ops_compose_sum_type(type), dy));
    } else {
        dy = rows_of(f, f->outputs, dy);
    }
    ops_array **parts = calloc((size_t)count, sizeof(ops_array *));
    bool is_made = parts && x && dy;
    for (int64_t k = 0; k < count && is_made; k++) {
        ops_array *part = element_take(f, element, x);
        parts[k] = !part ? NULL : sums ? element_sum(f, part, dy) : element_product(f, part, dy);
        is_made = parts[k] != NULL;
        for (uint32_t i = f->rank; i-- > 0 && ++element[i] == f->window[i];) {
            element[i] = 0;
        }
    }
    ops_array *all = is_made ? ops_array_concatenate(2, parts, (uint32_t)count) : NULL;
    free(parts);
    if (all && all->view.shape[0] > 1) { /* sums of images */
        all = ops_array_reduce(OPS_REDUCE_SUM, 0, 0, all);
    }
    return ops_compose_cast(type, all);
}

/* ---- By one kernel ---- */

/* Results of a group: more are products, whose least tiles these would leave mostly idle. With one
 * channel more are products too, which read x once for all of them. */
enum { MOST_RESULTS = 8, MOST_MULTIPLE = 4 };
/* Partial sums are stored: where they are more, at most 8 times the elements of x and dy. */
enum { MOST_SUMS = 4 << 20 };

/* Work-items of a compute unit that hide the time of loads: each has several at a time. Lines of a
 * work-item, at least: it stores sums for each element of the window. */
enum { UNIT_ITEMS = 512, LEAST_LINES = 4 };

/* On processors, where copies of windows of longer lines take less time. */
enum { LONG_LINE = 64 };

/* Whether such a kernel takes less time than products. A window of one element shares no loads.
 * Processors have vectors of places, which copies of windows would gather as well. */
static bool has_few_results(const ops_convolution_form *f, const ops_array *x)
{
    const ops_context *context = x->owner->context;
    const int64_t volume = ops_convolution_volume(f, f->window);
    const bool is_auto = context->convolution == OPS_CONVOLUTION_AUTO;
    bool is_chosen = f->inputs == 1 ? f->outputs <= MOST_MULTIPLE
                                    : f->outputs <= MOST_RESULTS && volume > 1 && is_auto;
    if (!context->tuning->convolution.pools_at_once) {
        is_chosen = f->outputs == 1 && volume > 1 && is_auto && !f->channels_last &&
                    f->stride[f->rank - 1] > 1 && f->places[f->rank - 1] <= LONG_LINE &&
                    context->info->kind == HAL_DEVICE_CPU && context->info->item_vector_bytes == 0;
    }
    return is_chosen && volume <= OPS_DEPTHWISE_ELEMENTS;
}

/* Whether all numbers of a form are such as the kernel counts with. */
static bool form_fits(const ops_convolution_form *f)
{
    const int64_t most = INT32_MAX / 4;
    bool fits = f->images > 0 && f->images <= most;
    for (uint32_t i = 0; i < f->rank && fits; i++) {
        fits = f->length[i] <= most && f->before[i] <= most && f->stride[i] <= most &&
               f->dilation[i] <= most / OPS_DEPTHWISE_ELEMENTS && f->places[i] > 0 &&
               (f->places[i] - 1) * f->stride[i] <= most;
    }
    return fits;
}

/* Whether one kernel sums the products of x and dy, in parts; sets its form. */
static bool form_make(const ops_convolution_form *f, const ops_array *x,
                      ops_depthwise_weights_form *form)
{
    const ops_context *context = x->owner->context;
    const uint32_t last = f->rank - 1;
    const int64_t volume = ops_convolution_volume(f, f->window);
    const int64_t lines = last > 0 ? f->places[0] : 1;
    const int64_t channels = f->groups * f->outputs * f->inputs;
    const int64_t items = channels * f->places[last];
    const int64_t busy = (int64_t)context->info->compute_units * UNIT_ITEMS;
    memset(form, 0, sizeof *form); /* a part of the key */
    if (!has_few_results(f, x) || !form_fits(f) || items <= 0 || items >= busy * busy) {
        return false;
    }
    /* Parts of images, and where these are too few of lines. */
    const int64_t others = ops_convolution_volume(f, f->places) / f->places[last] / lines;
    const int64_t parts = (busy + items - 1) / items;
    const int64_t by_images = parts < f->images ? parts : f->images;
    const int64_t down = (parts + by_images - 1) / by_images, most = lines / LEAST_LINES;
    const int64_t by_lines = down < most ? down : most > 1 ? most : 1;
    const int64_t elements = f->inputs * ops_convolution_volume(f, f->length) +
                             f->outputs * ops_convolution_volume(f, f->places);
    const int64_t sums = items * volume * by_images * by_lines;
    if (sums > MOST_SUMS && sums / 8 > f->images * f->groups * elements) {
        return false;
    }
    form->rank = f->rank;
    form->images = (uint32_t)((f->images + by_images - 1) / by_images);
    form->lines = (uint32_t)((lines + by_lines - 1) / by_lines);
    form->groups = (uint32_t)f->groups;
    memcpy(form->window, f->window, f->rank * sizeof *form->window);
    memcpy(form->stride, f->stride, f->rank * sizeof *form->stride);
    memcpy(form->dilation, f->dilation, f->rank * sizeof *form->dilation);
    memcpy(form->before, f->before, f->rank * sizeof *form->before);
    /* Each loop's iterations and those of the loops around it. */
    return 3 * form->images * form->lines * (double)others < (double)ops_loop_limit(context, 0, 0);
}

/* [groups O, C, window] of x without padding. */
static ops_array *weights_at_once(const ops_convolution_form *f,
                                  const ops_depthwise_weights_form *form, ops_array *x,
                                  ops_array *dy)
{
    const int64_t volume = ops_convolution_volume(f, f->window);
    const int64_t channels = f->groups * f->outputs * f->inputs;
    const int64_t lines = f->rank > 1 ? f->places[0] : 1, places = f->places[f->rank - 1];
    const int64_t image_parts = (f->images + form->images - 1) / form->images;
    const int64_t line_parts = (lines + form->lines - 1) / form->lines;
    const int64_t parts = image_parts * line_parts * places;
    const int64_t last[5] = {image_parts, line_parts, places, volume, channels};
    const int64_t second[5] = {channels, volume, image_parts, line_parts, places};
    const hal_type type = x->view.type;
    ops_array *const operands[2] = {x, dy};
    ops_result result;
    ops_result_like(x, &result);
    result.type = ops_compose_sum_type(type);
    result.rank = 5;
    result.shape = f->channels_last ? last : second;
    result.form = form;
    result.form_bytes = sizeof *form;
    ops_array *sums = ops_defer("ops_array_convolution_weights", OPS_OPERATION_DEPTHWISE_WEIGHTS,
                                f->channels_last, operands, 2, &result);
    const int64_t rows[2][2] = {{channels * volume, parts}, {parts, volume * channels}};
    sums = sums ? ops_array_reshape(sums, 2, rows[f->channels_last]) : NULL;
    sums = sums ? ops_array_reduce(OPS_REDUCE_SUM, f->channels_last ? 0 : 1, 0, sums) : NULL;
    if (sums && f->channels_last) {
        sums = ops_array_reshape(sums, 2, (int64_t[]){volume, channels});
        sums = sums ? ops_array_transpose(sums, 0, 1) : NULL;
    }
    return ops_compose_cast(type, sums);
}

/* ---- By copied windows ---- */

/* With channels last and one group: the transpose of dy [N p, O] times the windows [N p, k C]. */
static ops_array *product_last(const ops_convolution_form *f, ops_array *windows, ops_array *dy)
{
    const int64_t volume = ops_convolution_volume(f, f->window);
    int32_t axes[OPS_MAX_RANK] = {0};
    for (uint32_t i = 0; i < 2 * f->rank; i++) {
        axes[1 + i] = (int32_t)(2 + i);
    }
    axes[2 * f->rank + 1] = 1;
    windows = ops_array_permute(windows, axes);
    windows = windows ? ops_array_reshape(windows, 2, (int64_t[]){-1, volume * f->inputs}) : NULL;
    dy = ops_convolution_channels_last(f, dy);
    dy = dy ? ops_array_reshape(dy, 2, (int64_t[]){-1, f->outputs}) : NULL;
    dy = dy ? ops_array_transpose(dy, 0, 1) : NULL;
    ops_array *sum = windows && dy ? ops_array_matmul(dy, windows, f->precision) : NULL;
    sum = sum ? ops_array_reshape(sum, 3, (int64_t[]){f->outputs, volume, f->inputs}) : NULL;
    return sum ? ops_array_transpose(sum, 1, 2) : NULL;
}

/* One product of all images, one after the other, or with windows of one element, which need no
 * copy, a product for each image, whose results are added, if that moves fewer elements than copies
 * of x and dy. */
static bool joins_images(const ops_convolution_form *f, hal_type type)
{
    const double places = (double)ops_convolution_volume(f, f->places);
    return f->images > 1 &&
           (hal_type_is_narrow_float(type) || ops_convolution_volume(f, f->window) > 1 ||
            (double)f->inputs * (double)f->outputs > (double)(f->inputs + f->outputs) * places);
}

static ops_array *product_second(const ops_convolution_form *f, ops_array *windows, ops_array *dy)
{
    const int64_t volume = ops_convolution_volume(f, f->window), columns = f->inputs * volume;
    const bool is_joined = joins_images(f, dy->view.type);
    int32_t axes[OPS_MAX_RANK];
    uint32_t next = 0;
    if (!is_joined) {
        axes[next++] = 0;
    }
    axes[next++] = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[next++] = (int32_t)(2 + f->rank + i);
    }
    if (is_joined) {
        axes[next++] = 0;
    }
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[next++] = (int32_t)(2 + i);
    }
    const int64_t products = is_joined ? f->groups : f->images * f->groups;
    windows = ops_array_permute(windows, axes);
    windows = windows ? ops_array_reshape(windows, 3, (int64_t[]){products, columns, -1}) : NULL;
    windows = windows ? ops_array_transpose(windows, 1, 2) : NULL;
    dy = is_joined ? ops_array_transpose(dy, 0, 1) : dy;
    dy = dy ? ops_array_reshape(dy, 3, (int64_t[]){products, f->outputs, -1}) : NULL;
    ops_array *sum = windows && dy ? ops_array_matmul(dy, windows, f->precision) : NULL;
    if (sum && !is_joined && f->images > 1) {
        sum = ops_array_reshape(sum, 2, (int64_t[]){f->images, -1});
        sum = sum ? ops_array_reduce(OPS_REDUCE_SUM, 0, 0, sum) : NULL;
    }
    return sum ? ops_array_reshape(sum, 3, (int64_t[]){-1, f->inputs, volume}) : NULL;
}

static ops_array *piece_product(const ops_convolution_form *form, ops_array *x, ops_array *dy,
                                const int64_t start[2], const int64_t count[2])
{
    ops_convolution_form f = *form;
    f.images = count[0];
    f.places[0] = count[1];
    const int64_t reach = (count[1] - 1) * f.stride[0] + (f.window[0] - 1) * f.dilation[0] + 1;
    x = ops_compose_slice(x, 0, start[0], count[0], 1);
    x = ops_compose_slice(x, 2, start[1] * f.stride[0], reach, 1);
    dy = ops_compose_slice(dy, 0, start[0], count[0], 1);
    dy = ops_compose_slice(dy, 2, start[1], count[1], 1);
    ops_array *windows = x ? ops_convolution_windows(&f, x) : NULL;
    /* Either the windows are copied in the order of x, or the results in that of weights. */
    const bool is_last = f.channels_last && f.groups == 1 &&
                         f.images * ops_convolution_volume(&f, f.places) > f.outputs;
    return !windows || !dy ? NULL
           : is_last       ? product_last(&f, windows, dy)
                           : product_second(&f, windows, dy);
}

/* Of a piece of images and lines: [groups O, C, k]. In a scope of its own, which does not hold its
 * windows until those of all pieces are multiplied. */
static ops_array *weights_at(const ops_convolution_form *form, ops_array *x, ops_array *dy,
                             const int64_t start[2], const int64_t count[2])
{
    ops_arrays *arrays = ops_compose_nest(x);
    return arrays ? ops_compose_end(arrays, piece_product(form, x, dy, start, count)) : NULL;
}

/* Adds a part to the sum so far, null before the first one; both are released. */
static ops_array *sum_with(ops_array *sum, ops_array *part)
{
    if (!sum || !part) {
        return part;
    }
    ops_array *added = ops_add(sum, part);
    ops_array_release(sum);
    ops_array_release(part);
    return added;
}

/* Pieces, whose results are added. */
static ops_array *weights_by_windows(const ops_convolution_form *f, ops_array *x, ops_array *dy)
{
    const hal_type type = x->view.type;
    int64_t images = f->images, lines = f->places[0];
    if (ops_convolution_volume(f, f->window) > 1 && ops_convolution_pieces(f, x, &images, &lines)) {
        return NULL;
    }
    /* Short sums read and write the results often. */
    const int64_t across = ops_convolution_volume(f, f->places) / f->places[0];
    lines = lines * across < MIN_SUM ? MIN_SUM / across + 1 : lines;
    lines = lines < f->places[0] ? lines : f->places[0];
    if (images < f->images || lines < f->places[0]) {
        x = ops_compose_cast(ops_compose_sum_type(type), x);
        dy = ops_compose_cast(ops_compose_sum_type(type), dy);
    }
    ops_array *sum = NULL;
    bool is_made = x && dy;
    for (int64_t first = 0; is_made && first < f->images; first += images) {
        for (int64_t line = 0; is_made && line < f->places[0]; line += lines) {
            const int64_t rest = f->images - first, left = f->places[0] - line;
            const int64_t start[2] = {first, line};
            const int64_t count[2] = {images < rest ? images : rest, lines < left ? lines : left};
            sum = sum_with(sum, weights_at(f, x, dy, start, count));
            is_made = sum != NULL;
        }
    }
    return ops_compose_cast(type, sum);
}

/* The convolution that the kernel reads: processors have x with its padding, as tests of
 * coordinates cost more than a copy. */
static ops_convolution_form form_at_once(const ops_convolution_form *f, const ops_array *x)
{
    ops_convolution_form read = *f;
    for (uint32_t i = 0; i < f->rank && x->owner->context->tuning->convolution.pads_by_copies;
         i++) {
        read.length[i] += f->before[i] + f->after[i];
        read.before[i] = read.after[i] = 0;
    }
    return read;
}

bool ops_convolution_weights_at_once(const ops_convolution_form *f, const ops_array *x)
{
    const ops_convolution_form read = form_at_once(f, x);
    ops_depthwise_weights_form form;
    return form_make(&read, x, &form);
}

ops_array *ops_convolution_weights(const ops_convolution_form *f, ops_array *x, ops_array *dy)
{
    int64_t shape[OPS_MAX_RANK] = {f->groups * f->outputs, f->inputs};
    memcpy(shape + 2, f->window, f->rank * sizeof *shape);
    const ops_convolution_form read = form_at_once(f, x);
    ops_depthwise_weights_form form;
    const bool is_at_once = form_make(&read, x, &form);
    if (!is_at_once || x->owner->context->tuning->convolution.pads_by_copies) {
        x = ops_convolution_pad(f, x);
    }
    if (!x) {
        return NULL;
    }
    if (is_at_once) {
        ops_array *sums = weights_at_once(&read, &form, x, dy);
        return sums ? ops_array_reshape(sums, f->rank + 2, shape) : NULL;
    }
    const bool is_grouped = f->channels_last && f->groups > 1 && f->inputs * f->outputs > 1;
    ops_array *sum =
        is_grouped || is_sum(f, x) ? weights_by_elements(f, x, dy) : weights_by_windows(f, x, dy);
    return sum ? ops_array_reshape(sum, f->rank + 2, shape) : NULL;
}

/* Transposed convolutions with steps as convolutions of their phases (kernels/phases.h), by copied
 * windows or implicit products; and any as columns, the products of x with each element of the
 * window, which are added where windows have them in common: these multiply no zeros. */
#include "convolution_implicit.h"

#include "kernels/phases.h"
#include "tensor/context.h"

#include <stdlib.h>
#include <string.h>

/* Besides those of ops_convolution_way. */
enum { WAY_COLUMNS = OPS_CONVOLUTION_DIRECT + 1 };

static ops_phase_axis axis_of(const ops_convolution_form *f, uint32_t axis)
{
    return (ops_phase_axis){.step = f->stride[axis],
                            .dilation = f->dilation[axis],
                            .before = f->before[axis],
                            .window = f->window[axis],
                            .results = f->places[axis]};
}

/* The zeros before x, and its length with them, that all phases together read. False where an axis
 * has no phase that reads x. */
static bool image_lengths(const ops_convolution_form *f, int64_t *before, int64_t *lengths)
{
    bool reads = true;
    for (uint32_t i = 0; i < f->rank && reads; i++) {
        const ops_phase_axis axis = axis_of(f, i);
        reads = ops_phase_reach(&axis, &before[i], &lengths[i]);
        lengths[i] = reads ? lengths[i] + before[i] : 0;
    }
    return reads;
}

int64_t ops_convolution_phase_count(const ops_convolution_form *f)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        const ops_phase_axis axis = axis_of(f, i);
        const int64_t phases = ops_phase_count(&axis);
        count = phases <= INT32_MAX / count ? count * phases : INT32_MAX;
    }
    return count;
}

static bool has_steps(const ops_convolution_form *f)
{
    bool has = false;
    for (uint32_t i = 0; i < f->rank; i++) {
        has = has || f->stride[i] > 1;
    }
    return has;
}

bool ops_convolution_has_phases(const ops_convolution_form *f, bool is_implicit)
{
    const int64_t most = is_implicit ? OPS_CONVOLUTION_PHASES : OPS_CONVOLUTION_COPIED_PHASES;
    return has_steps(f) && ops_convolution_phase_count(f) <= most;
}

/* Changes what phases read of x to what they read of columns, which are places of x among zeros. */
static void columns_lengths(const ops_convolution_form *f, const ops_array *x, int64_t *before,
                            int64_t *lengths)
{
    for (uint32_t i = 0; i < f->rank; i++) {
        const int64_t length = x->view.shape[i + 2], end = lengths[i] - before[i];
        before[i] = before[i] > 0 ? before[i] : 0;
        lengths[i] = before[i] + (end > length ? end : length);
    }
}

double ops_convolution_column_elements(const ops_convolution_form *f, const ops_array *x)
{
    enum { MOST_ELEMENTS = 512 }; /* of a window: an addition for each */
    const int64_t volume = ops_convolution_volume(f, f->window);
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL];
    if (hal_type_is_narrow_float(x->view.type) || volume < 2 || volume > MOST_ELEMENTS ||
        f->images < 1 || f->outputs < 1 || !image_lengths(f, before, lengths) ||
        ops_convolution_phase_count(f) > OPS_CONVOLUTION_COPIED_PHASES) {
        return 0;
    }
    columns_lengths(f, x, before, lengths);
    double elements = (double)f->groups * (double)f->outputs * (double)volume;
    for (uint32_t i = 0; i < f->rank; i++) {
        elements *= (double)lengths[i];
    }
    return elements * hal_type_size(x->view.type) <= (double)OPS_CONVOLUTION_BYTES ? elements : 0;
}

/* Whether a phase has no element of the window, so that its results are those of the bias. */
static bool has_empty_phase(const ops_convolution_form *f)
{
    bool has = false;
    for (uint32_t i = 0; i < f->rank; i++) {
        has |= ops_common_divisor(f->dilation[i], f->stride[i]) > 1 || f->stride[i] > f->window[i];
    }
    return has;
}

/* The results that no phase replaces; any values where there are none. */
static ops_array *results_begin(const ops_convolution_form *f, const ops_array *x, ops_array *bias)
{
    ops_convolution_form form = *f;
    const bool has_empty = has_empty_phase(f);
    form.activation = has_empty ? f->activation : OPS_IDENTITY;
    return ops_convolution_background(&form, x, has_empty ? bias : NULL);
}

/* The result of one phase, of windows that are copied unless a kernel sums them. */
static ops_array *phase_copied(const ops_convolution_form *f, ops_array *x, ops_array *w,
                               ops_array *bias)
{
    return ops_convolution_is_depthwise(f)
               ? ops_convolution_depthwise(f, x, w, bias)
               : ops_convolution_channels_last(f, ops_convolution_compute(f, x, w, bias));
}

/* The result of one phase by a convolution. */
static ops_array *phase_compute(const ops_convolution_form *f, int way, const ops_phase *phases,
                                const int64_t *before, ops_array *x, ops_array *w, ops_array *bias)
{
    ops_convolution_form form = *f;
    for (uint32_t i = 0; x && w && i < f->rank; i++) {
        const ops_phase *p = &phases[i];
        const int64_t reach = p->places + (p->taps - 1) * p->apart;
        const int64_t turned = f->window[i] - 1 - p->tap;
        form.places[i] = p->places;
        form.window[i] = p->taps;
        form.stride[i] = 1;
        form.dilation[i] = p->apart;
        form.before[i] = form.after[i] = 0;
        form.length[i] = reach;
        x = ops_compose_slice(x, i + 2, before[i] + p->position, reach, 1);
        w = w ? ops_compose_slice(w, i + 2, turned, p->taps, p->tap_step) : NULL;
    }
    if (!x || !w) {
        return NULL;
    }
    return way == OPS_CONVOLUTION_IMPLICIT ? ops_convolution_implicit(&form, x, w, bias)
                                           : phase_copied(&form, x, w, bias);
}

/* ---- By columns ---- */

/* Whether neighbours of columns are channels: these fill vectors better than short lines. */
static bool has_channels_last(const ops_convolution_form *f, const ops_array *x)
{
    enum { LANES = 16 };
    return f->outputs >= LANES && (f->channels_last || x->view.shape[f->rank + 1] < LANES);
}

/* Axes of columns: `spatial` are the first ones of the window and of places. */
static void column_axes(uint32_t rank, uint32_t group, uint32_t channel, uint32_t image,
                        uint32_t window, uint32_t places, int32_t *axes)
{
    axes[0] = (int32_t)image;
    axes[1] = (int32_t)group;
    axes[2] = (int32_t)channel;
    for (uint32_t i = 0; i < rank; i++) {
        axes[3 + i] = (int32_t)(window + i);
        axes[3 + rank + i] = (int32_t)(places + i);
    }
}

/* An array of columns, whose places begin at axis `first`, among zeros: `before` each axis, which
 * then has `lengths`. */
static ops_array *columns_pad(uint32_t rank, uint32_t first, const int64_t *before,
                              const int64_t *lengths, ops_array *columns)
{
    int64_t shape[OPS_MAX_RANK], at[OPS_MAX_RANK] = {0};
    bool is_whole = true;
    if (!columns) {
        return NULL;
    }
    (void)ops_compose_shape(columns, shape);
    for (uint32_t i = 0; i < rank; i++) {
        is_whole = is_whole && shape[first + i] == lengths[i];
        shape[first + i] = lengths[i];
        at[first + i] = before[i];
    }
    return is_whole ? columns : ops_compose_pad(at, shape, 0, columns);
}

/* The products of x [N, groups I, p] and weights [groups I, O, window] for each place of x: [N,
 * groups, O, window, p], among zeros. */
static ops_array *columns_of(const ops_convolution_form *f, const int64_t *before,
                             const int64_t *lengths, ops_array *x, ops_array *w)
{
    const uint32_t r = f->rank;
    const int64_t g = f->groups, volume = ops_convolution_volume(f, f->window);
    const bool is_last = has_channels_last(f, x);
    int64_t shape[OPS_MAX_RANK];
    int32_t axes[OPS_MAX_RANK] = {0};
    ops_convolution_form last = *f;
    ops_array *columns;
    last.channels_last = true;
    if (is_last) { /* [groups, N, p, window, O] */
        shape[0] = g;
        shape[1] = f->images;
        memcpy(shape + 2, x->view.shape + 2, r * sizeof *shape);
        memcpy(shape + 2 + r, f->window, r * sizeof *shape);
        shape[2 + 2 * r] = f->outputs;
        x = ops_convolution_channels_last(&last, x);
        x = x ? ops_array_reshape(x, 3, (int64_t[]){-1, g, f->inputs}) : NULL;
        x = x ? ops_array_transpose(x, 0, 1) : NULL;
        w = ops_array_reshape(w, 4, (int64_t[]){g, f->inputs, f->outputs, volume});
        w = w ? ops_array_transpose(w, 2, 3) : NULL;
        w = w ? ops_array_reshape(w, 3, (int64_t[]){g, f->inputs, -1}) : NULL;
        columns = x && w ? ops_array_matmul(x, w, f->precision) : NULL;
        column_axes(r, 0, 2 + 2 * r, 1, 2 + r, 2, axes);
    } else { /* [groups, O, window, N, p] */
        shape[0] = g;
        shape[1] = f->outputs;
        memcpy(shape + 2, f->window, r * sizeof *shape);
        shape[2 + r] = f->images;
        memcpy(shape + 3 + r, x->view.shape + 2, r * sizeof *shape);
        x = ops_array_reshape(x, 4, (int64_t[]){f->images, g, f->inputs, -1});
        x = x ? ops_array_permute(x, (int32_t[]){1, 2, 0, 3}) : NULL;
        x = x ? ops_array_reshape(x, 3, (int64_t[]){g, f->inputs, -1}) : NULL;
        w = ops_array_reshape(w, 3, (int64_t[]){g, f->inputs, -1});
        w = w ? ops_array_transpose(w, 1, 2) : NULL;
        columns = x && w ? ops_array_matmul(w, x, f->precision) : NULL;
        column_axes(r, 0, 1, 2 + r, 2, 3 + r, axes);
    }
    columns = columns ? ops_array_reshape(columns, 3 + 2 * r, shape) : NULL;
    columns = columns_pad(r, is_last ? 2 : 3 + r, before, lengths, columns);
    return columns ? ops_array_permute(columns, axes) : NULL;
}

/* What an element of the window adds to the results of a phase: [N, groups, O, places]. */
static ops_array *column_take(const ops_convolution_form *f, const ops_phase *phases,
                              const int64_t *before, const int64_t *tap, ops_array *columns)
{
    int64_t shape[OPS_MAX_RANK] = {f->images, f->groups, f->outputs};
    for (uint32_t i = 0; columns && i < f->rank; i++) {
        const ops_phase *p = &phases[i];
        const int64_t at = before[i] + p->position + tap[i] * p->apart;
        columns = ops_compose_slice(columns, 3 + i, p->tap - tap[i] * p->tap_step, 1, 1);
        columns = columns ? ops_compose_slice(columns, 3 + f->rank + i, at, p->places, 1) : NULL;
        shape[3 + i] = p->places;
    }
    return columns ? ops_array_reshape(columns, 3 + f->rank, shape) : NULL;
}

/* The result of one phase: its elements of the window, one after the other. */
static ops_array *phase_added(const ops_convolution_form *f, const ops_phase *phases,
                              const int64_t *before, ops_array *columns, ops_array *bias)
{
    int64_t tap[OPS_MAX_SPATIAL] = {0};
    int64_t shape[OPS_MAX_RANK] = {f->images, f->groups * f->outputs};
    ops_array *sum = NULL;
    for (bool more = true; more;) {
        ops_array *part = column_take(f, phases, before, tap, columns);
        sum = sum && part ? ops_add(sum, part) : part;
        if (!sum) {
            return NULL;
        }
        more = false;
        for (uint32_t i = f->rank; i-- > 0 && !more;) {
            more = ++tap[i] < phases[i].taps;
            tap[i] = more ? tap[i] : 0;
        }
    }
    for (uint32_t i = 0; i < f->rank; i++) {
        shape[2 + i] = phases[i].places;
    }
    sum = ops_array_reshape(sum, f->rank + 2, shape);
    if (sum && bias) {
        int64_t channels[OPS_MAX_RANK] = {f->groups * f->outputs, 1, 1, 1};
        bias = ops_array_reshape(bias, f->rank + 1, channels);
        sum = bias ? ops_add(sum, bias) : NULL;
    }
    sum = sum && f->activation != OPS_IDENTITY ? ops_array_unary(f->activation, sum) : sum;
    return ops_convolution_channels_last(f, sum);
}

/* Replaces the elements of a phase of the result, which is released: without other references the
 * update is in place, also where it is computed within the scope. */
static ops_array *phase_put(const ops_convolution_form *f, const ops_phase *phases, ops_array *y,
                            ops_array *part)
{
    ops_tensor view;
    if (!part || ops_array_describe(y, &view)) {
        return NULL;
    }
    for (uint32_t i = 0; i < f->rank; i++) {
        const int32_t axis = (int32_t)i + (f->channels_last ? 1 : 2);
        if (ops_tensor_slice(&view, axis, phases[i].first, phases[i].places, f->stride[i], &view)) {
            return NULL;
        }
    }
    ops_array *updated = ops_array_update(y, &view, part);
    ops_array_release(y);
    return updated;
}

/* What phases read: x among zeros, or columns of it; `before` counts their zeros. */
static ops_array *phases_source(const ops_convolution_form *f, int way, int64_t *before,
                                int64_t *lengths, ops_array *x, ops_array *w)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    if (way == OPS_CONVOLUTION_IMPLICIT) {
        const int64_t channels = ops_convolution_implicit_channels(f, x);
        return ops_convolution_place_last(f, before, step, lengths, channels, x);
    }
    if (way == OPS_CONVOLUTION_COPIED) {
        return ops_convolution_place(f, before, step, lengths, x->view.shape[1], x);
    }
    columns_lengths(f, x, before, lengths);
    return columns_of(f, before, lengths, x, w);
}

static ops_array *phases_compute(const ops_convolution_form *f, int way, ops_array *x, ops_array *w,
                                 ops_array *bias)
{
    const bool is_added = way == WAY_COLUMNS;
    const bool is_one = is_added && !has_steps(f);
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], least[OPS_MAX_SPATIAL] = {0};
    ops_array *y = is_one ? NULL : results_begin(f, x, bias);
    if (!image_lengths(f, before, lengths)) {
        return y;
    }
    x = phases_source(f, way, before, lengths, x, w);
    for (bool more = true; more && x && (y || is_one);) {
        ops_phase phases[OPS_MAX_SPATIAL];
        bool has_places = true;
        for (uint32_t i = 0; i < f->rank; i++) {
            const ops_phase_axis axis = axis_of(f, i);
            phases[i] = ops_phase_of_tap(&axis, least[i]);
            has_places &= phases[i].places > 0;
        }
        if (is_one) {
            return phase_added(f, phases, before, x, bias);
        }
        if (has_places) {
            y = phase_put(f, phases, y,
                          is_added ? phase_added(f, phases, before, x, bias)
                                   : phase_compute(f, way, phases, before, x, w, bias));
        }
        more = false;
        for (uint32_t i = f->rank; i-- > 0 && !more;) {
            const ops_phase_axis axis = axis_of(f, i);
            more = ++least[i] < ops_phase_count(&axis);
            least[i] = more ? least[i] : 0;
        }
    }
    return x ? y : NULL;
}

ops_array *ops_convolution_phases(const ops_convolution_form *f, bool is_implicit, ops_array *x,
                                  ops_array *w, ops_array *bias)
{
    return phases_compute(f, is_implicit ? OPS_CONVOLUTION_IMPLICIT : OPS_CONVOLUTION_COPIED, x, w,
                          bias);
}

ops_array *ops_convolution_by_columns(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                      ops_array *bias)
{
    const double bytes = ops_convolution_column_elements(form, x) * hal_type_size(x->view.type);
    const double fit = (double)x->owner->context->tuning->convolution.piece_bytes / bytes;
    const int64_t images = fit < 1 ? 1 : fit < (double)form->images ? (int64_t)fit : form->images;
    ops_convolution_form f = *form;
    ops_array **parts = calloc((size_t)((f.images - 1) / images + 1), sizeof(ops_array *));
    uint32_t count = 0;
    bool is_made = parts != NULL;
    for (int64_t first = 0; first < form->images && is_made; first += images, count++) {
        const int64_t rest = form->images - first;
        f.images = rest < images ? rest : images;
        ops_array *part = ops_compose_slice(x, 0, first, f.images, 1);
        parts[count] = part ? phases_compute(&f, WAY_COLUMNS, part, w, bias) : NULL;
        is_made = parts[count] != NULL;
    }
    ops_array *y = !is_made ? NULL : count > 1 ? ops_array_concatenate(0, parts, count) : parts[0];
    free(parts);
    return y;
}

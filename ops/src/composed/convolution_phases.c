/* Transposed convolutions with steps as convolutions of their phases (kernels/phases.h), by copied
 * windows or implicit products; and any as columns, the products of x with each element of the
 * window, which are added where windows have them in common: these multiply no zeros. */
#include "convolution_implicit.h"

#include "kernels/phases.h"
#include "tensor/context.h"

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

/* The zeros before `others` of columns, and their length with these, from what phases read. */
static void column_length(int64_t others, int64_t *before, int64_t *length)
{
    const int64_t end = *length - *before;
    *before = *before > 0 ? *before : 0;
    *length = *before + (end > others ? end : others);
}

/* Elements of columns along an axis, `others` among zeros for each of those that are added. */
static double column_axis_elements(const ops_phase_axis *axis, int64_t others)
{
    int64_t before, length;
    if (!ops_phase_reach(axis, &before, &length)) {
        return 0;
    }
    length += before;
    column_length(others, &before, &length);
    return (double)length * (double)axis->window;
}

/* A transposed convolution has the same sums with the elements of the window as places and the
 * places of x as window, steps and dilation exchanged. Columns have both, and are added along the
 * one of each axis that leaves fewer zeros: it is the window of `form`, the others are `others`. */
static ops_convolution_form columns_form(const ops_convolution_form *f, const ops_array *x,
                                         int64_t *others, uint32_t *exchanged)
{
    ops_convolution_form form = *f, other = *f;
    *exchanged = 0;
    for (uint32_t i = 0; i < f->rank; i++) {
        others[i] = x->view.shape[i + 2];
        other.window[i] = others[i];
        other.stride[i] = f->dilation[i];
        other.dilation[i] = f->stride[i];
        const ops_phase_axis as_given = axis_of(f, i), as_exchanged = axis_of(&other, i);
        if (column_axis_elements(&as_exchanged, f->window[i]) <
            column_axis_elements(&as_given, others[i])) {
            others[i] = f->window[i];
            form.window[i] = other.window[i];
            form.stride[i] = other.stride[i];
            form.dilation[i] = other.dilation[i];
            *exchanged |= 1u << i;
        }
    }
    return form;
}

/* Changes what phases read of x to what they read of `others` among zeros. */
static void columns_lengths(const ops_convolution_form *form, const int64_t *others,
                            int64_t *before, int64_t *lengths)
{
    for (uint32_t i = 0; i < form->rank; i++) {
        column_length(others[i], &before[i], &lengths[i]);
    }
}

double ops_convolution_column_elements(const ops_convolution_form *f, const ops_array *x,
                                       double *taps, double *phases)
{
    enum { MOST_ELEMENTS = 512 }; /* of a window: an addition for each */
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], others[OPS_MAX_SPATIAL];
    uint32_t exchanged;
    const ops_convolution_form form = columns_form(f, x, others, &exchanged);
    const int64_t count = ops_convolution_phase_count(&form);
    double elements = (double)f->groups * (double)f->outputs;
    *taps = 1;
    *phases = (double)count;
    if (hal_type_is_narrow_float(x->view.type) || ops_convolution_volume(f, f->window) < 2 ||
        f->images < 1 || f->outputs < 1 || count > OPS_CONVOLUTION_COPIED_PHASES ||
        !image_lengths(&form, before, lengths)) {
        return 0;
    }
    columns_lengths(&form, others, before, lengths);
    for (uint32_t i = 0; i < f->rank; i++) {
        *taps *= (double)form.window[i];
        elements *= (double)lengths[i] * (double)form.window[i];
    }
    return *taps <= MOST_ELEMENTS &&
                   elements * hal_type_size(x->view.type) <= (double)OPS_CONVOLUTION_BYTES
               ? elements
               : 0;
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

/* Where columns have their axes; each of the window and of places has the rank's. */
typedef struct column_axes {
    uint32_t group, image, channel, window, places;
} column_axes;

/* The products of x [N, groups I, p] with the weights [groups I, O, window] of its places. Either
 * neighbours are channels, which fill vectors better than short lines, or elements of the window,
 * or places, whichever are not added. */
static ops_array *columns_multiply(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                   const int64_t *others, uint32_t exchanged, column_axes *axes)
{
    enum { LANES = 16 };
    const uint32_t r = f->rank;
    const int64_t g = f->groups, volume = ops_convolution_volume(f, f->window);
    const bool by_channels = f->outputs >= LANES && (f->channels_last || others[r - 1] < LANES);
    const bool by_places = !by_channels && !(exchanged >> (r - 1) & 1);
    ops_convolution_form last = *f;
    int64_t shape[OPS_MAX_RANK] = {0}, places[OPS_MAX_SPATIAL];
    last.channels_last = true;
    *axes = by_places     ? (column_axes){0, 2 + r, 1, 2, 3 + r}
            : by_channels ? (column_axes){0, 1, 2 + 2 * r, 2 + r, 2}
                          : (column_axes){0, 1, 2 + r, 3 + r, 2};
    memcpy(places, x->view.shape + 2, r * sizeof *places);
    if (by_places) {
        x = ops_array_reshape(x, 4, (int64_t[]){f->images, g, f->inputs, -1});
        x = x ? ops_array_permute(x, (int32_t[]){1, 2, 0, 3}) : NULL;
        x = x ? ops_array_reshape(x, 3, (int64_t[]){g, f->inputs, -1}) : NULL;
        w = ops_array_reshape(w, 3, (int64_t[]){g, f->inputs, -1});
        w = w ? ops_array_transpose(w, 1, 2) : NULL;
    } else {
        x = ops_convolution_channels_last(&last, x);
        x = x ? ops_array_reshape(x, 3, (int64_t[]){-1, g, f->inputs}) : NULL;
        x = x ? ops_array_transpose(x, 0, 1) : NULL;
        w = ops_array_reshape(w, 4, (int64_t[]){g, f->inputs, f->outputs, volume});
        w = w && by_channels ? ops_array_transpose(w, 2, 3) : w;
        w = w ? ops_array_reshape(w, 3, (int64_t[]){g, f->inputs, -1}) : NULL;
    }
    ops_array *columns = !x || !w    ? NULL
                         : by_places ? ops_array_matmul(w, x, f->precision)
                                     : ops_array_matmul(x, w, f->precision);
    shape[axes->group] = g;
    shape[axes->image] = f->images;
    shape[axes->channel] = f->outputs;
    memcpy(shape + axes->window, f->window, r * sizeof *shape);
    memcpy(shape + axes->places, places, r * sizeof *shape);
    return columns ? ops_array_reshape(columns, 3 + 2 * r, shape) : NULL;
}

/* The columns: [N, groups, O, those that are added, others among zeros], where axis i of the others
 * has lengths[i], of which before[i] are zeros before them. */
static ops_array *columns_of(const ops_convolution_form *f, const int64_t *before,
                             const int64_t *lengths, ops_array *x, ops_array *w)
{
    const uint32_t r = f->rank;
    int64_t shape[OPS_MAX_RANK], at[OPS_MAX_RANK] = {0}, others[OPS_MAX_SPATIAL];
    int32_t order[OPS_MAX_RANK];
    uint32_t exchanged;
    column_axes axes;
    bool is_whole = true;
    (void)columns_form(f, x, others, &exchanged);
    ops_array *columns = columns_multiply(f, x, w, others, exchanged, &axes);
    if (!columns) {
        return NULL;
    }
    (void)ops_compose_shape(columns, shape);
    order[0] = (int32_t)axes.image;
    order[1] = (int32_t)axes.group;
    order[2] = (int32_t)axes.channel;
    for (uint32_t i = 0; i < r; i++) {
        const bool is_exchanged = exchanged >> i & 1;
        const uint32_t added = is_exchanged ? axes.places : axes.window;
        const uint32_t other = (is_exchanged ? axes.window : axes.places) + i;
        order[3 + i] = (int32_t)(added + i);
        order[3 + r + i] = (int32_t)other;
        is_whole = is_whole && shape[other] == lengths[i];
        shape[other] = lengths[i];
        at[other] = before[i];
    }
    columns = is_whole ? columns : ops_compose_pad(at, shape, 0, columns);
    return columns ? ops_array_permute(columns, order) : NULL;
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

/* Replaces elements of y by `part`. Both are released: without other references the update is in
 * place, and the part's memory is free after it, also where they are computed within the scope. */
static ops_array *part_put(ops_array *y, const ops_tensor *view, ops_array *part)
{
    ops_array *updated = ops_array_update(y, view, part);
    ops_array_release(y);
    ops_array_release(part);
    return updated;
}

/* Replaces the elements of a phase of the result. */
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
    return part_put(y, &view, part);
}

/* What phases read: x among zeros, or columns of it; `before` counts their zeros. */
static ops_array *phases_read(const ops_convolution_form *f, int way, int64_t *before,
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
    int64_t others[OPS_MAX_SPATIAL];
    uint32_t exchanged;
    const ops_convolution_form form = columns_form(f, x, others, &exchanged);
    columns_lengths(&form, others, before, lengths);
    return columns_of(f, before, lengths, x, w);
}

/* The same, and one phase, in scopes of their own: what lies between is released. */
static ops_array *phases_source(const ops_convolution_form *f, int way, int64_t *before,
                                int64_t *lengths, ops_array *x, ops_array *w)
{
    ops_arrays *arrays = ops_compose_nest(x);
    return arrays ? ops_compose_end(arrays, phases_read(f, way, before, lengths, x, w)) : NULL;
}

static ops_array *phase_part(const ops_convolution_form *f, int way, const ops_phase *phases,
                             const int64_t *before, ops_array *x, ops_array *w, ops_array *bias)
{
    ops_arrays *arrays = ops_compose_nest(x);
    return !arrays
               ? NULL
               : ops_compose_end(arrays, way == WAY_COLUMNS
                                             ? phase_added(f, phases, before, x, bias)
                                             : phase_compute(f, way, phases, before, x, w, bias));
}

static ops_array *phases_compute(const ops_convolution_form *given, int way, ops_array *x,
                                 ops_array *w, ops_array *bias)
{
    const bool is_added = way == WAY_COLUMNS;
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], least[OPS_MAX_SPATIAL] = {0};
    uint32_t exchanged;
    const ops_convolution_form form =
        is_added ? columns_form(given, x, lengths, &exchanged) : *given;
    const ops_convolution_form *f = &form;
    const bool is_one = is_added && !has_steps(f);
    ops_array *y = is_one ? NULL : results_begin(f, x, bias);
    if (!image_lengths(f, before, lengths)) {
        return y;
    }
    x = phases_source(given, way, before, lengths, x, w);
    for (bool more = true; more && x && (y || is_one);) {
        ops_phase phases[OPS_MAX_SPATIAL];
        bool has_places = true;
        for (uint32_t i = 0; i < f->rank; i++) {
            const ops_phase_axis axis = axis_of(f, i);
            phases[i] = ops_phase_of_tap(&axis, least[i]);
            has_places &= phases[i].places > 0;
        }
        if (is_one) {
            return phase_part(f, way, phases, before, x, w, bias);
        }
        if (has_places) {
            y = phase_put(f, phases, y, phase_part(f, way, phases, before, x, w, bias));
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

/* The images from `first` on, in a scope of their own. */
static ops_array *columns_piece(const ops_convolution_form *f, int64_t first, ops_array *x,
                                ops_array *w, ops_array *bias)
{
    ops_arrays *arrays = ops_compose_nest(x);
    ops_array *part = arrays ? ops_compose_slice(x, 0, first, f->images, 1) : NULL;
    part = part ? phases_compute(f, WAY_COLUMNS, part, w, bias) : NULL;
    return arrays ? ops_compose_end(arrays, part) : NULL;
}

/* Replaces the images of y from `first` on, as phase_put. Not a concatenation at the end, which
 * computes the columns of all its operands before it adds those of one. */
static ops_array *piece_put(int64_t first, ops_array *y, ops_array *part)
{
    ops_tensor view;
    if (!part || ops_array_describe(y, &view) ||
        ops_tensor_slice(&view, 0, first, part->view.shape[0], 1, &view)) {
        return NULL;
    }
    return part_put(y, &view, part);
}

ops_array *ops_convolution_by_columns(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                      ops_array *bias)
{
    double taps, phases;
    const double elements = ops_convolution_column_elements(form, x, &taps, &phases);
    const double bytes = elements * hal_type_size(x->view.type);
    const double fit = (double)x->owner->context->tuning->convolution.piece_bytes / bytes;
    const int64_t images = fit < 1 ? 1 : fit < (double)form->images ? (int64_t)fit : form->images;
    if (images == form->images) {
        return phases_compute(form, WAY_COLUMNS, x, w, bias);
    }
    ops_convolution_form f = *form;
    f.activation = OPS_IDENTITY; /* of values that are all replaced */
    ops_array *y = ops_convolution_background(&f, x, NULL);
    f.activation = form->activation;
    for (int64_t first = 0; first < form->images && y; first += images) {
        const int64_t rest = form->images - first;
        f.images = rest < images ? rest : images;
        y = piece_put(first, y, columns_piece(&f, first, x, w, bias));
    }
    return y;
}

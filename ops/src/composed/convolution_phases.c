/* Transposed convolutions with steps by phases: the elements of the result that are as many apart
 * as the step have the same elements of the window, so each phase is a convolution of x as it is,
 * with a part of the window and windows 1 apart. No zeros are multiplied. */
#include "convolution_implicit.h"

#include <string.h>

/* Along one axis: element first + t * step of the result, for each of `places` numbers t, is the
 * sum of `count` elements of the turned window, from `tap` on, `step` apart, times those of x from
 * t - before on, `dilation` apart. */
typedef struct axis_phase {
    int64_t places, count, tap, before;
} axis_phase;

static axis_phase phase_of(const ops_convolution_form *f, uint32_t axis, int64_t first)
{
    const int64_t step = f->stride[axis], window = f->window[axis];
    const int64_t from = first + f->before[axis];
    const int64_t places = f->places[axis] > first ? (f->places[axis] - first - 1) / step + 1 : 0;
    if (step == 1) {
        return (axis_phase){places, window, 0, (window - 1) * f->dilation[axis] - f->before[axis]};
    }
    const int64_t last = from % step; /* of the taps before they are turned */
    const int64_t count = window > last ? (window - last - 1) / step + 1 : 0;
    return (axis_phase){places, count, window - 1 - last - step * (count - 1),
                        count - 1 - (from - last) / step};
}

/* The zeros before x, and its length with them, that all phases together read. */
static void image_lengths(const ops_convolution_form *f, int64_t *before, int64_t *lengths)
{
    for (uint32_t i = 0; i < f->rank; i++) {
        int64_t end = INT64_MIN;
        before[i] = INT64_MIN;
        for (int64_t first = 0; first < f->stride[i]; first++) {
            const axis_phase p = phase_of(f, i, first);
            if (p.places > 0 && p.count > 0) {
                const int64_t reach = p.places + (p.count - 1) * f->dilation[i] - p.before;
                before[i] = p.before > before[i] ? p.before : before[i];
                end = reach > end ? reach : end;
            }
        }
        lengths[i] = before[i] + end;
    }
}

bool ops_convolution_has_phases(const ops_convolution_form *f, bool has_bias)
{
    int64_t count = 1;
    bool fits = true, has_empty = false;
    for (uint32_t i = 0; i < f->rank && fits; i++) {
        fits = f->stride[i] == 1 || f->dilation[i] == 1;
        has_empty |= f->stride[i] > f->window[i];
        count *= f->stride[i] <= OPS_CONVOLUTION_PHASES ? f->stride[i] : OPS_CONVOLUTION_PHASES + 1;
    }
    return fits && count > 1 && count <= OPS_CONVOLUTION_PHASES &&
           !(has_empty && (has_bias || f->activation != OPS_IDENTITY));
}

/* The result of one phase. */
static ops_array *phase_compute(const ops_convolution_form *f, const axis_phase *phases,
                                const int64_t *before, ops_array *x, ops_array *w, ops_array *bias)
{
    ops_convolution_form form = *f;
    for (uint32_t i = 0; x && w && i < f->rank; i++) {
        const axis_phase *p = &phases[i];
        const int64_t reach = p->places + (p->count - 1) * f->dilation[i];
        form.places[i] = p->places;
        form.window[i] = p->count;
        form.stride[i] = 1;
        form.before[i] = form.after[i] = 0;
        form.length[i] = reach;
        x = ops_compose_slice(x, i + 2, before[i] - p->before, reach, 1);
        w = w ? ops_compose_slice(w, i + 2, p->tap, p->count, f->stride[i]) : NULL;
    }
    return x && w ? ops_convolution_implicit(&form, x, w, bias) : NULL;
}

/* Replaces the elements of a phase of the result. */
static ops_array *phase_put(const ops_convolution_form *f, const axis_phase *phases,
                            const int64_t *first, ops_array *y, ops_array *part)
{
    ops_tensor view;
    if (!part || ops_array_describe(y, &view)) {
        return NULL;
    }
    for (uint32_t i = 0; i < f->rank; i++) {
        const int32_t axis = (int32_t)i + (f->channels_last ? 1 : 2);
        if (ops_tensor_slice(&view, axis, first[i], phases[i].places, f->stride[i], &view)) {
            return NULL;
        }
    }
    return ops_array_update(y, &view, part);
}

ops_array *ops_convolution_phases(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                  ops_array *bias)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], first[OPS_MAX_SPATIAL] = {0};
    int64_t shape[OPS_MAX_RANK] = {f->images};
    memcpy(shape + (f->channels_last ? 1 : 2), f->places, f->rank * sizeof *shape);
    shape[f->channels_last ? f->rank + 1 : 1] = f->groups * f->outputs;
    image_lengths(f, before, lengths);
    ops_array *y = ops_array_full(x->owner->context, x->view.type, f->rank + 2, shape, 0);
    x = ops_convolution_place_last(f, before, step, lengths, x);
    for (bool more = true; more && x && y;) {
        axis_phase phases[OPS_MAX_SPATIAL];
        bool has_products = true;
        for (uint32_t i = 0; i < f->rank; i++) {
            phases[i] = phase_of(f, i, first[i]);
            has_products &= phases[i].places > 0 && phases[i].count > 0;
        }
        if (has_products) {
            y = phase_put(f, phases, first, y, phase_compute(f, phases, before, x, w, bias));
        }
        more = false;
        for (uint32_t i = f->rank; i-- > 0 && !more;) {
            more = ++first[i] < f->stride[i];
            first[i] = more ? first[i] : 0;
        }
    }
    return x ? y : NULL;
}

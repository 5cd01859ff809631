/* Transposed convolutions with steps by phases: the elements of the result that are as many apart
 * as the step have the same elements of the window, so each phase is a convolution of x as it is,
 * with a part of the window and windows 1 apart. No zeros are multiplied. */
#include "convolution_implicit.h"

#include <string.h>

/* Along one axis: element first + t * step of the result, for each of `places` numbers t, is the
 * sum of `count` elements of the turned window, from `tap` on, `apart` from each other, times those
 * of x from t - before on, `dilation` apart. */
typedef struct axis_phase {
    int64_t first, places, count, tap, apart, before, dilation;
} axis_phase;

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Phases along an axis that have elements of the window: element k of it, before it is turned,
 * belongs to that of k modulo step / divisor. A step may be much longer. */
static int64_t phase_count(const ops_convolution_form *f, uint32_t axis)
{
    const int64_t apart = f->stride[axis] / common_divisor(f->dilation[axis], f->stride[axis]);
    return apart < f->window[axis] ? apart : f->window[axis];
}

/* The phase of element `least` of the window, whose results begin at least dilation - before modulo
 * the step. */
static axis_phase phase_of(const ops_convolution_form *f, uint32_t axis, int64_t least)
{
    const int64_t step = f->stride[axis], window = f->window[axis], dilation = f->dilation[axis];
    const int64_t divisor = common_divisor(dilation, step);
    uint64_t first = (uint64_t)((step - f->before[axis] % step) % step);
    for (int64_t k = 0; k < least; k++) { /* no product beyond 64 bits */
        first = (first + (uint64_t)(dilation % step)) % (uint64_t)step;
    }
    axis_phase p = {
        .first = (int64_t)first, .apart = step / divisor, .dilation = dilation / divisor};
    p.places = f->places[axis] > p.first ? (f->places[axis] - p.first - 1) / step + 1 : 0;
    p.count = (window - least - 1) / p.apart + 1;
    const int64_t last = least + (p.count - 1) * p.apart;
    p.tap = window - 1 - last;
    p.before = (last * dilation - p.first - f->before[axis]) / step;
    return p;
}

/* The zeros before x, and its length with them, that all phases together read. False where an axis
 * has no phase that reads x. */
static bool image_lengths(const ops_convolution_form *f, int64_t *before, int64_t *lengths)
{
    for (uint32_t i = 0; i < f->rank; i++) {
        int64_t end = INT64_MIN;
        before[i] = INT64_MIN;
        for (int64_t least = 0; least < phase_count(f, i); least++) {
            const axis_phase p = phase_of(f, i, least);
            if (p.places > 0) {
                const int64_t reach = p.places + (p.count - 1) * p.dilation - p.before;
                before[i] = p.before > before[i] ? p.before : before[i];
                end = reach > end ? reach : end;
            }
        }
        if (end == INT64_MIN) {
            return false;
        }
        lengths[i] = before[i] + end;
    }
    return true;
}

bool ops_convolution_has_phases(const ops_convolution_form *f, bool is_implicit)
{
    const int64_t most = is_implicit ? OPS_CONVOLUTION_PHASES : OPS_CONVOLUTION_COPIED_PHASES;
    int64_t count = 1, steps = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        const int64_t phases = phase_count(f, i);
        count *= phases <= most ? phases : most + 1;
        steps *= f->stride[i] <= most ? f->stride[i] : most + 1;
        count = count <= most ? count : most + 1;
        steps = steps <= most ? steps : most + 1;
    }
    return steps > 1 && count <= most;
}

/* Whether a phase has no element of the window, so that its results are those of the bias. */
static bool has_empty_phase(const ops_convolution_form *f)
{
    bool has = false;
    for (uint32_t i = 0; i < f->rank; i++) {
        has |= common_divisor(f->dilation[i], f->stride[i]) > 1 || f->stride[i] > f->window[i];
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

/* The result of one phase. */
static ops_array *phase_compute(const ops_convolution_form *f, bool is_implicit,
                                const axis_phase *phases, const int64_t *before, ops_array *x,
                                ops_array *w, ops_array *bias)
{
    ops_convolution_form form = *f;
    for (uint32_t i = 0; x && w && i < f->rank; i++) {
        const axis_phase *p = &phases[i];
        const int64_t reach = p->places + (p->count - 1) * p->dilation;
        form.places[i] = p->places;
        form.window[i] = p->count;
        form.stride[i] = 1;
        form.dilation[i] = p->dilation;
        form.before[i] = form.after[i] = 0;
        form.length[i] = reach;
        x = ops_compose_slice(x, i + 2, before[i] - p->before, reach, 1);
        w = w ? ops_compose_slice(w, i + 2, p->tap, p->count, p->apart) : NULL;
    }
    if (!x || !w) {
        return NULL;
    }
    return is_implicit ? ops_convolution_implicit(&form, x, w, bias)
                       : phase_copied(&form, x, w, bias);
}

/* Replaces the elements of a phase of the result. */
static ops_array *phase_put(const ops_convolution_form *f, const axis_phase *phases, ops_array *y,
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
    return ops_array_update(y, &view, part);
}

ops_array *ops_convolution_phases(const ops_convolution_form *f, bool is_implicit, ops_array *x,
                                  ops_array *w, ops_array *bias)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], least[OPS_MAX_SPATIAL] = {0};
    ops_array *y = results_begin(f, x, bias);
    if (!image_lengths(f, before, lengths)) {
        return y;
    }
    x = is_implicit ? ops_convolution_place_last(f, before, step, lengths, x)
                    : ops_convolution_place(f, before, step, lengths, x);
    for (bool more = true; more && x && y;) {
        axis_phase phases[OPS_MAX_SPATIAL];
        bool has_places = true;
        for (uint32_t i = 0; i < f->rank; i++) {
            phases[i] = phase_of(f, i, least[i]);
            has_places &= phases[i].places > 0;
        }
        if (has_places) {
            y = phase_put(f, phases, y, phase_compute(f, is_implicit, phases, before, x, w, bias));
        }
        more = false;
        for (uint32_t i = f->rank; i-- > 0 && !more;) {
            more = ++least[i] < phase_count(f, i);
            least[i] = more ? least[i] : 0;
        }
    }
    return x ? y : NULL;
}

/* Transposed convolutions with steps as convolutions of their phases (kernels/phases.h), by copied
 * windows or implicit products. */
#include "convolution_implicit.h"

#include "kernels/phases.h"

#include <string.h>

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

bool ops_convolution_has_phases(const ops_convolution_form *f, bool is_implicit)
{
    const int64_t most = is_implicit ? OPS_CONVOLUTION_PHASES : OPS_CONVOLUTION_COPIED_PHASES;
    bool has_steps = false;
    for (uint32_t i = 0; i < f->rank; i++) {
        has_steps = has_steps || f->stride[i] > 1;
    }
    return has_steps && ops_convolution_phase_count(f) <= most;
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

/* The result of one phase. */
static ops_array *phase_compute(const ops_convolution_form *f, bool is_implicit,
                                const ops_phase *phases, const int64_t *before, ops_array *x,
                                ops_array *w, ops_array *bias)
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
    return is_implicit ? ops_convolution_implicit(&form, x, w, bias)
                       : phase_copied(&form, x, w, bias);
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

ops_array *ops_convolution_phases(const ops_convolution_form *f, bool is_implicit, ops_array *x,
                                  ops_array *w, ops_array *bias)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    int64_t before[OPS_MAX_SPATIAL], lengths[OPS_MAX_SPATIAL], least[OPS_MAX_SPATIAL] = {0};
    ops_array *y = results_begin(f, x, bias);
    if (!image_lengths(f, before, lengths)) {
        return y;
    }
    x = is_implicit ? ops_convolution_place_last(f, before, step, lengths,
                                                 ops_convolution_implicit_channels(f, x), x)
                    : ops_convolution_place(f, before, step, lengths, x->view.shape[1], x);
    for (bool more = true; more && x && y;) {
        ops_phase phases[OPS_MAX_SPATIAL];
        bool has_places = true;
        for (uint32_t i = 0; i < f->rank; i++) {
            const ops_phase_axis axis = axis_of(f, i);
            phases[i] = ops_phase_of_tap(&axis, least[i]);
            has_places &= phases[i].places > 0;
        }
        if (has_places) {
            y = phase_put(f, phases, y, phase_compute(f, is_implicit, phases, before, x, w, bias));
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

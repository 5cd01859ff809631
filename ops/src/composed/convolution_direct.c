/* See convolution_direct.h. */
#include "convolution_direct.h"
#include "convolution_implicit.h"
#include "convolution_pointwise.h"

#include "kernels/direct_estimate.h"
#include "kernels/direct_phase.h"
#include "tensor/context.h"

#include <string.h>

static ops_direct_form form_of(const ops_convolution_form *f, bool is_transposed)
{
    ops_direct_form form;
    memset(&form, 0, sizeof form); /* a part of keys */
    form.rank = f->rank;
    form.activation = f->activation;
    form.is_transposed = is_transposed;
    form.groups = f->groups;
    memcpy(form.stride, f->stride, f->rank * sizeof *form.stride);
    memcpy(form.dilation, f->dilation, f->rank * sizeof *form.dilation);
    memcpy(form.before, f->before, f->rank * sizeof *form.before);
    return form;
}

static ops_direct_lengths lengths_of(const ops_convolution_form *f, const ops_array *x)
{
    ops_direct_lengths n;
    memset(&n, 0, sizeof n);
    n.images = f->images;
    n.inputs = f->inputs;
    n.outputs = f->outputs;
    memcpy(n.x, x->view.shape + 2, f->rank * sizeof *n.x);
    memcpy(n.y, f->places, f->rank * sizeof *n.y);
    memcpy(n.window, f->window, f->rank * sizeof *n.window);
    return n;
}

/* What the other ways compute: elements of windows, those of x with its zeros, results, and
 * convolutions, of which a transposed one with steps has one for each phase. */
typedef struct other_work {
    double windows, image, results, phases;
    bool has_steps, is_far; /* neighbours of a result are apart in x */
    bool is_padded;         /* x is copied among zeros */
    int64_t line;           /* results along the last axis of a convolution */
} other_work;

static other_work work_of(const ops_convolution_form *f, bool is_transposed,
                          const ops_direct_lengths *n)
{
    const double images = (double)n->images * (double)f->groups;
    other_work work = {.windows = images * (double)n->inputs,
                       .image = images * (double)n->inputs,
                       .results = images * (double)n->outputs,
                       .phases = is_transposed ? (double)ops_convolution_phase_count(f) : 1,
                       .is_padded = is_transposed};
    for (uint32_t i = 0; i < f->rank; i++) {
        work.has_steps = work.has_steps || f->stride[i] > 1;
        work.image *= (double)(n->x[i] + f->before[i] + f->after[i]);
        work.results *= (double)n->y[i];
        work.is_padded = work.is_padded || f->before[i] > 0 || f->after[i] > 0;
    }
    for (uint32_t i = 0; i < f->rank; i++) { /* all phases together read so many places, about */
        const int64_t step = is_transposed ? f->stride[i] : 1;
        work.line = (n->y[i] + step - 1) / step;
        work.windows *= (double)n->window[i] * (double)work.line;
    }
    work.is_far = work.has_steps && !is_transposed;
    return work;
}

/* Nanoseconds of the other ways on one compute unit, about: the kernel of one channel per group, or
 * copied windows and their products. */
static double estimate_others(const ops_convolution_form *f, bool is_transposed,
                              const ops_direct_lengths *n, const ops_convolution_tuning *t)
{
    const other_work work = work_of(f, is_transposed, n);
    const bool is_short = work.line < t->min_line && !f->channels_last;
    const double outputs = (double)n->outputs > t->few_rows ? (double)n->outputs : t->few_rows;
    const double phases = t->copied_phase_ns * (work.phases - 1);
    if (ops_convolution_is_depthwise(f)) {
        const bool is_far = work.has_steps || is_short || n->outputs > 1;
        return work.windows * (double)n->outputs *
                   (is_far ? t->depthwise_far_ns : t->depthwise_near_ns) +
               t->depthwise_pad_ns * (work.results + (work.is_padded ? work.image : 0)) + phases;
    }
    const double element = !work.is_far ? t->copied_near_ns
                           : is_short   ? t->copied_short_ns
                                        : t->copied_far_ns;
    return work.windows * (element + t->copied_sum_ns * outputs) +
           (work.is_padded ? t->copied_pad_ns * work.image : 0) +
           (f->groups > 1 ? t->copied_join_ns * work.results : 0) + phases;
}

/* The same of columns; -1: there are none. */
static double estimate_columns(const ops_convolution_form *f, const ops_array *x,
                               const ops_convolution_tuning *t)
{
    enum { LANES = 16 };
    const int64_t line = x->view.shape[f->rank + 1], window = f->window[f->rank - 1];
    const bool is_short = f->outputs < LANES && (line > window ? line : window) < LANES;
    double taps, phases;
    const double elements = ops_convolution_column_elements(f, x, &taps, &phases);
    const double columns = elements * (is_short ? 2 : 1);
    double results = (double)(f->images * f->groups) * (double)f->outputs, sums = results;
    for (uint32_t i = 0; i < f->rank; i++) {
        results *= (double)f->places[i];
        sums *= (double)f->window[i] * (double)x->view.shape[i + 2];
    }
    return columns > 0 && f->inputs > 1
               ? t->column_sum_ns * sums * (double)f->inputs +
                     t->column_ns * (double)f->images * columns + t->column_result_ns * results +
                     t->column_phase_ns * phases + t->column_tap_ns * taps
               : -1;
}

/* Whether the device may choose other ways than products of windows, by estimates. Compilers of
 * vectors take long for windows without loops. */
static bool may_choose(const ops_convolution_form *f, const ops_context *context)
{
    return context->convolution == OPS_CONVOLUTION_AUTO && !ops_convolution_is_pointwise(f) &&
           context->tuning->convolution.direct_sum_ns > 0 && context->info->item_vector_bytes == 0;
}

/* Nanoseconds of direct sums, or -1. */
static double estimate_direct(const ops_convolution_form *f, bool is_transposed, const ops_array *x)
{
    const ops_direct_form form = form_of(f, is_transposed);
    const ops_direct_lengths n = lengths_of(f, x);
    const int32_t line = f->channels_last ? -1 : (int32_t)f->rank - 1;
    uint32_t axis;
    return n.images == 0 || n.outputs == 0 || !ops_direct_has_few_phases(&form, &n)
               ? -1
               : ops_direct_estimate(&form, &n, &x->owner->context->tuning->convolution, line, line,
                                     &axis);
}

bool ops_convolution_is_direct(const ops_convolution_form *f, bool is_transposed,
                               const ops_array *x)
{
    const ops_context *context = x->owner->context;
    const bool is_asked = context->convolution == OPS_CONVOLUTION_DIRECT;
    if (!is_asked && !may_choose(f, context)) {
        return false;
    }
    const ops_direct_lengths n = lengths_of(f, x);
    const double direct = estimate_direct(f, is_transposed, x);
    return direct >= 0 && (is_asked || direct < estimate_others(f, is_transposed, &n,
                                                                &context->tuning->convolution));
}

bool ops_convolution_is_by_columns(const ops_convolution_form *f, const ops_array *x)
{
    const ops_context *context = x->owner->context;
    const ops_convolution_tuning *tuning = &context->tuning->convolution;
    if (!may_choose(f, context)) {
        return false;
    }
    const ops_direct_lengths n = lengths_of(f, x);
    const double columns = estimate_columns(f, x, tuning);
    const double direct = columns < 0 ? -1 : estimate_direct(f, true, x);
    return columns >= 0 && (direct < 0 || columns < direct) &&
           columns < estimate_others(f, true, &n, tuning);
}

ops_array *ops_convolution_direct(const ops_convolution_form *f, bool is_transposed, ops_array *x,
                                  ops_array *w, ops_array *bias)
{
    const ops_direct_form form = form_of(f, is_transposed);
    int64_t shape[OPS_MAX_RANK] = {f->images};
    int64_t weights[OPS_MAX_RANK] = {f->groups, is_transposed ? f->inputs : f->outputs,
                                     is_transposed ? f->outputs : f->inputs};
    ops_result result;
    memcpy(weights + 3, f->window, f->rank * sizeof *weights);
    w = ops_convolution_row_major(w);
    w = w ? ops_array_reshape(w, f->rank + 3, weights) : NULL;
    w = w && is_transposed ? ops_array_transpose(w, 1, 2) : w;
    if (!w) {
        return NULL;
    }
    ops_array *const operands[3] = {x, w, bias};
    memcpy(shape + (f->channels_last ? 1 : 2), f->places, f->rank * sizeof *shape);
    shape[f->channels_last ? f->rank + 1 : 1] = f->groups * f->outputs;
    ops_result_like(x, &result);
    result.rank = f->rank + 2;
    result.shape = shape;
    result.form = &form;
    result.form_bytes = sizeof form;
    return ops_defer(f->function, OPS_OPERATION_DIRECT, f->channels_last, operands, bias ? 3 : 2,
                     &result);
}

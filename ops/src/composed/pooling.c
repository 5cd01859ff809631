/* Pooling: maxima and sums of slices, or of views of windows. */
#include "convolution.h"
#include "kernels/pool.h"
#include "pooling.h"

#include <ops/pooling.h>
#include <ops/shape.h>
#include <string.h>

/* Slices that one kernel combines. */
enum { MAX_SLICES = 12 };

/* The options as a form of convolution with a window. `after` is what is added for the last windows
 * to fit; `counted` what averages count of it. */
typedef struct pool_form {
    ops_convolution_form f;
    ops_pool_kind kind;
    bool counts_padding;
    int64_t counted[OPS_MAX_SPATIAL];
} pool_form;

static hal_status axis_form(const ops_pool_options *o, uint32_t i, pool_form *p)
{
    ops_convolution_form *f = &p->f;
    const int64_t reach = (f->window[i] - 1) * f->dilation[i];
    f->stride[i] = o->stride[i] ? f->stride[i] : f->window[i];
    p->counted[i] = f->after[i];
    if (o->ceiling && f->length[i] <= INT32_MAX) {
        const int64_t rest = f->length[i] + f->before[i] + f->after[i] - 1 - reach;
        int64_t places = rest > 0 ? (rest + f->stride[i] - 1) / f->stride[i] + 1 : 1;
        places -= (places - 1) * f->stride[i] >= f->length[i] + f->before[i];
        const int64_t needed = (places - 1) * f->stride[i] + reach + 1;
        const int64_t more = needed - f->length[i] - f->before[i];
        f->after[i] = more > f->after[i] ? more : f->after[i];
    }
    return f->before[i] <= reach || f->before[i] == 0
               ? HAL_OK
               : ops_invalid("%s: options.before[%u]: expected less than the window of %lld "
                             "elements, %lld apart, got %lld",
                             f->function, i, (long long)f->window[i], (long long)f->dilation[i],
                             (long long)f->before[i]);
}

/* Reads options for an x with these spatial lengths, and computes the places. */
static hal_status pool_begin(const char *function, ops_pool_kind kind,
                             const ops_pool_options *options, uint32_t rank, hal_type type,
                             const int64_t *lengths, pool_form *p)
{
    if (!options || !lengths) {
        return ops_invalid("%s: %s: expected a pointer, got null", function,
                           options ? "lengths" : "options");
    }
    HAL_TRY(ops_check_size(function, "options", options->size, sizeof *options));
    if ((uint32_t)kind >= OPS_POOL_KIND_COUNT || type == HAL_TYPE_BOOL ||
        (kind == OPS_POOL_AVERAGE && !hal_type_is_float(type))) {
        return ops_invalid("%s: kind: expected an ops_pool_kind, MAX of numbers or AVERAGE of "
                           "floats, got %d of %s",
                           function, (int)kind, hal_type_name(type));
    }
    ops_convolution_options o = {.size = sizeof o, .channels_last = options->channels_last};
    memcpy(o.stride, options->stride, sizeof o.stride);
    memcpy(o.dilation, options->dilation, sizeof o.dilation);
    memcpy(o.before, options->before, sizeof o.before);
    memcpy(o.after, options->after, sizeof o.after);
    HAL_TRY(ops_convolution_begin(function, &o, rank, &p->f));
    p->kind = kind;
    p->counts_padding = options->count_padding != 0;
    for (uint32_t i = 0; i < rank; i++) {
        p->f.length[i] = lengths[i];
        p->f.window[i] =
            options->window[i] > 0 && options->window[i] <= INT32_MAX ? options->window[i] : 0;
        HAL_TRY(axis_form(options, i, p));
    }
    return ops_convolution_places(&p->f);
}

/* x with padding that no result takes. */
static ops_array *pool_pad(const pool_form *p, ops_array *x)
{
    int64_t before[OPS_MAX_RANK] = {0}, after[OPS_MAX_RANK] = {0};
    memcpy(before + 2, p->f.before, p->f.rank * sizeof *before);
    memcpy(after + 2, p->f.after, p->f.rank * sizeof *after);
    const double value = p->kind == OPS_POOL_MAX ? ops_compose_least(x->view.type) : 0;
    return ops_array_pad(OPS_PAD_CONSTANT, before, after, value, x);
}

/* Element k of the windows along some spatial axes, from `first` to `end`: a slice of x. */
static ops_array *slice_of(const ops_convolution_form *f, ops_array *x, uint32_t first,
                           uint32_t end, int64_t k)
{
    for (uint32_t i = end; x && i-- > first; k /= f->window[i]) {
        const int64_t start = k % f->window[i] * f->dilation[i];
        x = ops_array_slice(x, (int32_t)i + 2, start, f->places[i], f->stride[i]);
    }
    return x;
}

/* Combines the windows along axes from `first` to `end`: by slices, or by a reduction if one axis
 * has too many. */
static ops_array *combine(const ops_convolution_form *f, ops_pool_kind kind, ops_array *x,
                          uint32_t first, uint32_t end)
{
    int64_t volume = 1;
    for (uint32_t i = first; i < end; i++) {
        volume *= f->window[i];
    }
    if (volume > MAX_SLICES && end == first + 1) {
        x = ops_array_windows(x, (int32_t)first + 2, f->window[first], f->stride[first],
                              f->dilation[first]);
        return ops_array_reduce(kind == OPS_POOL_MAX ? OPS_REDUCE_MAX : OPS_REDUCE_SUM, -1, 0, x);
    }
    if (volume > MAX_SLICES) {
        for (uint32_t i = first; x && i < end; i++) {
            x = combine(f, kind, x, i, i + 1);
        }
        return x;
    }
    ops_array *y = NULL;
    for (int64_t k = 0; k < volume; k++) {
        ops_array *part = slice_of(f, x, first, end, k);
        y = !y ? part : kind == OPS_POOL_MAX ? ops_maximum(y, part) : ops_add(y, part);
    }
    return y;
}

/* For each place of an axis: the first element of its window from `low` on, and how many elements
 * from there to `high` there are; as arrays (I64) that broadcast to [N, C, places]. */
static ops_array *axis_first(const pool_form *p, ops_context *context, uint32_t axis, int64_t low,
                             int64_t high, ops_array **counts)
{
    const ops_convolution_form *f = &p->f;
    const int64_t step = f->dilation[axis], window = f->window[axis];
    const int64_t before = f->before[axis], beyond = f->length[axis] + f->after[axis];
    ops_array *start =
        ops_compose_count(context, f->rank, axis, f->places[axis], -before, f->stride[axis]);
    ops_array *divisor = start ? ops_compose_scalar(start, (double)step) : NULL;
    /* Quotients of numbers below 0 are rounded towards 0: the second are shifted above it. */
    ops_array *skipped = ops_array_scalar_binary(OPS_SUB, (double)(low + step - 1), start);
    skipped = ops_maximum_scalar(ops_div(skipped, divisor), 0);
    const int64_t shift = beyond / step + 1;
    ops_array *end = ops_array_scalar_binary(OPS_SUB, (double)(high - 1 + shift * step), start);
    end = ops_add_scalar(ops_div(end, divisor), (double)(1 - shift));
    end = ops_minimum_scalar(end, (double)window);
    *counts = ops_maximum_scalar(ops_sub(end, skipped), 0);
    return ops_add(start, ops_mul(skipped, divisor));
}

/* y over the number of elements that count. */
static ops_array *divide_by_counts(const pool_form *p, ops_array *y)
{
    bool is_even = true;
    double volume = 1;
    for (uint32_t i = 0; i < p->f.rank; i++) {
        const int64_t needed = (p->f.places[i] - 1) * p->f.stride[i] +
                               (p->f.window[i] - 1) * p->f.dilation[i] + 1 - p->f.before[i];
        const bool has_none = p->f.before[i] == 0 && needed <= p->f.length[i];
        is_even &= has_none || (p->counts_padding && needed <= p->f.length[i] + p->counted[i]);
        volume *= (double)p->f.window[i];
    }
    if (is_even) { /* over a power of 2 by a multiplication, which has the same bits */
        return ops_pool_divides_exactly(volume) ? ops_mul_scalar(y, 1 / volume)
                                                : ops_div_scalar(y, volume);
    }
    ops_array *counts = NULL;
    for (uint32_t i = 0; y && i < p->f.rank; i++) {
        ops_array *axis;
        const int64_t low = p->counts_padding ? -p->f.before[i] : 0;
        const int64_t high = p->f.length[i] + (p->counts_padding ? p->counted[i] : 0);
        axis_first(p, y->owner->context, i, low, high, &axis);
        axis = ops_compose_cast(y->view.type, axis);
        counts = counts ? ops_mul(counts, axis) : axis;
    }
    return ops_div(y, counts);
}

/* The maxima of x with padding; *places: where they are. */
static ops_array *maxima_with_places(const pool_form *p, ops_array *x, ops_array **places)
{
    const ops_convolution_form *f = &p->f;
    const int64_t volume = ops_convolution_volume(f, f->window);
    ops_array *best = ops_compose_scalar(x, ops_compose_least(x->view.type));
    ops_context *context = x->owner->context;
    ops_array *place = NULL, *base = NULL;
    int64_t scale = 1, scales[OPS_MAX_SPATIAL];
    for (uint32_t i = f->rank; i-- > 0; scale *= f->length[i]) {
        ops_array *counts, *first = axis_first(p, context, i, 0, f->length[i], &counts);
        ops_array *start = ops_compose_count(context, f->rank, i, f->places[i],
                                             -f->before[i] * scale, f->stride[i] * scale);
        first = ops_mul_scalar(first, (double)scale);
        place = place ? ops_add(place, first) : first;
        base = base ? ops_add(base, start) : start;
        scales[i] = scale;
    }
    for (int64_t k = 0; best && k < volume; k++) {
        int64_t offset = 0, rest = k;
        for (uint32_t i = f->rank; i-- > 0; rest /= f->window[i]) {
            offset += rest % f->window[i] * f->dilation[i] * scales[i];
        }
        ops_array *part = slice_of(f, x, 0, f->rank, k);
        ops_array *is_better = ops_gt(part, best);
        if (hal_type_is_float(x->view.type)) {
            is_better = ops_array_binary(OPS_OR, is_better, ops_ne(part, part));
        }
        best = ops_array_where(is_better, part, best);
        place = ops_array_where(is_better, ops_add_scalar(base, (double)offset), place);
    }
    *places = place;
    return best;
}

/* Whether any window reaches beyond x. */
static bool is_padded(const pool_form *p)
{
    bool found = false;
    for (uint32_t i = 0; i < p->f.rank; i++) {
        const int64_t needed =
            (p->f.places[i] - 1) * p->f.stride[i] + (p->f.window[i] - 1) * p->f.dilation[i] + 1;
        found |= p->f.before[i] > 0 || needed - p->f.before[i] > p->f.length[i];
    }
    return found;
}

/* Whether the numbers of a kernel fit: coordinates have 32 bits. */
static bool numbers_fit(const pool_form *p)
{
    const int64_t most = INT32_MAX / 4;
    bool fits = true;
    for (uint32_t i = 0; i < p->f.rank; i++) {
        fits = fits && p->f.length[i] <= most && p->f.before[i] <= most && p->f.after[i] <= most &&
               p->f.stride[i] <= most / OPS_POOL_ELEMENTS &&
               p->f.window[i] <= most / p->f.dilation[i];
    }
    return fits;
}

/* Whether the device pools such windows by one kernel that tests coordinates. Others are slices,
 * whose kernel also computes what is before and after it. */
static bool is_at_once(const pool_form *p, const ops_array *x, ops_array **places)
{
    const int64_t volume = ops_convolution_volume(&p->f, p->f.window);
    return x->owner->context->tuning->convolution.pools_at_once && volume <= OPS_POOL_ELEMENTS &&
           ops_tensor_get_element_count(&x->view) > 0 &&
           (places || is_padded(p) || volume > MAX_SLICES) && numbers_fit(p);
}

/* The kernel's form, of a window that is short enough. */
static ops_pool_form form_of(const pool_form *p, hal_type type)
{
    ops_pool_form form;
    memset(&form, 0, sizeof form); /* a part of the key */
    form.rank = p->f.rank;
    form.divisor = p->kind == OPS_POOL_MAX ? OPS_POOL_MAXIMA
                   : !is_padded(p)         ? OPS_POOL_VOLUME
                   : p->counts_padding     ? OPS_POOL_COUNTED
                                           : OPS_POOL_INSIDE;
    form.least = p->kind == OPS_POOL_MAX ? ops_compose_least(type) : 0;
    memcpy(form.window, p->f.window, form.rank * sizeof *form.window);
    memcpy(form.stride, p->f.stride, form.rank * sizeof *form.stride);
    memcpy(form.dilation, p->f.dilation, form.rank * sizeof *form.dilation);
    memcpy(form.before, p->f.before, form.rank * sizeof *form.before);
    memcpy(form.counted, p->counted, form.rank * sizeof *form.counted);
    return form;
}

/* A deferred kernel from operands [N, C, ...], whose result [N, C, lengths] has the channels last
 * in memory where those of the form are. */
static ops_array *defer_pool(const pool_form *p, ops_operation operation, const ops_pool_form *form,
                             hal_type type, const int64_t *lengths, ops_array *const *operands,
                             uint32_t count)
{
    const bool is_last = p->f.channels_last;
    const ops_tensor *x = &operands[0]->view;
    int64_t shape[OPS_MAX_RANK] = {x->shape[0]};
    ops_result result;
    memcpy(shape + (is_last ? 1 : 2), lengths, form->rank * sizeof *shape);
    shape[is_last ? form->rank + 1 : 1] = x->shape[1];
    ops_result_like(operands[0], &result);
    result.type = type;
    result.rank = form->rank + 2;
    result.shape = shape;
    result.form = form;
    result.form_bytes = sizeof *form;
    ops_array *y = ops_defer(p->f.function, operation, is_last, operands, count, &result);
    return ops_convolution_channels_second(&p->f, y);
}

static ops_array *pool_at_once(const pool_form *p, ops_array *x, ops_array **places)
{
    const hal_type type = x->view.type;
    ops_pool_form form = form_of(p, type);
    ops_array *y = defer_pool(p, OPS_OPERATION_POOL, &form, type, p->f.places, &x, 1);
    if (y && places) {
        form.divisor = OPS_POOL_PLACES;
        *places = defer_pool(p, OPS_OPERATION_POOL, &form, HAL_TYPE_I64, p->f.places, &x, 1);
    }
    return y && places && !*places ? NULL : y;
}

static ops_array *pool(const pool_form *p, ops_array *x, ops_array **places)
{
    const hal_type type = x->view.type;
    const ops_convolution_form *f = &p->f;
    if (is_at_once(p, x, places)) {
        return pool_at_once(p, x, places);
    }
    x = pool_pad(p, x);
    if (!x) {
        return NULL;
    }
    if (places) {
        return maxima_with_places(p, x, places);
    }
    if (p->kind == OPS_POOL_MAX) {
        return combine(f, p->kind, x, 0, f->rank);
    }
    ops_array *sum =
        combine(f, p->kind, ops_compose_cast(ops_compose_sum_type(type), x), 0, f->rank);
    return ops_compose_cast(type, divide_by_counts(p, sum));
}

ops_array *ops_array_pool(ops_pool_kind kind, const ops_pool_options *options, ops_array *x,
                          ops_array **places)
{
    const char *function = "ops_array_pool";
    pool_form p;
    ops_array *results[2] = {NULL, NULL};
    ops_arrays *arrays = ops_compose_begin(function, &x, 1);
    if (places) {
        *places = NULL;
    }
    if (!arrays) {
        return NULL;
    }
    const bool is_last = options && options->size == sizeof *options && options->channels_last;
    const int64_t *lengths = x->view.shape + (is_last ? 1 : 2);
    hal_status status = pool_begin(function, kind, options, x->view.rank - 2, x->view.type,
                                   x->view.rank > 2 ? lengths : NULL, &p);
    if (status == HAL_OK && places && kind != OPS_POOL_MAX) {
        status = ops_invalid("%s: places: expected null for averages, got a pointer", function);
    }
    if (status == HAL_OK) {
        ops_array *y =
            pool(&p, ops_convolution_channels_second(&p.f, x), places ? &results[1] : NULL);
        results[0] = ops_convolution_channels_last(&p.f, y);
        results[1] = results[0] ? results[1] : NULL;
    }
    ops_compose_end_all(arrays, results, 2);
    if (places) {
        *places = results[1];
    }
    return results[0];
}

/* Checks places, which are those of the pooling. */
static hal_status check_places(const char *function, const ops_array *dy, const ops_array *places)
{
    char text[2][OPS_TEXT_BYTES];
    return ops_same_shape(&dy->view, &places->view) && places->view.type == HAL_TYPE_I64
               ? HAL_OK
               : ops_invalid("%s: places: expected those of the pooling, for dy %s, got %s",
                             function, ops_describe(&dy->view, text[0]),
                             ops_describe(&places->view, text[1]));
}

ops_array *ops_pool_scatter(const char *function, uint32_t rank, const int64_t *lengths,
                            ops_array *dy, ops_array *places)
{
    int64_t shape[OPS_MAX_RANK] = {dy->view.shape[0], dy->view.shape[1]};
    int64_t flat[3] = {shape[0], shape[1], 1}, picked[3] = {shape[0], shape[1], 1};
    if (check_places(function, dy, places)) {
        return NULL;
    }
    for (uint32_t i = 0; i < rank; i++) {
        shape[i + 2] = lengths[i];
        flat[2] *= lengths[i];
        picked[2] *= dy->view.shape[i + 2];
    }
    ops_array *zeros = ops_array_full(dy->owner->context, dy->view.type, 3, flat, 0);
    ops_array *dx =
        ops_array_scatter(OPS_SCATTER_ADD, 2, zeros, ops_array_reshape(places, 3, picked),
                          ops_array_reshape(dy, 3, picked));
    return dx ? ops_array_reshape(dx, rank + 2, shape) : NULL;
}

/* Whether a window may lie beyond x altogether. */
static bool may_lack_elements(const pool_form *p)
{
    bool found = false;
    for (uint32_t i = 0; i < p->f.rank; i++) {
        const int64_t extent = (p->f.window[i] - 1) * p->f.dilation[i] + 1;
        const int64_t last = (p->f.places[i] - 1) * p->f.stride[i] - p->f.before[i];
        found |= p->f.before[i] >= extent || last >= p->f.length[i];
        found |= p->f.dilation[i] > 1 && is_padded(p); /* x may be between two elements */
    }
    return found;
}

/* dy, and 0 for windows without elements: their places are those of other ones. */
static ops_array *of_windows_with_elements(const pool_form *p, ops_array *dy)
{
    if (!may_lack_elements(p)) {
        return dy;
    }
    ops_array *all = NULL;
    for (uint32_t i = 0; i < p->f.rank; i++) {
        ops_array *counts;
        axis_first(p, dy->owner->context, i, 0, p->f.length[i], &counts);
        ops_array *has = ops_gt(counts, ops_compose_scalar(counts, 0));
        all = all ? ops_array_binary(OPS_AND, all, has) : has;
    }
    return ops_array_where(all, dy, ops_compose_scalar(dy, 0));
}

/* The sums of dy over the windows that each element of x is in: dy over its counts with zeros
 * between, and windows with steps of 1. */
static ops_array *gradient_of_averages(const pool_form *p, ops_array *dy)
{
    const hal_type type = dy->view.type;
    ops_convolution_form f = p->f;
    int64_t shape[OPS_MAX_RANK] = {dy->view.shape[0], dy->view.shape[1]};
    ops_tensor target;
    dy = divide_by_counts(p, ops_compose_cast(ops_compose_sum_type(type), dy));
    for (uint32_t i = 0; i < f.rank; i++) {
        shape[i + 2] = f.length[i] + f.before[i] + f.after[i] + (f.window[i] - 1) * f.dilation[i];
    }
    ops_array *zeros =
        dy ? ops_array_full(dy->owner->context, dy->view.type, f.rank + 2, shape, 0) : NULL;
    if (!zeros || ops_array_describe(zeros, &target)) {
        return NULL;
    }
    for (uint32_t i = 0; i < f.rank; i++) {
        const int64_t reach = (f.window[i] - 1) * f.dilation[i];
        if (ops_tensor_slice(&target, (int32_t)i + 2, reach, f.places[i], f.stride[i], &target)) {
            return NULL;
        }
    }
    ops_array *sum = ops_array_update(zeros, &target, dy);
    for (uint32_t i = 0; sum && i < f.rank; i++) {
        f.places[i] = f.length[i];
        f.stride[i] = 1;
        sum = ops_array_slice(sum, (int32_t)i + 2, f.before[i],
                              f.length[i] + (f.window[i] - 1) * f.dilation[i], 1);
    }
    return sum ? ops_compose_cast(type, combine(&f, OPS_POOL_AVERAGE, sum, 0, f.rank)) : NULL;
}

/* Whether one kernel adds what the windows of an element give. */
static bool gradient_is_at_once(const pool_form *p, const ops_pool_form *form, const ops_array *dy)
{
    return dy->owner->context->tuning->convolution.pools_at_once && numbers_fit(p) &&
           ops_pool_windows_of_element(form) <= OPS_POOL_ELEMENTS;
}

static ops_array *gradient_at_once(const pool_form *p, const ops_pool_form *form, ops_array *dy,
                                   ops_array *places)
{
    if (places && p->f.channels_last) { /* neighbours along channels, as of dy */
        places = ops_convolution_row_major(ops_convolution_channels_last(&p->f, places));
        places = ops_convolution_channels_second(&p->f, places);
    }
    ops_array *const operands[2] = {dy, places};
    return p->kind == OPS_POOL_MAX && !places
               ? NULL
               : defer_pool(p, OPS_OPERATION_POOL_GRADIENT, form, dy->view.type, p->f.length,
                            operands, places ? 2 : 1);
}

static ops_array *gradient(const pool_form *p, ops_array *dy, ops_array *places)
{
    const ops_convolution_form *f = &p->f;
    dy = ops_convolution_channels_second(f, dy);
    bool fits = dy && (places != NULL) == (p->kind == OPS_POOL_MAX);
    for (uint32_t i = 0; fits && i < f->rank; i++) {
        fits = dy->view.shape[i + 2] == f->places[i];
    }
    if (!fits) {
        if (dy) {
            char text[OPS_TEXT_BYTES];
            ops_invalid("%s: dy, places: expected the gradient of the pooling's result, and places "
                        "of maxima only, got %s",
                        f->function, ops_describe(&dy->view, text));
        }
        return NULL;
    }
    ops_pool_form form = form_of(p, dy->view.type);
    form.least = 0;
    form.divisor = places ? OPS_POOL_PLACES : form.divisor;
    if (gradient_is_at_once(p, &form, dy)) {
        const bool is_checked = !places || check_places(f->function, dy, places) == HAL_OK;
        dy = is_checked ? gradient_at_once(p, &form, dy, places) : NULL;
        return ops_convolution_channels_last(f, dy);
    }
    ops_array *dx = p->kind == OPS_POOL_MAX
                        ? ops_pool_scatter(f->function, f->rank, f->length,
                                           of_windows_with_elements(p, dy), places)
                        : gradient_of_averages(p, dy);
    return ops_convolution_channels_last(f, dx);
}

ops_array *ops_array_pool_gradient(ops_pool_kind kind, const ops_pool_options *options,
                                   ops_array *dy, ops_array *places, const int64_t *lengths)
{
    const char *function = "ops_array_pool_gradient";
    pool_form p;
    ops_array *const operands[2] = {dy, places};
    ops_arrays *arrays = ops_compose_begin(function, operands, places ? 2 : 1);
    if (!arrays) {
        return NULL;
    }
    const hal_status status =
        pool_begin(function, kind, options, dy->view.rank - 2, dy->view.type, lengths, &p);
    return ops_compose_end(arrays, status == HAL_OK ? gradient(&p, dy, places) : NULL);
}

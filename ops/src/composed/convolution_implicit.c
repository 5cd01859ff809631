/* Convolutions that copy no windows, see convolution_implicit.h. */
#include "convolution_implicit.h"

#include "gemm/windows.h"
#include "tensor/context.h"

#include <stdlib.h>
#include <string.h>

/* Multiplications of one result, results of a group along both axes. */
static void product_lengths(const ops_convolution_form *f, bool is_gradient, int64_t *m, int64_t *n,
                            int64_t *k)
{
    const int64_t places = f->images * ops_convolution_volume(f, f->places);
    const int64_t window = f->inputs * ops_convolution_volume(f, f->window);
    *m = f->outputs;
    *n = is_gradient ? window : places;
    *k = is_gradient ? places : window;
}

static bool has_padding(const ops_convolution_form *f)
{
    bool padded = false;
    for (uint32_t i = 0; i < f->rank; i++) {
        padded |= f->before[i] > 0 || f->after[i] > 0;
    }
    return padded;
}

/* Windows of one element, 1 apart: the image is the matrix. */
static bool is_plain(const ops_convolution_form *f)
{
    bool plain = !has_padding(f) && ops_convolution_volume(f, f->window) == 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        plain &= f->stride[i] == 1;
    }
    return plain;
}

/* How often copies of the image write or read it: into zeros, if there are any, and with channels
 * last. Windows of one element are read as they are for the gradient, which their copies of dy are
 * not. */
static double image_copies(const ops_convolution_form *f, bool is_gradient)
{
    if (has_padding(f)) {
        return f->channels_last ? 0 : 1; /* copied windows have a copy with zeros too */
    }
    const bool is_read = is_gradient && ops_convolution_volume(f, f->window) == 1;
    return f->channels_last || is_read ? 0 : 2;
}

/* Elements of all windows. */
static double window_elements(const ops_convolution_form *f)
{
    return (double)f->images * (double)f->groups * (double)f->inputs *
           (double)ops_convolution_volume(f, f->places) *
           (double)ops_convolution_volume(f, f->window);
}

/* The size of a copied window's elements: gradients of narrow floats in pieces are added in F32, to
 * which x and dy are cast. */
static double copied_size(const ops_convolution_form *f, const ops_context *context, hal_type type,
                          bool is_gradient)
{
    const double size = hal_type_size(type);
    const double most = (double)context->tuning->convolution.piece_bytes;
    return is_gradient && hal_type_is_narrow_float(type) && window_elements(f) * size > most
               ? hal_type_size(HAL_TYPE_F32)
               : size;
}

/* Bytes that copies write or read: of the windows, whose elements have `wide` bytes, and for the
 * gradient of dy with images along k, less those of the image and of the weights in another order.
 */
static double bytes_saved(const ops_convolution_form *f, hal_type type, double wide,
                          bool is_gradient)
{
    const double size = hal_type_size(type), images = (double)f->images;
    const double inputs = (double)f->groups * (double)f->inputs;
    const double outputs = (double)f->groups * (double)f->outputs;
    const double places = (double)ops_convolution_volume(f, f->places);
    const double window = (double)ops_convolution_volume(f, f->window);
    double image = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        image *= (double)(f->length[i] + f->before[i] + f->after[i]);
    }
    const double others = is_gradient   ? -images * outputs * places
                          : window == 1 ? 0
                                        : (double)f->outputs * inputs * window;
    return 2 * wide * window_elements(f) -
           size * (2 * others + image_copies(f, is_gradient) * images * inputs * image);
}

/* How many times as long as the multiplications of results those of the product of copied windows
 * take: with channels first it has a batch of images, whose places are whole tiles. */
static double copied_share(const ops_convolution_form *f, bool is_gradient)
{
    enum { TILE = 32 };
    const int64_t places = ops_convolution_volume(f, f->places);
    return is_gradient || f->channels_last || f->images == 1
               ? 1.0
               : (double)((places + TILE - 1) / TILE * TILE) / (double)places;
}

/* Compares the time of both ways, on one compute unit. */
static bool implicit_pays(const ops_convolution_form *f, const ops_context *context, hal_type type,
                          bool is_gradient)
{
    const ops_convolution_tuning *tuning = &context->tuning->convolution;
    const double size = hal_type_size(type), copied = copied_size(f, context, type, is_gradient);
    const bool by_units = f->precision != HAL_GEMM_STRICT && size < 8;
    const double *step = by_units ? tuning->implicit_units_ns : tuning->implicit_ns;
    /* Matrix units multiply F64 as fast as F32 is multiplied without them. */
    const bool is_slow = size == 8 && !(context->info->matrix_types & HAL_TYPE_BIT(type));
    const double wide = by_units ? size / 2 : is_slow ? 2 : 1;
    int64_t m, n, k;
    product_lengths(f, is_gradient, &m, &n, &k);
    const double products = wide * (double)f->groups * (double)m * (double)n * (double)k;
    return tuning->implicit_copy_rate > 0 &&
           bytes_saved(f, type, copied, is_gradient) / tuning->implicit_copy_rate +
                   copied_share(f, is_gradient) * step[0] * products *
                       (by_units ? copied / size : 1) >
               step[1] * products + context->info->compute_units * tuning->implicit_launch_ns;
}

bool ops_convolution_is_implicit(const ops_convolution_form *f, const ops_array *x,
                                 bool is_gradient)
{
    const ops_context *context = x->owner->context;
    int64_t m, n, k;
    product_lengths(f, is_gradient, &m, &n, &k);
    /* Channels are what neighbours in memory are. */
    if (context->convolution == OPS_CONVOLUTION_COPIED || f->inputs == 1 || m == 0 || n == 0 ||
        k == 0 || (is_plain(f) && !is_gradient) || !ops_gemm_windows_fit(context, m, n, k)) {
        return false;
    }
    return context->convolution == OPS_CONVOLUTION_IMPLICIT ||
           implicit_pays(f, context, x->view.type, is_gradient);
}

/* `channels` with zeros to whole accesses of matrix units; odd ones are read one by one. Fewer than
 * half of an access would multiply mostly zeros. */
static int64_t whole_accesses(const ops_convolution_form *f, const ops_array *x, bool is_gradient,
                              int64_t channels)
{
    int64_t m, n, k;
    product_lengths(f, is_gradient, &m, &n, &k);
    const int64_t access =
        ops_gemm_windows_access(x->owner->context, f->precision, m, n, k, x->view.type);
    return f->groups > 1 || 2 * channels < access ? channels
                                                  : (channels + access - 1) / access * access;
}

int64_t ops_convolution_implicit_channels(const ops_convolution_form *f, const ops_array *x)
{
    return whole_accesses(f, x, false, x->view.shape[1]);
}

ops_array *ops_convolution_place_last(const ops_convolution_form *form, const int64_t *start,
                                      const int64_t *step, const int64_t *lengths, int64_t channels,
                                      ops_array *x)
{
    ops_convolution_form f = *form;
    f.channels_last = true;
    x = ops_convolution_place(&f, start, step, lengths, channels, x);
    x = x ? ops_convolution_row_major(ops_convolution_channels_last(&f, x)) : NULL;
    return x ? ops_convolution_channels_second(&f, x) : NULL;
}

static ops_gemm_windows_form windows_form(const ops_convolution_form *f, bool is_gradient)
{
    ops_gemm_windows_form form;
    memset(&form, 0, sizeof form); /* a part of the key */
    form.rank = f->rank;
    form.precision = f->precision;
    form.activation = is_gradient ? 0 : f->activation;
    form.is_gradient = is_gradient;
    form.groups = f->groups;
    memcpy(form.stride, f->stride, f->rank * sizeof *form.stride);
    memcpy(form.dilation, f->dilation, f->rank * sizeof *form.dilation);
    return form;
}

/* Weights [O, C, window] as [O, window, C] without gaps, with zeros up to `channels`. */
static ops_array *weights_last(const ops_convolution_form *f, int64_t channels, ops_array *w)
{
    static const int64_t at[OPS_MAX_RANK] = {0};
    int32_t axes[OPS_MAX_RANK] = {0};
    int64_t shape[OPS_MAX_RANK];
    axes[f->rank + 1] = 1;
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[i + 1] = (int32_t)i + 2;
    }
    w = ops_array_permute(w, axes);
    if (!w || w->view.shape[f->rank + 1] == channels) {
        return ops_convolution_row_major(w);
    }
    shape[ops_compose_shape(w, shape) - 1] = channels;
    return ops_compose_pad(at, shape, 0, w);
}

ops_array *ops_convolution_implicit(const ops_convolution_form *f, ops_array *x, ops_array *w,
                                    ops_array *bias)
{
    const ops_gemm_windows_form form = windows_form(f, false);
    int64_t shape[OPS_MAX_RANK] = {f->images};
    ops_result result;
    w = x ? weights_last(f, x->view.shape[1] / f->groups, w) : NULL;
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
    return ops_defer("ops_array_convolution", OPS_OPERATION_CONVOLUTION, f->channels_last, operands,
                     bias ? 3 : 2, &result);
}

/* Whether products read elements of an image, without a copy, by whole accesses of matrix units. */
static bool is_aligned(const ops_convolution_form *f, const ops_array *x)
{
    const int64_t places = ops_convolution_volume(f, f->places);
    return whole_accesses(f, x, true, places) == places;
}

/* x for the gradient: with windows of one element the elements that they read, in x's order. */
static ops_array *gradient_image(ops_convolution_form *f, ops_array *x)
{
    static const int64_t step[OPS_MAX_SPATIAL] = {1, 1, 1};
    const int64_t channels = whole_accesses(f, x, true, x->view.shape[1]);
    int64_t lengths[OPS_MAX_SPATIAL] = {0};
    const bool is_plain_window = !has_padding(f) && ops_convolution_volume(f, f->window) == 1;
    if (f->channels_last || !is_plain_window || !is_aligned(f, x)) {
        for (uint32_t i = 0; i < f->rank; i++) {
            lengths[i] = f->length[i] + f->before[i] + f->after[i];
        }
        return ops_convolution_place_last(f, f->before, step, lengths, channels, x);
    }
    for (uint32_t i = 0; x && i < f->rank; i++) {
        x = ops_compose_slice(x, i + 2, 0, f->places[i], f->stride[i]);
        f->stride[i] = 1;
    }
    return ops_convolution_row_major(x);
}

/* dy for the gradient: in the caller's order, or with channels last where that has whole accesses.
 */
static ops_array *gradient_results(const ops_convolution_form *f, ops_array *dy)
{
    static const int64_t start[OPS_MAX_SPATIAL] = {0}, step[OPS_MAX_SPATIAL] = {1, 1, 1};
    if (!f->channels_last && is_aligned(f, dy)) {
        return ops_convolution_row_major(dy);
    }
    const int64_t channels = whole_accesses(f, dy, true, dy->view.shape[1]);
    return ops_convolution_place_last(f, start, step, f->places, channels, dy);
}

/* [groups O, window, C] of x and dy with further channels as [groups O, C, window]. */
static ops_array *gradient_weights(const ops_convolution_form *f, ops_array *dw)
{
    int32_t axes[OPS_MAX_RANK] = {0, (int32_t)f->rank + 1};
    for (uint32_t i = 0; i < f->rank; i++) {
        axes[2 + i] = (int32_t)i + 1;
    }
    dw = ops_compose_slice(dw, 0, 0, f->groups * f->outputs, 1);
    dw = dw ? ops_compose_slice(dw, f->rank + 1, 0, f->inputs, 1) : NULL;
    return dw ? ops_array_permute(dw, axes) : NULL;
}

/* Whether each group has a product by itself: products of a batch are not cut along k, which few
 * tiles take long for, and each further product has some kernels. */
static bool has_products_of_groups(const ops_convolution_form *f, const ops_context *context)
{
    enum { TILE = 64, STEPS_OF_GROUP = 600 };
    int64_t m, n, k;
    product_lengths(f, true, &m, &n, &k);
    const int64_t tiles = ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
    return f->groups > 1 && k / STEPS_OF_GROUP > f->groups &&
           f->groups * tiles < (int64_t)context->info->compute_units;
}

static ops_array *weights_of_groups(const ops_convolution_form *form, ops_array *x, ops_array *dy)
{
    ops_convolution_form f = *form;
    ops_array **parts = calloc((size_t)form->groups, sizeof(ops_array *));
    bool is_made = parts != NULL;
    f.groups = 1;
    for (int64_t g = 0; g < form->groups && is_made; g++) {
        ops_array *of_x = ops_compose_slice(x, 1, g * f.inputs, f.inputs, 1);
        ops_array *of_dy = ops_compose_slice(dy, 1, g * f.outputs, f.outputs, 1);
        parts[g] = of_x && of_dy ? ops_convolution_implicit_weights(&f, of_x, of_dy) : NULL;
        is_made = parts[g] != NULL;
    }
    ops_array *dw = is_made ? ops_array_concatenate(0, parts, (uint32_t)form->groups) : NULL;
    free(parts);
    return dw;
}

ops_array *ops_convolution_implicit_weights(const ops_convolution_form *form, ops_array *x,
                                            ops_array *dy)
{
    ops_convolution_form f = *form;
    int64_t shape[OPS_MAX_RANK] = {0};
    ops_result result;
    if (has_products_of_groups(form, x->owner->context)) {
        return weights_of_groups(form, x, dy);
    }
    dy = gradient_results(&f, dy);
    x = gradient_image(&f, x);
    if (!x || !dy) {
        return NULL;
    }
    const ops_gemm_windows_form windows = windows_form(&f, true);
    ops_array *const operands[2] = {x, dy};
    shape[0] = dy->view.shape[1];
    memcpy(shape + 1, f.window, f.rank * sizeof *shape);
    shape[f.rank + 1] = x->view.shape[1] / f.groups;
    ops_result_like(x, &result);
    result.rank = f.rank + 2;
    result.shape = shape;
    result.form = &windows;
    result.form_bytes = sizeof windows;
    ops_array *dw = ops_defer("ops_array_convolution_weights", OPS_OPERATION_CONVOLUTION, 0,
                              operands, 2, &result);
    return dw ? gradient_weights(&f, dw) : NULL;
}

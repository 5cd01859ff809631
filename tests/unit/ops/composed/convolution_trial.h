/* Random convolutions of whole numbers, whose sums are exact: every bit of the result is known.
 * Included by test_ops_convolution_implicit.c and test_ops_convolution_units.c. */
#ifndef TESTS_UNIT_OPS_COMPOSED_CONVOLUTION_TRIAL_H
#define TESTS_UNIT_OPS_COMPOSED_CONVOLUTION_TRIAL_H

#include "ops_arrays.h"
#include "ops_fixture.h"

#include <ops/convolution.h>

enum { MAX_RESULTS = 1 << 15 };

typedef enum convolution_kind { FORWARD, INPUT, WEIGHTS, KIND_COUNT } convolution_kind;

/* Channels of one group. */
typedef struct trial {
    hal_type type;
    uint32_t rank, precision;
    bool channels_last, has_bias;
    int64_t images, groups, inputs, outputs;
    int64_t length[3], window[3], stride[3], dilation[3], before[3], after[3];
} trial;

static uint32_t state_of_numbers;
static void (*check_device)(void); /* after each computation, or null */

static inline int64_t number(int64_t least, int64_t most)
{
    state_of_numbers = state_of_numbers * 1664525u + 1013904223u;
    return least + (int64_t)(state_of_numbers >> 8) % (most - least + 1);
}

/* An array on the device and its elements: whole numbers from -3 to 3, of which sums of products
 * are exact in F32. */
typedef struct whole {
    ops_array *array;
    float *elements;
    int64_t shape[5];
} whole;

static inline whole whole_numbers(hal_type type, uint32_t rank, const int64_t *shape)
{
    whole x = {NULL, NULL, {1, 1, 1, 1, 1}};
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        x.shape[i] = shape[i];
        count *= shape[i];
    }
    x.elements = malloc((size_t)count * sizeof *x.elements);
    assert_non_null(x.elements);
    for (int64_t i = 0; i < count; i++) {
        x.elements[i] = (float)number(-3, 3);
    }
    x.array = ops_array_from_host(test_context, HAL_TYPE_F32, rank, shape, x.elements);
    x.array = made(ops_array_cast(type, made(x.array)));
    return x;
}

static inline void image_shape(const trial *t, int64_t channels, const int64_t *lengths,
                               int64_t *shape)
{
    shape[0] = t->images;
    shape[t->channels_last ? t->rank + 1 : 1] = channels;
    memcpy(shape + (t->channels_last ? 1 : 2), lengths, t->rank * sizeof *shape);
}

static inline ops_convolution_options options_of(const trial *t)
{
    ops_convolution_options o = {.size = sizeof o,
                                 .channels_last = t->channels_last,
                                 .precision = t->precision,
                                 .groups = t->groups};
    memcpy(o.stride, t->stride, sizeof o.stride);
    memcpy(o.dilation, t->dilation, sizeof o.dilation);
    memcpy(o.before, t->before, sizeof o.before);
    memcpy(o.after, t->after, sizeof o.after);
    return o;
}

static inline void draw(trial *t, bool is_large)
{
    *t = (trial){.type = HAL_TYPE_F32,
                 .rank = (uint32_t)number(1, is_large ? 2 : 3),
                 .channels_last = number(0, 1),
                 .has_bias = number(0, 1),
                 .images = number(1, 3),
                 .groups = number(1, is_large ? 1 : 3),
                 .inputs = is_large ? number(11, 19) : number(2, 5),
                 .outputs = is_large ? number(16, 33) : number(1, 5)};
    if (is_large && number(0, 1)) { /* wide accesses */
        t->inputs = 16;
        t->outputs = 32;
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        t->window[i] = number(is_large ? 2 : 1, 3); /* the plugin multiplies plain ones */
        t->stride[i] = number(1, 2);
        t->dilation[i] = number(1, 2);
        t->before[i] = number(0, 2);
        t->after[i] = number(0, 1);
        t->length[i] = (t->window[i] - 1) * t->dilation[i] + number(1, t->rank == 1 ? 40 : 6);
    }
}

static inline void places_of(const trial *t, int64_t places[3])
{
    for (uint32_t i = 0; i < t->rank; i++) {
        const int64_t reach = (t->window[i] - 1) * t->dilation[i];
        places[i] = (t->length[i] + t->before[i] + t->after[i] - 1 - reach) / t->stride[i] + 1;
    }
}

/* The elements of a result as F32; returns their number. */
static inline int64_t elements_of(ops_array *y, float *elements)
{
    const int64_t count = ops_array_get_element_count(made(y));
    assert_in_range(count, 1, MAX_RESULTS);
    ok(ops_array_read(made(ops_array_cast(HAL_TYPE_F32, y)), (uint64_t)count * sizeof *elements,
                      elements));
    if (check_device) {
        check_device();
    }
    return count;
}

/* The element of an image [N, C, lengths], which may have its channels last. */
static inline float *image_element(const trial *t, whole *x, int64_t image, int64_t channel,
                                   const int64_t at[3])
{
    int64_t places[5];
    int64_t index = 0;
    places[0] = image;
    places[t->channels_last ? t->rank + 1 : 1] = channel;
    memcpy(places + (t->channels_last ? 1 : 2), at, t->rank * sizeof *at);
    for (uint32_t i = 0; i < t->rank + 2; i++) {
        index = index * x->shape[i] + places[i];
    }
    return &x->elements[index];
}

/* Moves to the next element of lengths of rank 3; false after the last one. */
static inline bool next_element(const int64_t lengths[3], uint32_t rank, int64_t at[3])
{
    for (uint32_t i = rank; i-- > 0; at[i] = 0) {
        if (++at[i] < lengths[i]) {
            return true;
        }
    }
    return false;
}

/* Adds the products of one channel of y with one of x to the operand that the kind computes. */
static inline void add_channel(const trial *t, convolution_kind kind, whole x[3], int64_t image,
                               int64_t output, int64_t input)
{
    int64_t places[3], p[3] = {0};
    places_of(t, places);
    const int64_t channel = output / t->outputs * t->inputs + input;
    do {
        int64_t k[3] = {0}, number_of_k = 0;
        do {
            int64_t at[3] = {0};
            bool inside = true;
            for (uint32_t i = 0; i < t->rank; i++) {
                at[i] = p[i] * t->stride[i] + k[i] * t->dilation[i] - t->before[i];
                inside &= at[i] >= 0 && at[i] < t->length[i];
            }
            int64_t volume = 1;
            for (uint32_t i = 0; i < t->rank; i++) {
                volume *= t->window[i];
            }
            float *w = &x[1].elements[(output * t->inputs + input) * volume + number_of_k++];
            float *y = image_element(t, &x[2], image, output, p);
            if (inside) {
                float *of_x = image_element(t, &x[0], image, channel, at);
                float *to = kind == FORWARD ? y : kind == INPUT ? of_x : w;
                *to += kind == FORWARD ? *of_x * *w : kind == INPUT ? *y * *w : *of_x * *y;
            }
        } while (next_element(t->window, t->rank, k));
    } while (next_element(places, t->rank, p));
}

/* Replaces the elements of the operand that the kind computes; the array stays. */
static inline void reference(const trial *t, convolution_kind kind, whole x[3], const whole *bias)
{
    whole *y = &x[kind == FORWARD ? 2 : kind == INPUT ? 0 : 1];
    const int64_t count = y->shape[0] * y->shape[1] * y->shape[2] * y->shape[3] * y->shape[4];
    memset(y->elements, 0, (size_t)count * sizeof *y->elements);
    for (int64_t image = 0; image < t->images; image++) {
        for (int64_t o = 0; o < t->groups * t->outputs; o++) {
            for (int64_t c = 0; c < t->inputs; c++) {
                add_channel(t, kind, x, image, o, c);
            }
            int64_t places[3], p[3] = {0};
            places_of(t, places);
            do {
                *image_element(t, &x[2], image, o, p) += bias ? bias->elements[o] : 0;
            } while (kind == FORWARD && next_element(places, t->rank, p));
        }
    }
}

static inline ops_array *compute(const trial *t, convolution_kind kind, const whole x[3],
                                 const whole *bias)
{
    const ops_convolution_options o = options_of(t);
    switch (kind) {
    case FORWARD:
        return ops_array_convolution(&o, x[0].array, x[1].array, bias ? bias->array : NULL);
    case INPUT:
        return ops_array_convolution_transposed(&o, x[2].array, x[1].array, NULL, t->length);
    default:
        return ops_array_convolution_weights(&o, x[0].array, x[2].array, t->window);
    }
}

/* Computes a trial as the way says, and compares every bit with the exact result. */
static inline void check_way(const trial *t, convolution_kind kind, ops_convolution_way way)
{
    static float wanted[MAX_RESULTS], got[MAX_RESULTS];
    int64_t x_shape[5], y_shape[5], w_shape[5] = {t->groups * t->outputs, t->inputs}, places[3];
    places_of(t, places);
    image_shape(t, t->groups * t->inputs, t->length, x_shape);
    image_shape(t, t->groups * t->outputs, places, y_shape);
    memcpy(w_shape + 2, t->window, t->rank * sizeof *w_shape);
    ok(ops_scope_begin(test_context));
    whole x[3] = {whole_numbers(t->type, t->rank + 2, x_shape),
                  whole_numbers(t->type, t->rank + 2, w_shape),
                  whole_numbers(t->type, t->rank + 2, y_shape)};
    whole all = whole_numbers(t->type, 1, w_shape);
    const whole *bias = t->has_bias && kind == FORWARD ? &all : NULL;
    ops_context_set_convolution(test_context, way);
    const int64_t count = elements_of(compute(t, kind, x, bias), got);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    reference(t, kind, x, bias);
    const whole *y = &x[kind == FORWARD ? 2 : kind == INPUT ? 0 : 1];
    ops_array *exact =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, t->rank + 2, y->shape, y->elements));
    assert_int_equal(elements_of(ops_array_cast(t->type, exact), wanted), count);
    ok(ops_scope_end(test_context));
    for (int i = 0; i < 3; i++) {
        free(x[i].elements);
    }
    free(all.elements);
    for (int64_t i = 0; i < count; i++) {
        if (wanted[i] != got[i]) {
            fail_msg("kind %d, %s, rank %u, images %d, groups %d, %d x %d, last %d, precision %u: "
                     "element %d is %g, not %g",
                     kind, hal_type_name(t->type), t->rank, (int)t->images, (int)t->groups,
                     (int)t->inputs, (int)t->outputs, t->channels_last, t->precision, (int)i,
                     (double)got[i], (double)wanted[i]);
        }
    }
}

#endif

/* The shapes of a convolution, checked, and its computation on arrays [N, C, lengths]. */
#ifndef OPS_SRC_COMPOSED_CONVOLUTION_H
#define OPS_SRC_COMPOSED_CONVOLUTION_H

#include "compose.h"

#include <ops/convolution.h>

/* Options without their defaults, and lengths. Channels are the second axis of all arrays, whatever
 * the caller's order. */
typedef struct ops_convolution_form {
    const char *function; /* in messages */
    uint32_t rank;        /* of the spatial axes */
    bool channels_last;   /* of the caller's arrays */
    uint32_t precision;
    ops_unary_function activation;
    int64_t images, groups, inputs, outputs; /* channels of one group */
    int64_t length[OPS_MAX_SPATIAL];         /* of the input without padding */
    int64_t window[OPS_MAX_SPATIAL], places[OPS_MAX_SPATIAL];
    int64_t stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
    int64_t before[OPS_MAX_SPATIAL], after[OPS_MAX_SPATIAL];
} ops_convolution_form;

/* Reads the options. */
hal_status ops_convolution_begin(const char *function, const ops_convolution_options *options,
                                 uint32_t rank, ops_convolution_form *form);

/* Computes `places` from the other lengths. Errors: INVALID_ARGUMENT for windows that do not
 * fit. */
hal_status ops_convolution_places(ops_convolution_form *form);

/* A view of an array of the caller with the channels second, and back. */
ops_array *ops_convolution_channels_second(const ops_convolution_form *form, ops_array *x);
ops_array *ops_convolution_channels_last(const ops_convolution_form *form, ops_array *x);

/* x, or a copy of it without gaps in the order of its axes; null stays null. */
ops_array *ops_convolution_row_major(ops_array *x);

/* x [N, C, lengths] among zeros, in the caller's order in memory: element i of spatial axis a is
 * start[a] + i * step[a] of `lengths`, and those outside of it are left out; after its channels are
 * zeros up to `channels`. x itself, or a part of it, where nothing is around it. */
ops_array *ops_convolution_place(const ops_convolution_form *form, const int64_t *start,
                                 const int64_t *step, const int64_t *lengths, int64_t channels,
                                 ops_array *x);

/* x with its padding; x itself without any. */
ops_array *ops_convolution_pad(const ops_convolution_form *form, ops_array *x);

/* The windows of x, which has its padding: a view [N, channels, places, window]. */
ops_array *ops_convolution_windows(const ops_convolution_form *form, ops_array *x);

/* What the result is where no window reads x, in the order of the caller's axes: the bias, null or
 * [O], with activation. x: of the result's type. */
ops_array *ops_convolution_background(const ops_convolution_form *form, const ops_array *x,
                                      ops_array *bias);

/* The elements of `lengths`. */
int64_t ops_convolution_volume(const ops_convolution_form *form, const int64_t *lengths);

/* Whether each work-item sums the windows of its result, which then pads by itself; the caller's
 * result, with its channels where the caller has them. */
bool ops_convolution_is_depthwise(const ops_convolution_form *form);
ops_array *ops_convolution_depthwise(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                     ops_array *bias);

/* Pieces whose windows stay in a cache, or as few as memory allows: images of one, and lines of an
 * image along the first spatial axis. Errors: INVALID_ARGUMENT for more than a program can want. */
hal_status ops_convolution_pieces(const ops_convolution_form *form, const ops_array *x,
                                  int64_t *images, int64_t *lines);

/* The convolution of x, which has its padding, in pieces that the limit of memory allows. `bias` is
 * null or [O]. */
ops_array *ops_convolution_compute(const ops_convolution_form *form, ops_array *x, ops_array *w,
                                   ops_array *bias);

#endif

/* Pooling of arrays in one to three dimensions, with gradients. */
#ifndef OPS_POOLING_H
#define OPS_POOLING_H

#include <ops/convolution.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ops_pool_kind {
    OPS_POOL_MAX,     /* of any numbers; NaN if any is NaN */
    OPS_POOL_AVERAGE, /* of floats; in F32 for narrow ones, rounded once */
    OPS_POOL_KIND_COUNT
} ops_pool_kind;

/* One number for each spatial axis. Zeros are the defaults, except for the window. */
typedef struct ops_pool_options {
    uint32_t size;          /* sizeof(ops_pool_options) */
    uint32_t channels_last; /* of x and the result */
    uint32_t ceiling;       /* 1: a last window may reach beyond the end, if it begins before it */
    uint32_t count_padding; /* 1: averages count the padding, but nothing beyond it */
    int64_t window[OPS_MAX_SPATIAL];
    int64_t stride[OPS_MAX_SPATIAL];   /* between windows; 0: the window's length */
    int64_t dilation[OPS_MAX_SPATIAL]; /* between elements of a window; 0: 1 */
    int64_t before[OPS_MAX_SPATIAL]; /* padding at the start of each axis, which no maximum takes */
    int64_t after[OPS_MAX_SPATIAL];  /* padding at the end of each axis */
} ops_pool_options;

/* The maximum or average of each window: x is [N, C, lengths], the result [N, C, places]; with
 * channels_last [N, lengths, C] and [N, places, C]. `places` of MAX, unless null, receives the
 * place (I64) of each maximum, the first one or that of the last NaN, in the spatial axes of x as
 * one axis, row-major and without padding; it is [N, C, places] whatever the order of channels.
 * A window without elements has any place, and its gradient goes nowhere.
 * Windows of up to 12 elements take one kernel, on GPUs those of up to 64 and with padding, also
 * with places. Longer ones are pooled along one axis after the other; padding takes one or two
 * kernels more, and x's memory with it.
 * Ownership: result and places are the scope's or the caller's. Threads: the queue's. Errors: null,
 * INVALID_ARGUMENT with the shapes; then *places is null. */
HAL_API ops_array *ops_array_pool(ops_pool_kind kind, const ops_pool_options *options, ops_array *x,
                                  ops_array **places);

/* The gradient by x of a pooling from dy, that of its result. `lengths` are the spatial ones of x.
 * Of MAX, `places` are those that it returned, and elements that are the maximum of several windows
 * get the sum in the order of the windows; of AVERAGE, null.
 * Ownership, Threads, Errors: as ops_array_pool. */
HAL_API ops_array *ops_array_pool_gradient(ops_pool_kind kind, const ops_pool_options *options,
                                           ops_array *dy, ops_array *places,
                                           const int64_t *lengths);

/* Pooling to given lengths: window i of an axis is from floor(i length / places) to
 * ceil((i + 1) length / places), as in PyTorch. x is [N, C, lengths], or [N, lengths, C].
 * Ownership, Threads, Errors: as ops_array_pool. */
HAL_API ops_array *ops_array_adaptive_pool(ops_pool_kind kind, const int64_t *places,
                                           int channels_last, ops_array *x);

/* The maxima of adaptive pooling, and in *found where they are, as of ops_array_pool: the first
 * maximum, or the last NaN.
 * Ownership, Threads, Errors: as ops_array_pool. */
HAL_API ops_array *ops_array_adaptive_maxima(const int64_t *places, int channels_last, ops_array *x,
                                             HAL_OUT ops_array **found);

/* The gradient by x of an adaptive pooling from dy, that of its result. `lengths` are the spatial
 * ones of x. Of MAX, `places` are those of ops_array_adaptive_maxima; of AVERAGE, null.
 * Ownership, Threads, Errors: as ops_array_pool. */
HAL_API ops_array *ops_array_adaptive_pool_gradient(ops_pool_kind kind, const int64_t *lengths,
                                                    int channels_last, ops_array *dy,
                                                    ops_array *places);

#ifdef __cplusplus
}
#endif
#endif

/* Convolutions as one product that reads the windows where they are in the image (implicit GEMM),
 * by the portable kernel with separable operands. composed/convolution_implicit.c calls it. */
#ifndef OPS_SRC_GEMM_WINDOWS_H
#define OPS_SRC_GEMM_WINDOWS_H

#include "tensor/context.h"

#include <ops/windows.h>

/* A part of keys: all bytes are set. */
typedef struct ops_gemm_windows_form {
    uint32_t rank; /* spatial axes, 1 to 3 */
    uint32_t precision, activation;
    uint32_t is_gradient; /* by the weights */
    int64_t groups;
    int64_t stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL];
} ops_gemm_windows_form;

/* x [N, groups C, lengths] has its padding, w is [groups O, window, C], y [N, groups O, places].
 * y[n, g O + o, p] = activation(bias[g O + o] + the sum over k and c of x[n, g C + c, p stride + k
 * dilation] w[g O + o, k, c]); the bias is null or [groups O]. With is_gradient w is the output:
 * the sum over n and p of y[n, g O + o, p] x[...].
 * Strides are not negative. Errors: UNSUPPORTED for what ops_gemm_windows_fit refuses, those of
 * dispatches. */
hal_status ops_gemm_windows(ops_context *context, const ops_gemm_windows_form *form,
                            const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                            const ops_tensor *y);

/* Whether the device computes such a product, of x and y in a dense order in which channels are
 * last, or places with windows of one element, 1 apart. */
bool ops_gemm_windows_fit(const ops_context *context, int64_t m, int64_t n, int64_t k);

/* The elements, lines or steps of k, that matrix units read at once of operands whose lengths are
 * multiples of them; 1 where other units multiply. */
uint32_t ops_gemm_windows_access(const ops_context *context, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, hal_type type);

#endif

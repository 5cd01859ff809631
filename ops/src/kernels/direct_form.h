/* What a direct convolution (direct.h) is: options and lengths. */
#ifndef OPS_SRC_KERNELS_DIRECT_FORM_H
#define OPS_SRC_KERNELS_DIRECT_FORM_H

#include "tensor/context.h"

#include <ops/windows.h>

/* What a node keeps: all bytes are set. Of a transposed convolution stride, dilation and before are
 * those of the convolution that it is the gradient of. */
typedef struct ops_direct_form {
    uint32_t rank, activation;
    uint32_t is_transposed, reserved;
    int64_t groups;
    int64_t stride[OPS_MAX_SPATIAL], dilation[OPS_MAX_SPATIAL], before[OPS_MAX_SPATIAL];
} ops_direct_form;

/* Lengths of a convolution: of its input, of the window, and of its result. */
typedef struct ops_direct_lengths {
    int64_t images, inputs, outputs; /* channels of one group */
    int64_t x[OPS_MAX_SPATIAL], window[OPS_MAX_SPATIAL], y[OPS_MAX_SPATIAL];
} ops_direct_lengths;

#endif

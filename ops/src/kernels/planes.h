/* Channels of an image among zeros, cut into phases: elements whose coordinates are equal modulo
 * the steps of a convolution are neighbours, so that the windows of neighbouring results read
 * neighbours. kernels/direct.c reads them. */
#ifndef OPS_SRC_KERNELS_PLANES_H
#define OPS_SRC_KERNELS_PLANES_H

#include "tensor/context.h"

#include <ops/windows.h>

/* Element `at` of the padded image is that of phase at % step and cell at / step along each axis.
 * Phases are in row-major order, and so are the cells of each. */
typedef struct ops_planes {
    uint32_t rank;                                         /* spatial axes */
    int64_t length[OPS_MAX_SPATIAL];                       /* of x */
    int64_t before[OPS_MAX_SPATIAL];                       /* zeros before it, not negative */
    int64_t step[OPS_MAX_SPATIAL], cells[OPS_MAX_SPATIAL]; /* phases and cells of an axis */
    int64_t elements;                                      /* of a channel */
} ops_planes;

/* Completes planes of `padded` elements along each axis, which has the rest. */
void ops_planes_init(const int64_t *padded, ops_planes *planes);

/* The distance of neighbouring cells along an axis, and that of phases. */
int64_t ops_planes_pitch(const ops_planes *planes, uint32_t axis);
int64_t ops_planes_phase(const ops_planes *planes, uint32_t axis);

/* Copies x [channels, lengths] to `to`, a tensor whose first element is that of the planes of the
 * first channel; zeros are there already.
 * Errors: those of ops_copy and of dispatches. */
hal_status ops_planes_copy(ops_context *context, const ops_planes *planes, const ops_tensor *x,
                           const ops_tensor *to);

#endif

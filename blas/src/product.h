/* Products and triangular solutions on the device. */
#ifndef BLAS_SRC_PRODUCT_H
#define BLAS_SRC_PRODUCT_H

#include "lane.h"
#include "matrix.h"

/* Computes a valid call with a product. The host's matrix is written at the end, so that after an
 * error it is as before, or was only to be overwritten. A processor computes
 * in the host's matrix itself, see blas_lane_wait.
 * Complex products are real ones of twice the rows, columns and inner length.
 * Threads: the lane's. Errors: OUT_OF_MEMORY, UNSUPPORTED without the type, or where a triangle's
 * inverse is not finite; those of queues and kernels. */
hal_status blas_product_compute(blas_lane *lane, const blas_call *call);

#endif

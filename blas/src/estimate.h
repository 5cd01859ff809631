/* What a call does on a device, counted: operations, launches, and bytes that are moved. */
#ifndef BLAS_SRC_ESTIMATE_H
#define BLAS_SRC_ESTIMATE_H

#include "call.h"
#include "lapack.h"

/* Rows or columns of a panel at the edge of a triangle of some order: an eighth of it, within
 * limits. A panel takes some elements that are not needed: half a panel for each row. */
int64_t blas_panel(int64_t order);

/* Rows of a block on the diagonal of a triangular system, which is solved by its inverse. */
#define BLAS_BLOCK 64

typedef struct blas_estimate {
    double operations;   /* real multiplications and additions of all products */
    double launches;     /* products */
    double host_bytes;   /* of each product's largest matrix, as the host's BLAS reads it */
    double device_bytes; /* the same as the device does */
    double uploads, upload_bytes;     /* written to the device: how many matrices, and bytes */
    double downloads, download_bytes; /* read from it */
    double packed_bytes;              /* written by the host while it makes operands full */
    double
        expanded_bytes; /* written by the host while it makes 2 x 2 matrices of complex numbers */
} blas_estimate;

/* Counts a valid call with a product on a device that computes on the host's memory, or does not.
 * Threads: any. */
blas_estimate blas_estimate_of(const blas_call *call, bool is_in_place);

/* Columns of a factorisation's panels. The host takes longer for wider ones, the device for more of
 * them. */
int64_t blas_factoring_panel(const blas_factoring *call);

typedef struct blas_factoring_estimate {
    double operations; /* of all of it */
    double panels;
    double panel_operations; /* that the host computes */
    double bytes;            /* that go to the device, and as many back */
} blas_factoring_estimate;

/* Counts a valid factorisation. Threads: any. */
blas_factoring_estimate blas_factoring_estimate_of(const blas_factoring *call);

#endif

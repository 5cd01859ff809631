/* Measures what the model interpolates: once for a device, a host's BLAS and their threads. */
#ifndef BLAS_SRC_MEASURE_H
#define BLAS_SRC_MEASURE_H

#include "call.h"
#include "store.h"

/* Orders of the square products, and columns of the thin ones, whose order is BLAS_THIN_ORDER. */
extern const int64_t blas_measure_orders[BLAS_MODEL_POINTS];
extern const int64_t blas_measure_columns[BLAS_MODEL_THIN];
#define BLAS_THIN_ORDER 1024

/* Sizes of transfers and of copies. */
#define BLAS_TRANSFER_BYTES ((size_t)16 << 20)
#define BLAS_PACKED_BYTES ((size_t)8 << 20)

/* Bytes of each of three matrices, one after the other, of blas_measure_call. */
#define BLAS_CALL_BYTES ((size_t)1 << 20)

/* The call of a kind and type that is measured, on zeros in `memory`; false: BLAS has none. */
bool blas_measure_call(blas_kind kind, blas_type type, void *memory, HAL_OUT blas_call *call);

/* Takes up to a second. Threads: one at a time. Errors: those of blas_lane_acquire and of products
 * in f32; where f64 fails, it has no times. */
hal_status blas_measure_all(HAL_OUT blas_measurements *made);

#endif

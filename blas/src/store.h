/* Measured times on disk, one file for each device with a host's BLAS. */
#ifndef BLAS_SRC_STORE_H
#define BLAS_SRC_STORE_H

#include "routine.h"

#include <hal/hal.h>

#define BLAS_MODEL_POINTS 4
#define BLAS_MODEL_THIN 2

/* Nanoseconds of square products in f32 and f64, 0: not measured; of transfers of the sizes in
 * measure.h and of a few bytes, and of copies; of one call of each kind and type. */
typedef struct blas_measurements {
    uint64_t device[2][BLAS_MODEL_POINTS], host[2][BLAS_MODEL_POINTS];
    uint64_t device_thin[2][BLAS_MODEL_THIN]; /* of products of which one operand is long */
    uint64_t host_thin[2][BLAS_MODEL_THIN];
    uint64_t upload, download, least_upload, least_download, pack, expand;
    uint64_t device_calls[BLAS_KINDS][BLAS_STANDARD_TYPES];
    uint64_t host_calls[BLAS_KINDS][BLAS_STANDARD_TYPES];
} blas_measurements;

/* Reads or writes the times of a device with the host's BLAS, its threads as the environment sets
 * them, and the processors of this thread. The folder is that of hal's cache, HAL_CACHE_DIR; where
 * there is none, or it cannot be written, nothing happens. False: there is no such file.
 * Threads: any, also of other processes: a file is written whole and then renamed. */
bool blas_store_read(hal_device *device, HAL_OUT blas_measurements *measurements);
void blas_store_write(hal_device *device, const blas_measurements *measurements);

#endif

/* The kernels that hal_device_get_peaks times. Each fails with UNSUPPORTED where the device lacks
 * what it needs. */
#ifndef HAL_SRC_LAYERS_PEAK_KERNELS_H
#define HAL_SRC_LAYERS_PEAK_KERNELS_H

#include <hal/hal.h>

/* A dispatch to be timed, and what it computes. */
typedef struct hal_peak_kernel {
    hal_kernel *kernel;
    uint32_t grid[3];
    double operations; /* of one dispatch */
} hal_peak_kernel;

/* Writes one element of the binding in each work-item of one group. */
hal_status hal_peak_empty(hal_device *device, hal_peak_kernel *made);

/* Copies `bytes` bytes of binding 0 to binding 1, U32x4 by each work-item. */
hal_status hal_peak_copy(hal_device *device, uint64_t bytes, hal_peak_kernel *made);

/* Chains of multiply-adds of F32 or F64 in registers; one binding. */
hal_status hal_peak_multiply_add(hal_device *device, hal_type type, hal_peak_kernel *made);

/* Chains of MATRIX_MULTIPLY; one binding. */
hal_status hal_peak_matrix(hal_device *device, hal_type type, hal_peak_kernel *made);

#endif

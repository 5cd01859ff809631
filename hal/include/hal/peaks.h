/* What a device reaches at most: rates and latencies that hal has measured and keeps in the compile
 * cache. For programs that compare kernels with the device; hal-info and profiles show them. */
#ifndef HAL_PEAKS_H
#define HAL_PEAKS_H

#include <hal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Measured values; 0: the device lacks it. A multiply-add counts as two operations. Rates of
 * products are the larger one of a kernel of hal's IR and of the plugin's own product. */
typedef struct hal_device_peaks {
    uint32_t size;           /* sizeof(hal_device_peaks) */
    uint32_t reserved;       /* 0 */
    double copy;             /* bytes per second in device memory, read and written ones */
    double upload, download; /* bytes per second, by hal_queue_write and hal_queue_read */
    double add_f32, add_f64; /* multiply-adds, operations per second */
    double matrix_f16, matrix_bf16, matrix_f32; /* products in class FAST, operations per second */
    double launch_ns;   /* of each of many kernels that depend on one another, in one batch */
    double wait_ns;     /* from the call that records one kernel to the end of the wait for it */
    double transfer_ns; /* of hal_queue_read of 4 bytes */
    double matrix_f64;  /* as matrix_f32, in class STRICT */
} hal_device_peaks;

/* Returns the peaks of a device. `measure`: measures them now, in a few seconds in which the device
 * should be idle, and keeps them; 0: returns those that are kept for this device, driver and build.
 * `peaks->size` is set by the caller; more of it than hal knows stays as it is.
 * Threads: any. Errors: NOT_FOUND if none are kept, INVALID_ARGUMENT, those of the device. */
HAL_API hal_status hal_device_get_peaks(hal_device *device, int measure,
                                        HAL_OUT hal_device_peaks *peaks);

#ifdef __cplusplus
}
#endif
#endif

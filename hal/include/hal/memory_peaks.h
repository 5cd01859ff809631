/* The most memory of a device that a process has used, for those who measure programs. Not part of
 * hal.h. */
#ifndef HAL_MEMORY_PEAKS_H
#define HAL_MEMORY_PEAKS_H

#include <hal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In bytes, the most since hal_device_reset_memory_peaks, or since the device was opened. */
typedef struct hal_memory_peaks {
    uint64_t in_use_bytes; /* of hal_memory_statistics */
    uint64_t held_bytes;   /* in_use_bytes + pooled_bytes */
} hal_memory_peaks;

/* Returns the peaks of the device's memory.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_get_memory_peaks(hal_device *device, HAL_OUT hal_memory_peaks *peaks);

/* Sets the peaks to what is in use and held now.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_reset_memory_peaks(hal_device *device);

#ifdef __cplusplus
}
#endif

#endif

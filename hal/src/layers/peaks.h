/* The kept peaks of a device, for layers. */
#ifndef HAL_SRC_LAYERS_PEAKS_H
#define HAL_SRC_LAYERS_PEAKS_H

#include <hal/peaks.h>
#include <stdbool.h>

/* Whether the compile cache has them; without a message. Threads: any. */
bool hal_peaks_find(hal_device *device, hal_device_peaks *peaks);

#endif

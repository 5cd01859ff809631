/* Failures of the driver, with a message. */
#ifndef PLUGINS_CUDA_STATUS_H
#define PLUGINS_CUDA_STATUS_H

#include "driver.h"

#include <kit/host.h>

/* OK for a result of 0; else fails with "cuda: <attempt>: " and the driver's name and text. */
hal_status cuda_check(cuda_result result, const char *attempt, ...) HAL_PRINTF(2, 3);

#endif

/* The services of the host, and failures with a message. */
#ifndef PLUGINS_CUDA_STATUS_H
#define PLUGINS_CUDA_STATUS_H

#include "driver.h"

void cuda_set_host(const hal_host *host);
const hal_host *cuda_host(void);
hal_status cuda_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
/* OK for a result of 0; else fails with "cuda: <attempt>: " and the driver's name and text. */
hal_status cuda_check(cuda_result result, const char *attempt, ...) HAL_PRINTF(2, 3);

#endif

/* The services of the host, and failures with a message. */
#ifndef PLUGINS_OPENCL_STATUS_H
#define PLUGINS_OPENCL_STATUS_H

#include "driver.h"

#include <hal/plugin.h>

void opencl_set_host(const hal_host *host);
const hal_host *opencl_host(void);
hal_status opencl_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
hal_status opencl_fail_result(cl_int error, const char *format, ...) HAL_PRINTF(2, 3);
const char *opencl_error_name(cl_int error);

#endif

/* Failures of the driver, with a message. */
#ifndef PLUGINS_OPENCL_STATUS_H
#define PLUGINS_OPENCL_STATUS_H

#include "driver.h"

#include <kit/host.h>

hal_status opencl_fail_result(cl_int error, const char *format, ...) HAL_PRINTF(2, 3);
const char *opencl_error_name(cl_int error);

#endif

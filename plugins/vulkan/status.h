/* The services of the host, and failures with a message. */
#ifndef PLUGINS_VULKAN_STATUS_H
#define PLUGINS_VULKAN_STATUS_H

#include "newer.h"

#include <hal/plugin.h>

void vulkan_set_host(const hal_host *host);
const hal_host *vulkan_host(void);
hal_status vulkan_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);
const char *vulkan_result_name(VkResult result);
/* Fails with "<name>: <attempt>: <name of the result>". */
hal_status vulkan_fail_attempt(const char *name, VkResult result, const char *attempt);

#endif

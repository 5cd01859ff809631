/* Failures of the driver, with a message. */
#ifndef PLUGINS_VULKAN_STATUS_H
#define PLUGINS_VULKAN_STATUS_H

#include "newer.h"

#include <kit/host.h>

const char *vulkan_result_name(VkResult result);
/* Fails with "<name>: <attempt>: <name of the result>". */
hal_status vulkan_fail_attempt(const char *name, VkResult result, const char *attempt);

#endif

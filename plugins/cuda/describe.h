/* What a device is, in hal's terms. */
#ifndef PLUGINS_CUDA_DESCRIBE_H
#define PLUGINS_CUDA_DESCRIBE_H

#include "status.h"

/* An attribute, CUDA_DEVICE_*; 0 where the driver does not know it. */
uint32_t cuda_describe_attribute(cuda_device device, int attribute);
uint32_t cuda_describe_capability(cuda_device device);
/* The device's UUID, as text. */
hal_status cuda_describe_id(cuda_device device, char *id, size_t bytes);
hal_status cuda_describe(cuda_device device, hal_device_info *info);

#endif

/* Kernels of fills and copies. */
#ifndef PLUGINS_METAL_TRANSFER_H
#define PLUGINS_METAL_TRANSFER_H

#include "device.h"

/* The kernel of a fill or copy, with groups of METAL_TRANSFER_ITEMS; null after a
 * failure, whose message the host has. */
enum { METAL_TRANSFER_ITEMS = 256 };
metal_pipeline *metal_transfer_pipeline(hal_plugin_device *device, metal_transfer which);

#endif

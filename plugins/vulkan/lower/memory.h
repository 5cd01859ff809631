/* Loads, stores and atomic operations. */
#ifndef PLUGINS_VULKAN_LOWER_MEMORY_H
#define PLUGINS_VULKAN_LOWER_MEMORY_H

#include "lower/types.h"

void lower_memory(lower *l, uint32_t index);

#endif

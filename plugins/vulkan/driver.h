/* The driver: its types, and the functions of the instance and of a device. */
#ifndef PLUGINS_VULKAN_DRIVER_H
#define PLUGINS_VULKAN_DRIVER_H

#include "newer.h"

#include <hal/plugin.h>

/* Functions of the instance, and of a device. */
typedef struct vulkan_instance {
    VkInstance handle;
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#define EXTENSION(name) PFN_##name name;
#include "symbols.inl"
#undef GLOBAL
#undef INSTANCE
#undef EXTENSION
} vulkan_instance;

typedef struct vulkan_functions {
#define DEVICE(name) PFN_##name name;
#define DEVICE_EXTENSION(name) PFN_##name name;
#include "symbols.inl"
#undef DEVICE
#undef DEVICE_EXTENSION
} vulkan_functions;

/* Opens the loader and creates the instance. Threads: any. */
hal_status vulkan_instance_get(const vulkan_instance **instance);

#endif

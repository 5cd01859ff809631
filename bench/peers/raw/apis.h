/* The APIs that this build can call. */
#ifndef BENCH_PEERS_RAW_APIS_H
#define BENCH_PEERS_RAW_APIS_H

#include "peers/raw/raw.h"

extern const raw_api raw_opencl, raw_vulkan, raw_cuda;

/* The API of a plugin's devices; null for an unknown plugin or without the API's headers. */
const raw_api *raw_find(const char *plugin);

/* Opens and makes the device of a description; null with a message. */
raw_device *raw_open(const raw_api *api, const hal_device_info *info, char *message, size_t bytes);

#endif

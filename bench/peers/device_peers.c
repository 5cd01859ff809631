/* The BLAS libraries of devices by their names. */
#include "peers/device_peers.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    device_peer *(*open)(const hal_device_info *info, char *message, size_t bytes);
} known[] = {
#ifdef BENCH_OPENCL
    {"clblast", peer_clblast_open},
#endif
    {"cublas", peer_cublas_open},
};
enum { KNOWN = sizeof known / sizeof known[0] };

bool device_peer_is_known(const char *name)
{
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

device_peer *device_peer_open(const char *name, const hal_device_info *info, char *message,
                              size_t bytes)
{
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].open(info, message, bytes);
        }
    }
    snprintf(message, bytes, "no peer on the device is called %s", name);
    return NULL;
}

/* The BLAS libraries of devices by their names. */
#ifndef BENCH_PEERS_DEVICE_PEERS_H
#define BENCH_PEERS_DEVICE_PEERS_H

#include "peers/device_blas.h"

/* Whether device_peer_open knows a name. */
bool device_peer_is_known(const char *name);

/* Opens "clblast" or "cublas" on the device that `info` describes. Null with a message. */
device_peer *device_peer_open(const char *name, const hal_device_info *info, char *message,
                              size_t bytes);

/* One for each library. */
device_peer *peer_clblast_open(const hal_device_info *info, char *message, size_t bytes);
device_peer *peer_cublas_open(const hal_device_info *info, char *message, size_t bytes);

#endif

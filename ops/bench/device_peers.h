/* device_peers.h: libraries that multiply on the device which hal's plugin drives, opened when
 * asked for and never needed: for each a file peer_*.c. Called by suite_gemm.c. */
#ifndef OPS_BENCH_DEVICE_PEERS_H
#define OPS_BENCH_DEVICE_PEERS_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "measure.h"

/* Row-major C = A B with no gaps between the rows. */
typedef struct device_matrices {
    hal_type type;
    int64_t m, n, k;
    const void *a, *b; /* on the host */
} device_matrices;

typedef struct device_peer device_peer;

/* Common head of the structures of the peer libraries. */
struct device_peer {
    const char *name;
    char message[256]; /* why the last call was false */
    bool failed;       /* a multiplication did; nothing more is measured */
    bool (*takes)(hal_type type);
    bool (*begin)(device_peer *peer, const device_matrices *matrices);
    measure_function run; /* over the device_peer, between begin and end */
    bool (*read)(device_peer *peer, void *c);
    void (*end)(device_peer *peer); /* also after a begin that was false */
    void (*close)(device_peer *peer);
};

/* Whether a name is one that device_peer_open knows. */
bool device_peer_is_known(const char *name);

/* Opens "clblast" or "cublas" on the device that `info` describes. Null with a sentence. */
device_peer *device_peer_open(const char *name, const hal_device_info *info, char *message,
                              size_t bytes);

/* Each library's own, for device_peers.c. */
device_peer *peer_clblast_open(const hal_device_info *info, char *message, size_t bytes);
device_peer *peer_cublas_open(const hal_device_info *info, char *message, size_t bytes);

/* Keeps a sentence for a call that gave a code. Always false. */
bool device_peer_fail(device_peer *peer, const char *call, int code);

#endif

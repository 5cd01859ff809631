/* A BLAS library that multiplies on the same device as hal's plugin, loaded on demand. */
#ifndef BENCH_PEERS_DEVICE_BLAS_H
#define BENCH_PEERS_DEVICE_BLAS_H

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/measure.h"

/* Row-major C = A B with no gaps between the rows. */
typedef struct device_matrices {
    hal_type type;
    bool transpose_a, transpose_b; /* A is stored as k x m, B as n x k */
    int64_t batch;                 /* products, of matrices one after the other */
    int64_t m, n, k;
    const void *a, *b; /* on the host */
    bool fast;         /* F32 may be multiplied as TF32 */
} device_matrices;

typedef struct device_peer device_peer;

/* Common head of the structures of the peer libraries. */
struct device_peer {
    const char *name;
    char message[256]; /* of the last failure */
    bool failed;       /* a multiplication failed; nothing more is measured */
    bool has_batches;  /* multiplies batches at once */
    bool (*takes)(hal_type type);
    bool (*begin)(device_peer *peer, const device_matrices *matrices);
    measure_function run; /* over the device_peer, between begin and end */
    bool (*read)(device_peer *peer, void *c);
    void (*end)(device_peer *peer); /* also after a failed begin */
    void (*close)(device_peer *peer);
};

/* Keeps a message for a failed call. Returns false. */
bool device_peer_fail(device_peer *peer, const char *call, int code);

#endif

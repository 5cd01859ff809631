/* Devices: the object, its context, and the entries that list, open and close devices. */
#ifndef PLUGINS_CUDA_DEVICE_H
#define PLUGINS_CUDA_DEVICE_H

#include "status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { CUDA_MAX_DEVICES = 256 };

/* A tile of matrix products that HAL_CUDA_GEMM names, see gemm/tile/key.h; 0 columns: none. Of
 * strict F32 its number, see gemm/tile/fma.h; 0: none. */
typedef struct cuda_gemm_tile {
    uint16_t columns;
    uint8_t split, in_memory, swapped, shared, alternates;
    uint8_t strict;
} cuda_gemm_tile;

struct hal_plugin_device {
    const hal_host *host; /* of the instance; set by the kit */
    cuda_device ordinal;
    cuda_context context;       /* the primary context, retained */
    uint32_t capability;        /* compute capability, 10 * major + minor: 90 for 9.0 */
    uint32_t features;          /* CUDA_FEATURE_*, see capability.h */
    bool stream_writes;         /* streams can write a counter that the host reads */
    uint32_t chain_min;         /* dispatches in a row from which they are submitted as a chain */
    uint32_t dedicate_after;    /* equal runs after which one gets a dedicated chain */
    uint32_t early_start_min;   /* dispatches of a chain from which they may start early */
    bool launches_early;        /* so may the dispatches after the first one of a short run */
    char id[64];                /* the UUID */
    _Atomic uint64_t kernels;   /* created so far: the last serial number */
    pthread_rwlock_t unloading; /* held for writing while a module is unloaded, for reading while a
                                 * chain is launched */
    uint64_t destroyed;         /* kernels so far; under `unloading` */
    uint64_t unloads;           /* modules of theirs; under `unloading` */
    _Atomic uint64_t frees;     /* memories freed so far */
    uint32_t units;             /* multiprocessors */
    cuda_gemm_tile gemm_tile;
    uint8_t gemm_wait;    /* seconds, see gemm/tile/key.h */
    bool gemm_loads_text; /* the driver assembles matrix products as it loads them, see kernel.h */
    pthread_mutex_t modules_lock;
    pthread_cond_t modules_made;        /* a thread has compiled one of them, or failed to */
    struct cuda_shared_module *modules; /* see modules.h */
    _Atomic bool needs_parts;           /* there is a kernel that uses those of a queue */
    hal_plugin_wait last_collective;    /* that began; under the lock of collectives/comm.c */
    /* By ordinal: the context of the peer whose memory this device may access, or null. */
    _Atomic(cuda_context) peers[CUDA_MAX_DEVICES];
};

hal_status cuda_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count);
hal_status cuda_device_open(uint32_t index, hal_plugin_device **device);
hal_status cuda_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk);

/* Whether the context, which is broken if this or an earlier device was lost, is given up when the
 * device is closed: no other open device has it. */
bool cuda_device_gives_up(const hal_plugin_device *device, bool lost);
void cuda_device_close(hal_plugin_device *device, bool lost);
uint32_t cuda_device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other);

/* A count from a variable of the environment; UINT32_MAX for 0, which means never. Errors:
 * INVALID_ARGUMENT. */
hal_status cuda_variable_read_count(const char *name, uint32_t default_count, uint32_t *count);
/* Between push and pop the device's context is the current one of the thread; pop restores the one
 * before it. */
hal_status cuda_context_push(const hal_plugin_device *device);
void cuda_context_pop(void);

#endif

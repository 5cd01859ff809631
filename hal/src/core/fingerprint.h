/* Kernels in the compile cache by what they were built from: their legalised IR, so that a later
 * process builds, checks and legalises nothing. */
#ifndef HAL_SRC_CORE_FINGERPRINT_H
#define HAL_SRC_CORE_FINGERPRINT_H

#include "kernel.h"

#include <stdbool.h>

/* A legalised kernel and its hash. hal_fingerprint_release frees `entry`, which contains them. */
typedef struct hal_fingerprint_kernel {
    const hal_ir_kernel *ir;
    uint64_t key[2];
    void *entry;
} hal_fingerprint_kernel;

/* Finds the kernel of a fingerprint on a device. Returns whether there is one. Nothing is found
 * without a compile cache, while a layer listens or kernels are dumped, and on processors, which
 * build kernels as fast as they read files. Threads: any. */
bool hal_fingerprint_find(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                          hal_fingerprint_kernel *found);

void hal_fingerprint_release(hal_fingerprint_kernel *found);

/* Stores a legalised kernel and its hash, where hal_fingerprint_find would look. Threads: any. */
void hal_fingerprint_store(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                           const hal_ir_kernel *ir, const uint64_t key[2]);

#endif

/* Modules of native kernels that several kernel objects share, until the device is closed. */
#ifndef PLUGINS_CUDA_MODULES_H
#define PLUGINS_CUDA_MODULES_H

#include "kernel.h"

typedef struct cuda_shared_module {
    uint64_t key[2];
    bool is_made; /* else a thread compiles it */
    cuda_module module;
    cuda_function function;
    struct cuda_shared_module *next;
} cuda_shared_module;

/* Finds the module of source->key or compiles it, for `shared_bytes` of dynamic shared memory. The
 * context is current. Errors: those of cuda_kernel_compile, OUT_OF_MEMORY. */
hal_status cuda_modules_find(hal_plugin_device *device, const cuda_kernel_source *source,
                             uint32_t shared_bytes, const cuda_shared_module **found);

/* Unloads the modules of a device that is closed; `lost`: its context is gone. */
void cuda_modules_forget(hal_plugin_device *device, bool lost);

#endif

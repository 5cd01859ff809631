/* Kernels in the compile cache by what they were built from: their legalised IR, so that a later
 * process builds, checks and legalises nothing. Used by kernel_create.c. */
#ifndef HAL_SRC_CORE_RECIPE_H
#define HAL_SRC_CORE_RECIPE_H

#include "kernel.h"

/* A legalised kernel and its hash. The kernel is within `entry`, which hal_recipe_release frees. */
typedef struct hal_recipe_kernel {
    const hal_ir_kernel *ir;
    uint64_t key[2];
    void *entry;
} hal_recipe_kernel;

/* Finds the kernel of a recipe on a device. Returns whether there is one; nothing is found without
 * a compile cache, while a layer listens or kernels are dumped, and on processors, which build
 * kernels as fast as they read files. Threads: any. */
int hal_recipe_find(hal_device *device, const hal_kernel_recipe *recipe, hal_recipe_kernel *found);

void hal_recipe_release(hal_recipe_kernel *found);

/* Stores a legalised kernel and its hash, where hal_recipe_find would look. Threads: any. */
void hal_recipe_store(hal_device *device, const hal_kernel_recipe *recipe, const hal_ir_kernel *ir,
                      const uint64_t key[2]);

#endif

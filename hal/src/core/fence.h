/* Fences of others, see hal/fence.h: the object, kept while batches name it. */
#ifndef HAL_SRC_CORE_FENCE_H
#define HAL_SRC_CORE_FENCE_H

#include "fence_set.h"
#include "progress.h"

#include <hal/fence.h>

struct hal_fence {
    hal_progress progress;
    _Atomic uint32_t references; /* of the program, and of batches that are not submitted */
    hal_device *device;          /* with a reference */
    hal_handle_kind kind;
    hal_plugin_fence *handle;  /* null for HOST: */
    _Atomic uint64_t *counter; /* of the program */
    hal_fence_set uses;        /* batches that the plugin has */
};

hal_fence *hal_fence_ref(hal_fence *fence);
/* After the last one the fence ends when the batches that name it have ended. Threads: any. */
void hal_fence_unref(hal_fence *fence);

/* Keeps the fence until `use` is reached. Threads: any. Errors: OUT_OF_MEMORY. */
hal_status hal_fence_add_use(hal_fence *fence, hal_last_use use);

/* Writes the kinds of fences that a device imports and exports. Errors: those of the plugin. */
hal_status hal_fence_kinds(hal_device *device, uint32_t *import_kinds, uint32_t *export_kinds);

#endif

/* Device memories and kernels as HAL_DUMP=batch knows them: noted when the plugin makes them, under
 * ids that no other object of the process has. All calls are under the layer's lock. */
#ifndef HAL_SRC_LAYERS_DUMP_OBJECTS_H
#define HAL_SRC_LAYERS_DUMP_OBJECTS_H

#include "dump_file.h"
#include "dump_read.h"
#include "core/hooks.h"

#define HAL_DUMP_NO_SCRATCH UINT32_MAX

typedef struct hal_dump_memory {
    hal_device *device;
    hal_plugin_memory *handle;
    uint64_t id, bytes;
} hal_dump_memory;

typedef struct hal_dump_kernel {
    hal_device *device;
    hal_plugin_kernel *handle;
    uint64_t id;
    uint32_t scratch; /* binding whose contents have no meaning, or HAL_DUMP_NO_SCRATCH */
    hal_payload record;
} hal_dump_kernel;

/* Events after the plugin's success. An object is not noted if host memory is out; the first batch
 * that uses it fails. */
void hal_dump_device_opened(hal_device *device);
void hal_dump_memory_allocated(const hal_event *event);
void hal_dump_kernel_compiled(const hal_event *event);

/* Events before the plugin's call. */
void hal_dump_device_closing(const hal_device *device);
void hal_dump_memory_freeing(hal_plugin_memory *handle);

/* The noted object of a handle; null if there is none. */
const hal_dump_memory *hal_dump_memory_find(const hal_plugin_memory *handle);
const hal_dump_kernel *hal_dump_kernel_find(const hal_plugin_kernel *handle);
hal_dump_reader *hal_dump_reader_find(const hal_device *device);

#endif

/* Blocks of memory that others own or may keep, see hal/external.h. A buffer owns such a block; it
 * never comes to the pool. */
#ifndef HAL_SRC_CORE_IMPORTED_H
#define HAL_SRC_CORE_IMPORTED_H

#include "pool.h"

#include <hal/external.h>

/* Returns a block of a checked handle, which keeps the device open until it ends.
 * Errors: OUT_OF_MEMORY, those of the plugin. */
hal_status hal_imported_create(hal_device *device, const hal_memory_handle *handle,
                               hal_release_callback release, void *user, hal_memory **memory);

/* The same for memory of the device that the plugin exports as a descriptor of the kind: others may
 * use it when the buffer is released, so it does not come to the pool either. */
hal_status hal_imported_allocate(hal_device *device, hal_handle_kind kind, uint64_t bytes,
                                 hal_memory **memory);

/* The same for addresses of `bytes` bytes, a multiple of part_bytes, none of which has memory. */
hal_status hal_imported_reserve(hal_device *device, uint64_t bytes, uint64_t part_bytes,
                                hal_memory **memory);

/* Ends a block whose owner was released: frees the plugin's memory and tells its owner, at once or
 * when the last use is reached. Threads: any. */
void hal_imported_end(hal_memory *memory);

#endif

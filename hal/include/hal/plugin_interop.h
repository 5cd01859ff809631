/* The extensions of the plugin contract by which devices share with others: memory, native handles,
 * queues and fences of the driver; and what they tell of kernels, clocks and drivers. Part of
 * hal/plugin.h, which includes it. */
#ifndef HAL_PLUGIN_INTEROP_H
#define HAL_PLUGIN_INTEROP_H

#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_plugin_device hal_plugin_device;
typedef struct hal_plugin_memory hal_plugin_memory;
typedef struct hal_plugin_kernel hal_plugin_kernel;
typedef struct hal_plugin_queue hal_plugin_queue;
typedef struct hal_plugin_fence hal_plugin_fence;

/* Memory that others own. */
#define HAL_EXTENSION_EXTERNAL "hal.external_memory"
typedef struct hal_extension_external {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Describes what the device imports and exports.
     *   info  zeros; `size` is that of hal's record */
    hal_status (*external_info)(hal_plugin_device *device, hal_external_info *info);

    /* Makes memory of a range that others own, without a copy: a batch reads what its owner wrote
     * before the batch was submitted, and the owner sees what the batch wrote after it has ended.
     *   handle  of one of import_kinds; HOST: address and size are multiples of host_alignment and
     *           host_granularity. Binding offsets count from its `offset` on.
     * Bytes outside of the range are neither read nor written, and with HAL_ACCESS_READ none is
     * written. What the handle names stays until memory_free, which leaves it as it is; only a
     * descriptor belongs to the plugin once the call has succeeded.
     * Ranges that other imports hold are imported again; of ranges that overlap in part, and of
     * pages that the process cannot write, what the driver allows.
     * Errors: UNSUPPORTED with the reason where the driver refuses this range, OUT_OF_MEMORY. */
    hal_status (*memory_import)(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory);

    /* (may be null) Returns a handle of memory of memory_allocate or memory_import.
     *   kind    one of export_kinds
     *   handle  zeros; `size` is that of hal's record. A native handle is valid until memory_free;
     *           a descriptor is a new one, which belongs to the program.
     * Errors: UNSUPPORTED with the reason. */
    hal_status (*memory_export)(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                                hal_memory_handle *handle);

    /* (may be null) Allocates memory as memory_allocate does, of kind HAL_MEMORY_DEVICE, that
     * memory_export exports as a descriptor.
     *   handle_kind  HAL_HANDLE_OPAQUE_FD or HAL_HANDLE_DMA_BUF, one of export_kinds */
    hal_status (*memory_allocate_shareable)(hal_plugin_device *device, uint32_t handle_kind,
                                            uint64_t bytes, hal_plugin_memory **memory);
} hal_extension_external;

/* The driver's own objects, for libraries that use the same driver. */
#define HAL_EXTENSION_HANDLES "hal.native_handles"
typedef struct hal_extension_handles {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Return a handle of a device, queue or kernel, which remains the plugin's and is valid as long
     * as the object.
     *   type    name of the handle's type in the driver's headers, such as "cl_context"
     *   handle  the pointer or number
     * Errors: UNSUPPORTED for other types, with the names of those that there are. */
    hal_status (*device_handle)(hal_plugin_device *device, const char *type, uint64_t *handle);
    hal_status (*queue_handle)(hal_plugin_queue *queue, const char *type, uint64_t *handle);
    hal_status (*kernel_handle)(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                const char *type, uint64_t *handle);
} hal_extension_handles;

/* Queues of the driver that others own: their work and that of hal's queues in one order. */
#define HAL_EXTENSION_NATIVE_QUEUES "hal.native_queues"
typedef struct hal_extension_native_queues {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Creates a queue, as queue_create does, whose batches run on a queue of the driver: after the
     * work that this had before `submit`, and before the work that it gets afterwards.
     *   type    name of the handle's type, of those that queue_handle knows
     *   handle  of the device and in order; it stays until queue_destroy, which leaves it as it is
     * Errors: UNSUPPORTED with the reason for other types and queues. */
    hal_status (*queue_import)(hal_plugin_device *device, const char *type, uint64_t handle,
                               hal_plugin_queue **queue);

    /* Makes the batches that are submitted later begin after the work that a queue of the
     * driver has now, without a wait of the host. Parameters and errors as for queue_import; the
     * handle stays until the call returns. */
    hal_status (*queue_wait_native)(hal_plugin_queue *queue, const char *type, uint64_t handle);

    /* Makes the work that a queue of the driver gets later begin after the batches that were
     * submitted, likewise. */
    hal_status (*queue_block_native)(hal_plugin_queue *queue, const char *type, uint64_t handle);
} hal_extension_native_queues;

/* Memory whose parts come and go, with HAL_FEATURE_VIRTUAL_MEMORY. */
#define HAL_EXTENSION_VIRTUAL_MEMORY "hal.virtual_memory"
typedef struct hal_extension_virtual_memory {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Writes the size of a part in bytes, a power of two. Offsets and sizes below are multiples. */
    hal_status (*part_bytes)(hal_plugin_device *device, uint64_t *bytes);

    /* Reserves addresses of the kind HAL_MEMORY_DEVICE, without memory, which memory_free frees
     * with the memory that they have then. It may be more than the device has. */
    hal_status (*memory_reserve)(hal_plugin_device *device, uint64_t bytes,
                                 hal_plugin_memory **memory);

    /* Gives memory to parts that have none. Its content is undefined; other parts keep theirs, and
     * batches in flight may use them meanwhile. After an error no part has changed. */
    hal_status (*memory_commit)(hal_plugin_device *device, hal_plugin_memory *memory,
                                uint64_t offset, uint64_t bytes);

    /* Returns the memory of parts to the device. No batch in flight uses the memory. */
    hal_status (*memory_decommit)(hal_plugin_device *device, hal_plugin_memory *memory,
                                  uint64_t offset, uint64_t bytes);

    /* (may be null) Says which accesses to parts with memory batches make from now on, for drivers
     * that can refuse others.
     *   access  HAL_ACCESS_READ or HAL_ACCESS_READ_WRITE */
    hal_status (*memory_protect)(hal_plugin_device *device, hal_plugin_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t access);
} hal_extension_virtual_memory;

/* What a driver tells of kernels, and of its clock. */
#define HAL_EXTENSION_REPORTS "hal.reports"
typedef struct hal_extension_reports {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Writes what the driver tells of a kernel; fields by hal stay 0.
     *   report  zeros; `size` is that of hal's record */
    hal_status (*kernel_report)(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report);

    /* (may be null, and with it queue_time) Reads the clocks of host and device together.
     *   clocks  zeros; `size` is that of hal's record */
    hal_status (*clocks_read)(hal_plugin_device *device, hal_clocks *clocks);

    /* The time at which a reached batch ended, by the device's clock of clocks_read.
     * Errors: INVALID_ARGUMENT where queue_elapsed has it. */
    hal_status (*queue_time)(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns);
} hal_extension_reports;

/* What the plugin knows of the device's driver. */
#define HAL_EXTENSION_QUIRKS "hal.quirks"
typedef struct hal_extension_quirks {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Writes one of the quirks of the device's driver. Each has a number below their count, and the
     * same one in each call; a name is there once. `name` stays null from their count on.
     * Names are of lower-case letters, digits and underscores, and reasons are one line.
     * The strings stay until device_close.
     *   quirk  zeros; `size` is that of hal's record */
    hal_status (*device_quirk)(hal_plugin_device *device, uint32_t index, hal_quirk *quirk);
} hal_extension_quirks;

/* Fences of others: timelines of the driver outside of hal's queues. */
#define HAL_EXTENSION_FENCES "hal.fences"
typedef struct hal_extension_fences {
    uint32_t size;
    uint32_t version; /* major in the high half, minor in the low half */

    /* Writes the kinds of handles that fences have, sets of HAL_HANDLE_BIT of NATIVE and
     * OPAQUE_FD. */
    hal_status (*fence_info)(hal_plugin_device *device, uint32_t *import_kinds,
                             uint32_t *export_kinds);

    /* Makes a fence of one that others own.
     *   kind    one of the import_kinds
     *   handle  NATIVE: stays until fence_destroy, which leaves it as it is; a descriptor belongs
     *           to the plugin once the call has succeeded
     * Errors: UNSUPPORTED with the reason. */
    hal_status (*fence_import)(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence);

    /* (may be null) Makes a fence of the value 0.
     *   kind  one of the export_kinds */
    hal_status (*fence_create)(hal_plugin_device *device, uint32_t kind, hal_plugin_fence **fence);

    /* (may be null) Writes a handle of a fence of fence_import or fence_create. A native handle is
     * valid until fence_destroy; a descriptor is a new one, which belongs to the program.
     * Errors: UNSUPPORTED with the reason. */
    hal_status (*fence_export)(hal_plugin_device *device, hal_plugin_fence *fence, uint32_t kind,
                               uint64_t *handle);

    /* Destroys a fence that no batch in flight waits for. Values that queue_signal_fence was asked
     * for still come. */
    void (*fence_destroy)(hal_plugin_device *device, hal_plugin_fence *fence);

    /* Raises a fence to a value when the batches that were submitted to the queue have ended, after
     * their writes, and without further calls.
     *   value  above all values that the fence had
     * Errors: UNSUPPORTED with the reason. */
    hal_status (*queue_signal_fence)(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value);
} hal_extension_fences;

#ifdef __cplusplus
}
#endif
#endif

/* Devices and how they are chosen; the registry of plugins behind them.
 *
 * A device is opened by a selection: a comma list in order of preference, each item one of
 *   plugin                 of its devices the one that auto prefers, such as cpu
 *   plugin:index           its device of that number, from 0 on, such as cpu:0
 *   plugin:text            its first device whose name contains text, case ignored
 *   id:text                the device with this id, through whatever plugin
 *   auto                   hardware, discrete before integrated, then the cpu, then software that
 *                          acts as a GPU
 * A call that names a selection wins over the variable HAL_BACKEND, the variable over "auto". A
 * selection of which nothing can be used is an error that lists what was tried and what there is;
 * nothing else is taken in silence. Plugins that were not asked for are not initialised.
 *
 * Plugins are looked for in HAL_PLUGIN_PATH (a list of folders or files separated by ':', added in
 * front), then in the folder halyard/plugins beside the library itself; HAL_PLUGIN_PATH is ignored
 * in a process that runs set-uid. They are never unloaded.
 *
 * Calls on a device that was lost, or on what belongs to it, answer DEVICE_LOST; opening it again
 * gives a new one. After fork a child may not use what the parent opened: calls answer
 * INVALID_STATE, releasing does nothing. It may open devices of its own where the plugin's driver
 * allows. */
#ifndef HAL_DEVICE_H
#define HAL_DEVICE_H

#include <hal/status.h>
#include <hal/types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_device hal_device;

/* Opens a device, or gives one more reference to it when the process has it open already.
 * `selection`: see above; null for the variable's or the default choice.
 * Ownership: the caller's reference, given back by hal_device_release. Threads: any.
 * Errors: NOT_FOUND, LIBRARY_MISSING, DRIVER_MISSING, NO_DEVICE, TOO_OLD, TOO_NEW, BAD_PLUGIN, or
 * what the plugin met when it opened the device, as the first item of the selection met them;
 * INVALID_ARGUMENT for a selection, or a variable of hal's, that cannot be followed;
 * OUT_OF_MEMORY. */
HAL_API hal_status hal_device_open(const char *selection, HAL_OUT hal_device **device);

/* One more reference to a device. Returns `device`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null gives null. */
HAL_API hal_device *hal_device_retain(hal_device *device);

/* Gives a reference back; the last one closes the device. Buffers, kernels, queues and graphs hold
 * references of their own, so the order of releases is free. Null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_device_release(hal_device *device);

/* What the device is and can; the fields are explained in types.h.
 * Ownership: the device's, valid as long as it. Threads: any. Errors: none; null gives null. */
HAL_API const hal_device_info *hal_device_get_info(const hal_device *device);

/* The name of the device's plugin, such as "cpu", and its number there.
 * Ownership: the plugin's, valid for the life of the process. Threads: any. Errors: none; null
 * gives "" and 0. */
HAL_API const char *hal_device_get_plugin_name(const hal_device *device);
HAL_API uint32_t hal_device_get_index(const hal_device *device);

/* Memory of a device, all in bytes. */
typedef struct hal_memory_statistics {
    uint64_t total_bytes;      /* of the device */
    uint64_t free_bytes;       /* as the device says, else what hal's own count leaves */
    uint64_t in_use_bytes;     /* held by buffers of this process */
    uint64_t pooled_bytes;     /* released, kept by the pool for reuse */
    uint64_t allocation_count; /* allocations asked of the device since it was opened */
    uint64_t reuse_count;      /* requests that the pool answered */
} hal_memory_statistics;

/* Asks for the present state of the device's memory.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_get_memory(hal_device *device,
                                         HAL_OUT hal_memory_statistics *statistics);

/* Gives pooled memory that nothing uses any more back to the device.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_trim(hal_device *device);

/* ---- The registry ---- */

/* What became of one file that was looked at. */
typedef struct hal_plugin_report {
    const char *path;      /* of the file */
    const char *name;      /* of the plugin; "" when it did not get so far */
    const char *version;   /* of the plugin; "" when it did not get so far */
    hal_status status;     /* HAL_OK: loaded and has devices */
    const char *message;   /* why not; "" when it is. INVALID_STATE: a plugin of this name was found
                            * earlier in the search */
    uint32_t device_count;
    const hal_device_info *devices;
} hal_plugin_report;

typedef struct hal_registry_report {
    uint32_t plugin_count;
    const hal_plugin_report *plugins; /* in the order of the search */
    uint32_t path_count;
    const char *const *paths; /* folders and files that were searched */
    const char *choice;       /* "plugin:index" of what a null selection opens; "" for none */
    const char *reasoning;    /* a line for each device: why it is, or is not, the choice */
} hal_registry_report;

/* Loads every plugin that can be found and tells what became of each.
 * Ownership: the caller's, until hal_registry_report_destroy. Threads: any.
 * Errors: OUT_OF_MEMORY, INVALID_ARGUMENT for null; plugins that fail are part of the report. */
HAL_API hal_status hal_registry_report_create(HAL_OUT hal_registry_report **report);

/* Frees a report; null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_registry_report_destroy(hal_registry_report *report);

#ifdef __cplusplus
}
#endif
#endif

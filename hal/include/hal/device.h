/* Devices, how they are selected, and the registry of plugins.
 *
 * A device is opened by a selection: a comma list in order of preference, each item one of
 *   plugin                 the device of the plugin that auto prefers, such as cpu
 *   plugin:index           the device of the plugin with this index from 0 on, such as cpu:0
 *   plugin:text            the first device of the plugin whose name contains text, ignoring case
 *   id:text                the device with this id, from any plugin
 *   auto                   hardware, discrete before integrated, then the cpu, then software that
 *                          acts as a GPU
 * The argument of a call overrides the variable HAL_BACKEND, which overrides "auto". If no item can
 * be used, the call fails and lists the attempts and the available devices; hal never falls back to
 * another device. Plugins that no item names are not initialised.
 *
 * Plugins are searched in HAL_PLUGIN_PATH (folders or files separated by ':'), then in the folder
 * halyard/plugins next to the library. A set-uid process ignores HAL_PLUGIN_PATH. Plugins are never
 * unloaded.
 *
 * Calls on a lost device or its objects fail with DEVICE_LOST; opening it again returns a new
 * device, or DEVICE_LOST where the driver needs a new process. A forked child cannot use devices
 * of its parent: calls fail with INVALID_STATE, and releases do nothing. It may open devices itself
 * if the plugin's driver supports that. */
#ifndef HAL_DEVICE_H
#define HAL_DEVICE_H

#include <hal/status.h>
#include <hal/types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_device hal_device;

/* Opens a device, or returns a new reference to one that the process has open.
 * `selection`: see above; null for the variable or the default.
 * For a driver that has not been judged yet it starts the process hal-probe, whose id a
 * program that waits for any child sees. It waits at most 10 s (HAL_PROBE) for the start and 10 s
 * for each of up to eleven tests, with a new start after each test that ends the process;
 * HAL_PROBE=off turns it off.
 * Ownership: the caller's reference, released by hal_device_release. Threads: any.
 * Errors: of the first item that failed: NOT_FOUND, LIBRARY_MISSING, DRIVER_MISSING, NO_DEVICE,
 * TOO_OLD, TOO_NEW, BAD_PLUGIN, or those of the plugin; INVALID_ARGUMENT for a malformed selection
 * or environment variable (HAL_PROBE is a warning in the log instead); OUT_OF_MEMORY. */
HAL_API hal_status hal_device_open(const char *selection, HAL_OUT hal_device **device);

/* Adds a reference to a device. Returns `device`.
 * Ownership: the new reference is the caller's.
 * Threads: any. Errors: none; null returns null. */
HAL_API hal_device *hal_device_retain(hal_device *device);

/* Releases a reference; the last release closes the device. Buffers, kernels, queues and graphs
 * hold references too, so objects may be released in any order. Null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_device_release(hal_device *device);

/* Returns the properties of the device; types.h describes the fields.
 * Ownership: the device's, valid as long as the device. Threads: any. Errors: none; null returns
 * null. */
HAL_API const hal_device_info *hal_device_get_info(const hal_device *device);

/* Returns the quirks that hal has found in the driver: features that the plugin claims, the driver
 * gets wrong and hal therefore does not offer, and types whose constants hal hides from it
 * (constants_f32, ...), as lines "feature: reason"; "" for none. hal tests a
 * driver once, by short kernels with known results in a separate process; HAL_PROBE=off skips it.
 * Ownership: the device's, valid as long as the device. Threads: any. Errors: none; null returns
 * "". */
HAL_API const char *hal_device_get_quirks(const hal_device *device);

/* Return the name of the device's plugin, such as "cpu", and the device's index in that plugin.
 * Ownership: the plugin's, valid until the process ends. Threads: any. Errors: none; null returns
 * "" and 0. */
HAL_API const char *hal_device_get_plugin_name(const hal_device *device);
HAL_API uint32_t hal_device_get_index(const hal_device *device);

/* Memory of a device, all in bytes. */
typedef struct hal_memory_statistics {
    uint64_t total_bytes;      /* of the device */
    uint64_t free_bytes;       /* as reported by the device, else total less in use and pooled */
    uint64_t in_use_bytes;     /* held by buffers of this process */
    uint64_t pooled_bytes;     /* released, kept by the pool for reuse */
    uint64_t allocation_count; /* allocations by the driver since the device was opened */
    uint64_t reuse_count;      /* allocations from the pool */
    uint64_t imported_bytes;   /* of others, held by buffers of hal_buffer_import */
    uint64_t copied_bytes;     /* by hal_queue_write and hal_queue_read since the opening */
} hal_memory_statistics;

/* Returns the current state of the device's memory.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_get_memory(hal_device *device,
                                         HAL_OUT hal_memory_statistics *statistics);

/* Reads the clocks of the host and of the device together, to place the times of
 * hal_point_get_time among the host's.
 * Threads: any. Errors: INVALID_ARGUMENT for null; UNSUPPORTED where the plugin has no clock of the
 * device; DEVICE_LOST. */
HAL_API hal_status hal_device_get_clocks(hal_device *device, HAL_OUT hal_clocks *clocks);

/* Returns one of the quirks of the driver that its plugin knows, such as faults that it works
 * around. hal_device_get_quirks has those that hal has found.
 *   index  below the number of quirks, which stay in their order
 *   quirk  its strings are the device's and valid as long as it
 * Threads: any. Errors: NOT_FOUND from the number of quirks on; INVALID_ARGUMENT for null;
 * DEVICE_LOST. */
HAL_API hal_status hal_device_get_quirk(hal_device *device, uint32_t index,
                                        HAL_OUT hal_quirk *quirk);

/* Returns pooled memory that no work uses to the device. Does not wait for work.
 * Threads: any. Errors: INVALID_ARGUMENT, DEVICE_LOST. */
HAL_API hal_status hal_device_trim(hal_device *device);

/* ---- The registry ---- */

/* The result for one plugin file. */
typedef struct hal_plugin_report {
    const char *path;      /* of the file */
    const char *name;      /* of the plugin; "" if it could not be loaded */
    const char *version;   /* of the plugin; "" if it could not be loaded */
    hal_status status;     /* HAL_OK: loaded and has devices. INVALID_STATE: a plugin of this name
                            * was found earlier in the search */
    const char *message;   /* of a status other than HAL_OK, else "" */
    uint32_t device_count;
    const hal_device_info *devices;
    const char *extensions; /* of the plugin interface that it offers, with commas; may be "" */
} hal_plugin_report;

typedef struct hal_registry_report {
    uint32_t plugin_count;
    const hal_plugin_report *plugins; /* in the order of the search */
    uint32_t path_count;
    const char *const *paths; /* folders and files that were searched */
    const char *choice;       /* "plugin:index" that a null selection opens; "" for none */
    const char *reasoning;    /* one line per device: why it is, or is not, the choice */
} hal_registry_report;

/* Loads every plugin of the search paths and reports the result for each.
 * Ownership: the caller's, until hal_registry_report_destroy. Threads: any.
 * Errors: OUT_OF_MEMORY, INVALID_ARGUMENT for null. A plugin that fails is part of the report. */
HAL_API hal_status hal_registry_report_create(HAL_OUT hal_registry_report **report);

/* Keeps a plugin file from being loaded: its status is BAD_PLUGIN with `message`. For programs that
 * try plugins in a child process first, as hal-info does. A plugin that is loaded stays so.
 * Threads: any. Errors: INVALID_ARGUMENT for null, OUT_OF_MEMORY. */
HAL_API hal_status hal_registry_exclude(const char *path, const char *message);

/* Frees a report; null is allowed.
 * Threads: any. Errors: none. */
HAL_API void hal_registry_report_destroy(hal_registry_report *report);

#ifdef __cplusplus
}
#endif
#endif

/* The sanitize layer: HAL_SANITIZE=bounds adds checks to kernels (ir/instrument.h) and reports what
 * they find. docs/layers.md describes it.
 *
 * The plugin compiles the kernel with checks in place of the program's, and each batch is passed to
 * it as a copy whose dispatches have the checks' binding and scalars. The host waits for each batch
 * and reads its reports. All calls but those of events are under the layer's lock. */
#ifndef HAL_SRC_LAYERS_SANITIZE_H
#define HAL_SRC_LAYERS_SANITIZE_H

#include "core/batch.h"
#include "core/hooks.h"
#include "core/kernel.h"
#include "ir/instrument.h"

typedef struct hal_sanitize_chunk hal_sanitize_chunk;

typedef struct hal_sanitize_device {
    hal_device *device;
    hal_device_info info; /* with the room that checks take from programs */
    hal_sanitize_chunk *chunks;
} hal_sanitize_device;

/* Words of mapped memory that a kernel with checks writes. */
typedef struct hal_sanitize_reports {
    hal_plugin_memory *memory;
    uint64_t offset, bytes;
    uint32_t *words; /* zeros between batches */
} hal_sanitize_reports;

typedef struct hal_sanitize_kernel {
    hal_sanitize_device *device;
    hal_ir_kernel *built; /* without checks */
    uint64_t hash[2];     /* of it: names the kernel in the places of findings */
    hal_ir_instrumented checked;
    uint32_t scalar_bytes; /* of the kernel with checks */
    hal_sanitize_reports reports;
    uint64_t *totals; /* faults of each site */
    uint64_t batch;   /* the last one whose reports were read */
} hal_sanitize_kernel;

/* ---- sanitize_kernel.c ---- */

/* The kernel with checks that the plugin has as `handle`; null if it has none. Take removes it;
 * put returns 0 without host memory. Free takes null. */
hal_sanitize_kernel *hal_sanitize_kernel_find(const hal_plugin_kernel *handle);
hal_sanitize_kernel *hal_sanitize_kernel_take(const hal_plugin_kernel *handle);
bool hal_sanitize_kernel_put(const hal_plugin_kernel *handle, hal_sanitize_kernel *kernel);
void hal_sanitize_kernel_free(hal_sanitize_kernel *kernel);

/* Removes a kernel of the device; null if there is none. */
hal_sanitize_kernel *hal_sanitize_kernel_take_of(const hal_sanitize_device *device);

/* ---- sanitize_batch.c ---- */

/* Copies a batch for the plugin: dispatches of kernels with checks get their binding and scalars.
 * `first`: names its first command, the others follow. *copy is null if no kernel has checks. Free
 * by hal_recording_destroy. Errors: OUT_OF_MEMORY. */
hal_status hal_sanitize_copy_batch(const hal_recording *batch, uint32_t first,
                                   hal_recording **copy);

/* ---- sanitize_report.c ---- */

/* Zeroed words for a kernel with that many bytes of reports, until the device is closed.
 * Errors: those of the plugin. */
hal_status hal_sanitize_reports_take(hal_sanitize_device *device, uint64_t bytes,
                                     hal_sanitize_reports *reports);

/* Frees all reports of a device. */
void hal_sanitize_reports_free(hal_sanitize_device *device);

/* Logs what the kernels of a batch have reported, and clears it. The batch has ended. `first`: as
 * for hal_sanitize_copy_batch. Returns whether there was anything. */
bool hal_sanitize_reports_read(const hal_event *event, uint32_t first);

/* Logs how often each fault was counted, where it was more than once. */
void hal_sanitize_log_totals(const hal_sanitize_kernel *kernel);

/* The text of the first finding; "" before. */
const char *hal_sanitize_first_finding(void);

#endif

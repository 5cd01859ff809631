/* Halyard's hardware abstraction layer: everything in one include, its version and its log.
 *
 *     hal_device *device;                      // HAL_BACKEND decides which
 *     hal_status status = hal_device_open(NULL, &device);
 *     if (status != HAL_OK) {
 *         fprintf(stderr, "%s: %s\n", hal_status_name(status), hal_status_message());
 *     }
 *
 * variables.h lists the environment variables; docs/layers.md explains those that trace, validate,
 * dump and inject faults. */
#ifndef HAL_HAL_H
#define HAL_HAL_H

#include <hal/buffer.h>
#include <hal/cache.h>
#include <hal/device.h>
#include <hal/external.h>
#include <hal/fence.h>
#include <hal/graph.h>
#include <hal/host_call.h>
#include <hal/comm.h>
#include <hal/ir.h>
#include <hal/ir_build.h>
#include <hal/ir_report.h>
#include <hal/kernel.h>
#include <hal/native.h>
#include <hal/peaks.h>
#include <hal/profile.h>
#include <hal/queue.h>
#include <hal/reserved.h>
#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_VERSION_MAJOR 0
#define HAL_VERSION_MINOR 1
#define HAL_VERSION_PATCH 0

/* The version of the library that runs, as "major.minor.patch".
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *hal_version(void);

/* Receives a line of the log. `message` is valid during the call. May be called from any thread
 * and must not call hal. */
typedef void (*hal_log_callback)(void *user, hal_log_level level, const char *message);

/* Sends the log to a callback instead of standard error; null goes back to that. `level` is the
 * most talkative level wanted, 0 for what HAL_LOG says (error, warn, info, debug; unset: nothing).
 * Threads: any; calls in flight may still use the earlier callback. Errors: none. */
HAL_API void hal_log_set_callback(hal_log_callback callback, void *user, hal_log_level level);

/* Writes a line to the log, formatted as printf does, when its level is wanted: how libraries that
 * are built on hal report what is no error of a call.
 * Threads: any. Errors: none. */
HAL_API void hal_log_write(hal_log_level level, const char *format, ...) HAL_PRINTF(2, 3);

/* Whether lines of a level are wanted, for callers whose lines take time to compose.
 * Threads: any. Errors: none. */
HAL_API int hal_log_is_enabled(hal_log_level level);

/* How many different findings the layers "validate" and "sanitize" have had in this process so
 * far; 0 where they are not on. A program that asserts 0 at its end is a test of itself.
 * Threads: any. Errors: none. */
HAL_API uint64_t hal_validate_get_finding_count(void);

/* Keeps a sentence, formatted as printf does, as the calling thread's message and gives `status`
 * back: how libraries that are built on hal report failures of their own. Arguments may point into
 * the present message, so words can be put around it.
 * Ownership: the arguments are copied. Threads: any. Errors: none; works when memory is out. */
HAL_API hal_status hal_status_set(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif

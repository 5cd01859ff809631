/* Status codes: what every fallible call of hal, of ops and of a plugin returns.
 *
 * Stands alone with plugin.h, types.h and ir.h: these four are all that a plugin needs.
 * A status is the kind of an error. Each thread has the message of its last error, see
 * hal_status_message. */
#ifndef HAL_STATUS_H
#define HAL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that libhalyard or libhalyard_ops exports. */
#ifndef HAL_API
#define HAL_API __attribute__((visibility("default")))
#endif

/* Marks a parameter through which a function returns something: it is written and not read. Such
 * parameters come last. */
#ifndef HAL_OUT
#define HAL_OUT
#endif

/* Makes the compiler check the format string, as for printf. */
#define HAL_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))

typedef int32_t hal_status;

/* Evaluates a call once and returns its status from the enclosing function unless it is HAL_OK. */
#define HAL_TRY(call)                             \
    do {                                          \
        const hal_status hal_try_status = (call); \
        if (hal_try_status != HAL_OK) {           \
            return hal_try_status;                \
        }                                         \
    } while (0)

/* Values of hal_status. They are part of the plugin contract: they never change, new ones are
 * appended. */
typedef enum hal_status_code {
    HAL_OK = 0,
    HAL_ERROR_INVALID_ARGUMENT = 1, /* null, out of range, misaligned, mismatched shapes */
    HAL_ERROR_INVALID_IR = 2,       /* a kernel that is ill-typed, not uniform, or malformed */
    HAL_ERROR_INVALID_STATE = 3,    /* valid arguments in the wrong state */
    HAL_ERROR_UNSUPPORTED = 4,      /* the device or plugin lacks a feature */
    HAL_ERROR_OUT_OF_MEMORY = 5,    /* of the host or of the device; the message says which */
    HAL_ERROR_NOT_FOUND = 6,        /* no such plugin, device, file or cache entry */
    HAL_ERROR_LIBRARY_MISSING = 7,  /* a vendor's loader library is not installed */
    HAL_ERROR_DRIVER_MISSING = 8,   /* the library exists, its driver does not */
    HAL_ERROR_NO_DEVICE = 9,        /* the driver finds no device */
    HAL_ERROR_TOO_OLD = 10,         /* library, driver, device or plugin is too old */
    HAL_ERROR_TOO_NEW = 11,         /* a plugin of a newer major version than this hal */
    HAL_ERROR_BAD_PLUGIN = 12,      /* not a plugin, or one that violates the contract */
    HAL_ERROR_COMPILE = 13,         /* the driver rejected a kernel; its log is in the message */
    HAL_ERROR_TIMEOUT = 14,         /* the time limit of a wait has passed */
    HAL_ERROR_DEVICE_LOST = 15,     /* sticky: every later call on the device returns it */
    HAL_ERROR_IO = 16,              /* reading or writing a file failed */
    HAL_ERROR_INTERNAL = 17,        /* a bug of hal or of the plugin: please report it */
    HAL_STATUS_COUNT = 18
} hal_status_code;

/* The name of a status, such as "HAL_ERROR_UNSUPPORTED"; "HAL_STATUS_?" for an unknown value.
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *hal_status_name(hal_status status);

/* The message of the calling thread's last failed call: what was expected, what came, what to do.
 * Empty before the first failure; successful calls do not change it.
 * Ownership: belongs to the thread; valid until its next failing call. Threads: any. Errors:
 * none. */
HAL_API const char *hal_status_message(void);

#ifdef __cplusplus
}
#endif
#endif

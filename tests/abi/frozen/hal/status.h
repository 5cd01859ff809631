/* hal/status.h of plugin ABI 1.0, without its comments; it never changes. */
#ifndef TESTS_ABI_FROZEN_HAL_STATUS_H
#define TESTS_ABI_FROZEN_HAL_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HAL_API
#define HAL_API __attribute__((visibility("default")))
#endif

#ifndef HAL_OUT
#define HAL_OUT
#endif

#define HAL_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))

typedef int32_t hal_status;

#define HAL_TRY(call)                             \
    do {                                          \
        const hal_status hal_try_status = (call); \
        if (hal_try_status != HAL_OK) {           \
            return hal_try_status;                \
        }                                         \
    } while (0)

typedef enum hal_status_code {
    HAL_OK = 0,
    HAL_ERROR_INVALID_ARGUMENT = 1,
    HAL_ERROR_INVALID_IR = 2,
    HAL_ERROR_INVALID_STATE = 3,
    HAL_ERROR_UNSUPPORTED = 4,
    HAL_ERROR_OUT_OF_MEMORY = 5,
    HAL_ERROR_NOT_FOUND = 6,
    HAL_ERROR_LIBRARY_MISSING = 7,
    HAL_ERROR_DRIVER_MISSING = 8,
    HAL_ERROR_NO_DEVICE = 9,
    HAL_ERROR_TOO_OLD = 10,
    HAL_ERROR_TOO_NEW = 11,
    HAL_ERROR_BAD_PLUGIN = 12,
    HAL_ERROR_COMPILE = 13,
    HAL_ERROR_TIMEOUT = 14,
    HAL_ERROR_DEVICE_LOST = 15,
    HAL_ERROR_IO = 16,
    HAL_ERROR_INTERNAL = 17,
    HAL_STATUS_COUNT = 18
} hal_status_code;

HAL_API const char *hal_status_name(hal_status status);

HAL_API const char *hal_status_message(void);

#ifdef __cplusplus
}
#endif
#endif

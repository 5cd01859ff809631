/* Failures of the driver, with a message. */
#include "status.h"

/* MTLCommandBufferError, by value. */
static const char *const command_errors[] = {
    [0] = "no error",        [1] = "internal error",   [2] = "time limit",
    [3] = "page fault",      [4] = "access revoked",   [7] = "not permitted",
    [8] = "out of memory",   [9] = "invalid resource", [10] = "memoryless limit",
    [11] = "device removed", [12] = "stack overflow",
};

hal_status metal_fail_commands(const char *device, const metal_error *error)
{
    const size_t known = sizeof command_errors / sizeof command_errors[0];
    const char *name =
        error->code >= 0 && (size_t)error->code < known && command_errors[error->code] != NULL
            ? command_errors[error->code]
            : "unknown error";
    return kit_fail(HAL_ERROR_DEVICE_LOST,
                    "%s: a batch failed while it ran: %s (MTLCommandBufferError %ld): %.1000s; "
                    "open the device again",
                    device, name, error->code, error->message);
}

/* How every source of hal reports a failure: `return hal_fail(HAL_ERROR_X, "sentence", ...)`. */
#ifndef HAL_SRC_BASE_STATUS_H
#define HAL_SRC_BASE_STATUS_H

#include <hal/status.h>

/* Bytes of a thread's message with its closing zero; longer sentences end in "...". */
#define HAL_MESSAGE_BYTES 1024

/* Keeps the sentence as the calling thread's message and gives `status` back. Arguments may point
 * into the present message, so a caller can put words around it.
 * Threads: any. Errors: none; works when memory is out. */
hal_status hal_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

#endif

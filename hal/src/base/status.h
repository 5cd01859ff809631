/* Reports a failure: `return hal_fail(HAL_ERROR_X, "message", ...)`. */
#ifndef HAL_SRC_BASE_STATUS_H
#define HAL_SRC_BASE_STATUS_H

#include <hal/status.h>

/* Bytes of a thread's message with its closing zero; longer ones end in "...". */
#define HAL_MESSAGE_BYTES 1024

/* Sets the calling thread's message and returns `status`. Arguments may point into the present
 * message, so that callers can add to it.
 * Threads: any. Errors: none; works when memory is out. */
hal_status hal_fail(hal_status status, const char *format, ...) HAL_PRINTF(2, 3);

/* The thread's message, around calls whose failure a successful call handles itself. */
typedef struct hal_saved_message {
    char text[HAL_MESSAGE_BYTES];
} hal_saved_message;

void hal_message_save(hal_saved_message *saved);
void hal_message_restore(const hal_saved_message *saved);

#endif

/* The thread's message around calls whose failure a successful call handles itself. */
#ifndef OPS_SRC_TENSOR_MESSAGE_H
#define OPS_SRC_TENSOR_MESSAGE_H

#include <hal/status.h>
#include <string.h>

/* As long as hal's messages are at most. */
typedef struct ops_message {
    char text[1024];
} ops_message;

static inline void ops_message_save(ops_message *saved)
{
    const char *text = hal_status_message();
    const size_t bytes = strnlen(text, sizeof saved->text - 1);
    memcpy(saved->text, text, bytes);
    saved->text[bytes] = 0;
}

static inline void ops_message_restore(const ops_message *saved)
{
    if (strcmp(hal_status_message(), saved->text) != 0) { /* seldom, and formatting takes time */
        hal_status_set(HAL_OK, "%s", saved->text);
    }
}

#endif

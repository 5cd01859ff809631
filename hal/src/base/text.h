/* Growing text, for messages, reports, paths and files. */
#ifndef HAL_SRC_BASE_TEXT_H
#define HAL_SRC_BASE_TEXT_H

#include <hal/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Begins as {0}. Out of memory sets `failed` and leaves the text as it is. */
typedef struct hal_text {
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
} hal_text;

/* Appends to the text. Threads: the text's. */
void hal_text_add(hal_text *text, const char *format, ...) HAL_PRINTF(2, 3);

/* The text so far, never null. */
const char *hal_text_get(const hal_text *text);

void hal_text_free(hal_text *text);

#endif

/* Growing text, see text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(hal_text *text, size_t more)
{
    if (text->capacity - text->length >= more) {
        return true;
    }
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity - text->length < more) {
        capacity *= 2;
    }
    char *data = realloc(text->data, capacity);
    if (!data) {
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void hal_text_add(hal_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int needed = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (needed < 0 || !text_reserve(text, (size_t)needed + 1)) {
        text->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)needed + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)needed;
}

const char *hal_text_get(const hal_text *text)
{
    return text->data ? text->data : "";
}

void hal_text_free(hal_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

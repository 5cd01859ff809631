/* Text that grows, see text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Room for `more` bytes and the null byte after them. */
static bool reserve(kit_text *text, uint64_t more)
{
    const uint64_t needed = text->length + more + 1;
    if (text->failed || needed <= text->capacity) {
        return !text->failed;
    }
    uint64_t capacity = text->capacity ? text->capacity : 4096;
    while (capacity < needed) {
        capacity *= 2;
    }
    char *data = text->host->allocate(text->host, capacity, 16);
    if (!data) {
        text->failed = 1;
        return false;
    }
    if (text->data) {
        memcpy(data, text->data, text->length);
        text->host->release(text->host, text->data);
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void kit_text_append(kit_text *text, const char *bytes, uint64_t length)
{
    if (!reserve(text, length)) {
        return;
    }
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void kit_text_add(kit_text *text, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->failed = 1;
    } else if ((size_t)length < sizeof line) {
        kit_text_append(text, line, (uint64_t)length);
    } else if (reserve(text, (uint64_t)length)) {
        va_start(arguments, format);
        vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
        va_end(arguments);
        text->length += (uint64_t)length;
    }
}

void kit_text_release(kit_text *text)
{
    if (text->data) {
        text->host->release(text->host, text->data);
    }
    *text = (kit_text){.host = text->host};
}

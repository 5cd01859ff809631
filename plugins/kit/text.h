/* Text that grows, for lowerings that write a language. After a failed allocation it takes no more
 * and `failed` is set, so that only the end has to look. A text belongs to one thread at a time. */
#ifndef KIT_TEXT_H
#define KIT_TEXT_H

#include <hal/plugin.h>

typedef struct kit_text {
    const hal_host *host; /* whose memory it takes */
    char *data;           /* ends with a null byte once something was added; else null */
    uint64_t length, capacity;
    uint32_t failed;
} kit_text;

/* Appends as printf does. */
#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
void kit_text_add(kit_text *text, const char *format, ...);

/* Appends `length` bytes. */
void kit_text_append(kit_text *text, const char *bytes, uint64_t length);

/* Gives the memory back; the text is then empty. */
void kit_text_release(kit_text *text);

#endif

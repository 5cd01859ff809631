/* Text that grows, for lowerings that write a language. After a failed allocation `failed` is set
 * and later calls do nothing, so that the caller checks once, at the end. A text belongs to one
 * thread at a time. */
#ifndef PLUGINS_KIT_TEXT_H
#define PLUGINS_KIT_TEXT_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kit_text {
    const hal_host *host; /* whose memory it takes */
    char *data;           /* null-terminated; null while empty */
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

/* Releases the memory; the text is then empty. */
void kit_text_release(kit_text *text);

#ifdef __cplusplus
}
#endif

#endif

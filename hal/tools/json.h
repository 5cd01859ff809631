/* json.h: the JSON of all programs: texts as they are written, and a reader that makes one tree in
 * memory. */
#ifndef HAL_TOOLS_JSON_H
#define HAL_TOOLS_JSON_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the UTF-8 character that begins here; 0 when none does, or one that XML forbids. The
 * text ends with a zero. */
size_t json_character(const char *text);

/* Writes a text in quotes. Bytes that are no UTF-8 become question marks. */
void json_write_text(FILE *file, const char *text);

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value {
    json_kind kind;
    double number;
    char *key;                /* in an object */
    char *text;               /* of JSON_TEXT, UTF-8 */
    struct json_value *first; /* of an array's or object's values, */
    struct json_value *next;  /* in their order */
} json_value;

/* The tree of a text that ends with a zero; null with a sentence in `message` when it is no JSON,
 * is deeper than 32 or there is no memory. Freed with json_free. */
json_value *json_read(const char *text, char *message, size_t bytes);
void json_free(json_value *value);

/* Null when `object` is null or no object, or has no such key. */
const json_value *json_find(const json_value *object, const char *key);

/* The text of a key; "": none. */
const char *json_text_of(const json_value *object, const char *key);

#endif

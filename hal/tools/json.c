/* json.c: reads JSON and writes its texts. */
#include "json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32 };

typedef struct reader {
    const char *begin, *at;
    const char *wrong; /* what is, at `at`; null: nothing */
    int depth;
} reader;

static json_value *read_value(reader *r);

static void skip_space(reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

/* The first thing that is wrong counts. Always null. */
static void *fail(reader *r, const char *what)
{
    if (!r->wrong) {
        r->wrong = what;
    }
    return NULL;
}

static uint32_t read_hex(reader *r)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = *r->at == 0 ? NULL : strchr(digits, *r->at | 0x20);
        if (!digit) {
            fail(r, "no four hexadecimal digits");
            return 0;
        }
        value = value << 4 | (uint32_t)(digit - digits);
    }
    return value;
}

static char *put_utf8(char *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = (char)point;
    } else if (point < 0x800) {
        *out++ = (char)(0xc0 | point >> 6);
        *out++ = (char)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *out++ = (char)(0xe0 | point >> 12);
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    } else {
        *out++ = (char)(0xf0 | point >> 18);
        *out++ = (char)(0x80 | (point >> 12 & 0x3f));
        *out++ = (char)(0x80 | (point >> 6 & 0x3f));
        *out++ = (char)(0x80 | (point & 0x3f));
    }
    return out;
}

/* An escape is never shorter than its character. */
static bool read_escape(reader *r, char **out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char name = r->at[1];
    const char *known = name == 0 ? NULL : strchr(names, name);
    if (known) {
        *(*out)++ = values[known - names];
        r->at += 2;
        return true;
    }
    if (name != 'u') {
        return false;
    }
    r->at += 2;
    uint32_t point = read_hex(r);
    if (point >= 0xd800 && point < 0xdc00 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        point = 0x10000 + ((point - 0xd800) << 10) + ((read_hex(r) - 0xdc00) & 0x3ff);
    }
    *out = put_utf8(*out, point);
    return !r->wrong;
}

static char *read_text(reader *r)
{
    const char *end = ++r->at;
    while (*end != '"' && *end != 0) {
        end += *end == '\\' && end[1] != 0 ? 2 : 1;
    }
    char *text = malloc((size_t)(end - r->at) + 1), *out = text;
    if (!text) {
        return fail(r, "no memory");
    }
    while (*r->at != '"') {
        if (*r->at == 0 || (*r->at == '\\' && !read_escape(r, &out))) {
            free(text);
            return fail(r, "a text does not end");
        }
        if (*r->at != '"' && *r->at != 0 && *r->at != '\\') {
            *out++ = *r->at++;
        }
    }
    r->at++;
    *out = 0;
    return text;
}

static bool read_members(reader *r, json_value *container, char close)
{
    json_value **place = &container->first;
    if (++r->depth > MOST_DEPTH) {
        return fail(r, "too deep") != NULL;
    }
    r->at++;
    skip_space(r);
    while (*r->at != close) {
        char *key = NULL;
        if (close == '}') {
            key = *r->at == '"' ? read_text(r) : fail(r, "no key begins");
            skip_space(r);
            if (!key || *r->at != ':') {
                free(key);
                return fail(r, "no ':' follows the key") != NULL;
            }
            r->at++;
        }
        json_value *field = read_value(r);
        if (!field) {
            free(key);
            return false;
        }
        field->key = key;
        *place = field;
        place = &field->next;
        skip_space(r);
        if (*r->at == ',') {
            r->at++;
            skip_space(r);
        } else if (*r->at != close) {
            return fail(r, "neither ',' nor the end follows a value") != NULL;
        }
    }
    r->at++;
    r->depth--;
    return true;
}

static json_value *read_value(reader *r)
{
    static const struct {
        const char *word;
        json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
    skip_space(r);
    json_value *value = calloc(1, sizeof *value);
    if (!value) {
        return fail(r, "no memory");
    }
    bool well = true;
    if (*r->at == '{' || *r->at == '[') {
        value->kind = *r->at == '{' ? JSON_OBJECT : JSON_ARRAY;
        well = read_members(r, value, *r->at == '{' ? '}' : ']');
    } else if (*r->at == '"') {
        value->kind = JSON_TEXT;
        well = (value->text = read_text(r)) != NULL;
    } else if (*r->at == '-' || (*r->at >= '0' && *r->at <= '9')) {
        char *end;
        value->kind = JSON_NUMBER;
        value->number = strtod(r->at, &end);
        r->at = end;
    } else {
        well = false;
        for (size_t i = 0; i < sizeof words / sizeof words[0] && !well; i++) {
            if (strncmp(r->at, words[i].word, strlen(words[i].word)) == 0) {
                value->kind = words[i].kind;
                r->at += strlen(words[i].word);
                well = true;
            }
        }
        if (!well) {
            fail(r, *r->at == 0 ? "the text ends too early" : "no value begins");
        }
    }
    if (!well) {
        json_free(value);
        return NULL;
    }
    return value;
}

json_value *json_read(const char *text, char *message, size_t bytes)
{
    reader r = {.begin = text, .at = text};
    json_value *value = read_value(&r);
    skip_space(&r);
    if (value && *r.at != 0) {
        fail(&r, "something follows the value");
    }
    if (r.wrong) {
        snprintf(message, bytes, "%s at byte %zu", r.wrong, (size_t)(r.at - r.begin));
        json_free(value);
        return NULL;
    }
    return value;
}

void json_free(json_value *value)
{
    while (value) {
        json_value *next = value->next;
        json_free(value->first);
        free(value->key);
        free(value->text);
        free(value);
        value = next;
    }
}

const json_value *json_find(const json_value *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT) {
        return NULL;
    }
    const json_value *field = object->first;
    while (field && strcmp(field->key, key) != 0) {
        field = field->next;
    }
    return field;
}

const char *json_text_of(const json_value *object, const char *key)
{
    const json_value *field = json_find(object, key);
    return !field || field->kind != JSON_TEXT ? "" : field->text;
}

size_t json_character(const char *begin)
{
    const unsigned char *text = (const unsigned char *)begin;
    const unsigned first = text[0];
    const size_t length = first < 0x80                     ? 1
                          : first >= 0xc2 && first < 0xe0  ? 2
                          : first >= 0xe0 && first < 0xf0  ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;
    uint32_t point = length < 2 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        point = point << 6 | (text[i] & 0x3fu);
    }
    const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
    const bool forbidden = (point >= 0xd800 && point < 0xe000) || point == 0xfffe ||
                           point == 0xffff || point > 0x10ffff;
    return overlong || forbidden ? 0 : length;
}

void json_write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0;) {
        const size_t length = json_character((const char *)c);
        if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 32 || *c == 127) {
            fprintf(file, "\\u%04x", *c);
        } else if (length == 0) {
            fputc('?', file);
        } else {
            fwrite(c, 1, length, file);
        }
        c += length == 0 ? 1 : length;
    }
    fputc('"', file);
}

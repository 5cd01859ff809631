/* Tokens of IR text; safe on any bytes. */
#include "text.h"

#include "base/platform.h"

#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skips blanks and a comment up to the end of the line. */
static void skip_blanks(hal_ir_reader *reader)
{
    while (reader->at < reader->bytes) {
        const char c = reader->text[reader->at];
        if (c == ';') {
            while (reader->at < reader->bytes && reader->text[reader->at] != '\n') {
                reader->at++;
            }
            return;
        }
        if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        reader->at++;
    }
}

static bool is_word_character(char c, bool number)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (number && (c == '.' || c == '+' || c == '-' || c == ':'));
}

static bool parse_unsigned(const char *word, uint64_t limit, uint64_t *value)
{
    const int base = word[0] == '0' && (word[1] == 'x' || word[1] == 'X') ? 16 : 10;
    char *end = NULL;
    if (word[0] < '0' || word[0] > '9') {
        return false; /* strtoull would take a sign or blanks */
    }
    errno = 0;
    const unsigned long long number = strtoull(word, &end, base);
    *value = number;
    return errno == 0 && end != word && *end == 0 && number <= limit;
}

static bool parse_signed(const char *word, int64_t low, int64_t high, int64_t *value)
{
    uint64_t magnitude = 0;
    if (word[0] == '-') {
        if (!parse_unsigned(word + 1, (uint64_t)0 - (uint64_t)low, &magnitude)) {
            return false;
        }
        *value = (int64_t)(0 - magnitude);
        return true;
    }
    if (!parse_unsigned(word, (uint64_t)high, &magnitude)) {
        return false;
    }
    *value = (int64_t)magnitude;
    return true;
}

/* A decimal or hexadecimal number, inf, -inf, or nan: with the bits. Independent of the locale and
 * of the floating-point environment. */
static bool parse_float(const char *word, hal_type type, uint64_t *bits)
{
    const bool is_f32 = type == HAL_TYPE_F32;
    if (strncmp(word, "nan:", 4) == 0) {
        const uint64_t infinity = is_f32 ? 0x7f800000 : UINT64_C(0x7ff0000000000000);
        const uint64_t magnitude = is_f32 ? 0x7fffffff : INT64_MAX;
        return parse_unsigned(word + 4, is_f32 ? UINT32_MAX : UINT64_MAX, bits) &&
               (*bits & magnitude) > infinity;
    }
    const char *digits = word + (word[0] == '-');
    const bool infinite = strcmp(digits, "inf") == 0;
    if (!infinite && (digits[0] < '0' || digits[0] > '9')) {
        return false;
    }
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return false;
    }
    char *end = NULL;
    fenv_t environment;
    *bits = 0;
    fegetenv(&environment); /* strtod follows the rounding mode, and may raise */
    fesetenv(FE_DFL_ENV);
    if (is_f32) {
        const float value = strtof_l(word, &end, c_locale);
        memcpy(bits, &value, sizeof value);
    } else {
        const double value = strtod_l(word, &end, c_locale);
        memcpy(bits, &value, sizeof value);
    }
    fesetenv(&environment);
    freelocale(c_locale);
    return *end == 0;
}

bool hal_ir_reader_fail(hal_ir_reader *reader, const char *format, ...)
{
    if (reader->failed) {
        return false;
    }
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    reader->failed = true;
    const size_t column = reader->token < reader->line_start
                              ? 1
                              : reader->token - reader->line_start + 1;
    return hal_ir_reject(&reader->problem, "line %u, column %zu: %s", reader->line, column, text);
}

bool hal_ir_reader_line(hal_ir_reader *reader)
{
    while (!reader->failed) {
        skip_blanks(reader);
        if (reader->at == reader->bytes) {
            return false;
        }
        if (reader->text[reader->at] != '\n') {
            return true;
        }
        reader->at++;
        reader->line++;
        reader->line_start = reader->at;
    }
    return false;
}

bool hal_ir_reader_at_end(hal_ir_reader *reader)
{
    skip_blanks(reader);
    return reader->at == reader->bytes || reader->text[reader->at] == '\n';
}

bool hal_ir_reader_end(hal_ir_reader *reader)
{
    if (reader->failed || hal_ir_reader_at_end(reader)) {
        return !reader->failed;
    }
    reader->token = reader->at;
    return hal_ir_reader_fail(reader, "expected the end of the line");
}

bool hal_ir_reader_accept(hal_ir_reader *reader, char c)
{
    skip_blanks(reader);
    if (reader->failed || reader->at == reader->bytes || reader->text[reader->at] != c) {
        return false;
    }
    reader->token = reader->at++;
    return true;
}

bool hal_ir_reader_expect(hal_ir_reader *reader, char c)
{
    if (hal_ir_reader_accept(reader, c)) {
        return true;
    }
    reader->token = reader->at;
    return hal_ir_reader_fail(reader, "expected `%c`", c);
}

bool hal_ir_reader_word(hal_ir_reader *reader, const char *what, bool number,
                        char word[HAL_IR_WORD_BYTES])
{
    uint32_t length = 0;
    word[0] = 0;
    skip_blanks(reader);
    reader->token = reader->at;
    while (!reader->failed && reader->at < reader->bytes &&
           is_word_character(reader->text[reader->at], number)) {
        if (length == HAL_IR_MAX_NAME) {
            return hal_ir_reader_fail(reader, "%s: expected at most %u characters", what,
                                      HAL_IR_MAX_NAME);
        }
        word[length++] = reader->text[reader->at++];
    }
    word[length] = 0;
    return length > 0 || hal_ir_reader_fail(reader, "expected %s", what);
}

bool hal_ir_reader_unsigned(hal_ir_reader *reader, const char *what, uint64_t limit,
                            uint64_t *value)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(reader, what, 1, word)) {
        return false;
    }
    return parse_unsigned(word, limit, value) ||
           hal_ir_reader_fail(reader, "%s: expected a whole number from 0 to %llu, got `%s`", what,
                              (unsigned long long)limit, word);
}

bool hal_ir_reader_signed(hal_ir_reader *reader, const char *what, int64_t *value)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(reader, what, 1, word)) {
        return false;
    }
    return parse_signed(word, INT32_MIN, INT32_MAX, value) ||
           hal_ir_reader_fail(reader, "%s: expected an integer of 32 bits, got `%s`", what, word);
}

bool hal_ir_reader_constant(hal_ir_reader *reader, hal_type type, uint64_t *bits)
{
    char word[HAL_IR_WORD_BYTES];
    int64_t number = 0;
    bool good;
    if (!hal_ir_reader_word(reader, "a constant", 1, word)) {
        return false;
    }
    switch (type) {
    case HAL_TYPE_BOOL:
        *bits = strcmp(word, "true") == 0;
        good = *bits || strcmp(word, "false") == 0;
        break;
    case HAL_TYPE_I32:
        good = parse_signed(word, INT32_MIN, INT32_MAX, &number);
        *bits = (uint32_t)number;
        break;
    case HAL_TYPE_I64:
        good = parse_signed(word, INT64_MIN, INT64_MAX, &number);
        *bits = (uint64_t)number;
        break;
    case HAL_TYPE_U32:
        good = parse_unsigned(word, UINT32_MAX, bits);
        break;
    case HAL_TYPE_U64:
        good = parse_unsigned(word, UINT64_MAX, bits);
        break;
    default:
        good = parse_float(word, type, bits);
        break;
    }
    return good || hal_ir_reader_fail(reader, "expected a constant of type %s, got `%s`",
                                      hal_type_name(type), word);
}

bool hal_ir_reader_type(hal_ir_reader *reader, hal_type *type, uint32_t *width)
{
    char word[HAL_IR_WORD_BYTES];
    if (!hal_ir_reader_word(reader, "a type", 0, word)) {
        return false;
    }
    char *times = !width ? NULL : strrchr(word, 'x');
    uint64_t lanes = 1;
    if (times) {
        if (!parse_unsigned(times + 1, 8, &lanes)) {
            return hal_ir_reader_fail(reader, "expected a type, got `%s`", word);
        }
        *times = 0;
    }
    for (hal_type i = HAL_TYPE_BOOL; i < HAL_TYPE_COUNT; i++) {
        if (strcmp(word, hal_type_name(i)) == 0) {
            *type = i;
            if (width) {
                *width = (uint32_t)lanes;
            }
            return true;
        }
    }
    return hal_ir_reader_fail(reader, "expected a type, got `%s`", word);
}

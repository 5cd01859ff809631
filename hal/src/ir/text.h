/* Reader of tokens of IR text. */
#ifndef HAL_SRC_IR_TEXT_H
#define HAL_SRC_IR_TEXT_H

#include "internal.h"

#include <stdbool.h>

/* Bytes of a word or number with its closing zero. */
#define HAL_IR_WORD_BYTES (HAL_IR_MAX_NAME + 1)

/* A position in text, which need not end in a zero. Errors are sticky: after the first one calls
 * have no effect and return 0. */
typedef struct hal_ir_reader {
    const char *text;
    size_t bytes;
    size_t at;
    size_t line_start;
    uint32_t line;   /* from 1 */
    size_t token;    /* begin of the last token */
    bool failed;
    hal_ir_problem problem; /* with line and column in front */
} hal_ir_reader;

/* Sets an error at the last token. Returns 0. */
bool hal_ir_reader_fail(hal_ir_reader *reader, const char *format, ...) HAL_PRINTF(2, 3);

/* Skips empty lines and comments. Returns 0 at the end of the text. */
bool hal_ir_reader_line(hal_ir_reader *reader);

/* Whether only blanks and a comment are left on the line; the second requires it. */
bool hal_ir_reader_at_end(hal_ir_reader *reader);
bool hal_ir_reader_end(hal_ir_reader *reader);

/* Consumes a character if it is the next token; the second requires it. */
bool hal_ir_reader_accept(hal_ir_reader *reader, char c);
bool hal_ir_reader_expect(hal_ir_reader *reader, char c);

/* A word of letters, digits and _; with `number`, also of `.`, `+`, `-` and `:`. */
bool hal_ir_reader_word(hal_ir_reader *reader, const char *what, bool number,
                        char word[HAL_IR_WORD_BYTES]);

/* A decimal or hexadecimal number up to `limit`; a signed number of 32 bits. */
bool hal_ir_reader_unsigned(hal_ir_reader *reader, const char *what, uint64_t limit,
                            uint64_t *value);
bool hal_ir_reader_signed(hal_ir_reader *reader, const char *what, int64_t *value);

/* The bits of a constant of a type. */
bool hal_ir_reader_constant(hal_ir_reader *reader, hal_type type, uint64_t *bits);

/* A type, with a width as in f32x4 unless `width` is null. */
bool hal_ir_reader_type(hal_ir_reader *reader, hal_type *type, uint32_t *width);

#endif

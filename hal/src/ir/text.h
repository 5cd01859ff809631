/* Reading tokens out of IR text: what the parser stands on. */
#ifndef HAL_SRC_IR_TEXT_H
#define HAL_SRC_IR_TEXT_H

#include "internal.h"

/* Room for a word or number with its closing zero. */
#define HAL_IR_WORD_BYTES (HAL_IR_MAX_NAME + 1)

/* A place in text that need not end in a zero. The first failure is kept: later calls change
 * nothing and give 0. */
typedef struct hal_ir_reader {
    const char *text;
    size_t bytes;
    size_t at;
    size_t line_start;
    uint32_t line;   /* from 1 */
    size_t token;    /* where the last token began */
    int failed;
    hal_ir_problem problem; /* with line and column in front */
} hal_ir_reader;

/* Notes a failure at the last token; gives 0. */
int hal_ir_reader_fail(hal_ir_reader *reader, const char *format, ...) HAL_PRINTF(2, 3);

/* Passes empty lines and comments to the next token. 0 at the end of the text. */
int hal_ir_reader_line(hal_ir_reader *reader);

/* Whether the line has ended, but for blanks and a comment; expects that it has. */
int hal_ir_reader_at_end(hal_ir_reader *reader);
int hal_ir_reader_end(hal_ir_reader *reader);

/* Passes a character if it is the next token; expects it. */
int hal_ir_reader_accept(hal_ir_reader *reader, char c);
int hal_ir_reader_expect(hal_ir_reader *reader, char c);

/* A word of letters, digits and _; with `number`, also of the signs that numbers have. */
int hal_ir_reader_word(hal_ir_reader *reader, const char *what, int number,
                       char word[HAL_IR_WORD_BYTES]);

/* Whole numbers, decimal or hexadecimal, at most `limit`; and a signed one. */
int hal_ir_reader_unsigned(hal_ir_reader *reader, const char *what, uint64_t limit,
                           uint64_t *value);
int hal_ir_reader_signed(hal_ir_reader *reader, const char *what, int64_t *value);

/* The bits of a constant of a type. */
int hal_ir_reader_constant(hal_ir_reader *reader, hal_type type, uint64_t *bits);

/* A type, and a width behind it as in f32x4; `width` is null where none may stand. */
int hal_ir_reader_type(hal_ir_reader *reader, hal_type *type, uint32_t *width);

#endif

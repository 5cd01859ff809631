/* The text to learn from: README.md and the pages in docs of a folder, as numbers of the letters
 * (bytes) that occur in it, cut into streams that are read in parallel. */
#ifndef EXAMPLES_RNN_TEXT_H
#define EXAMPLES_RNN_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct rnn_text {
    int64_t count;
    int32_t *letters; /* 0 .. letter_count - 1 */
    int32_t letter_count;
    unsigned char bytes[256]; /* of each letter */
    int32_t letter_of[256];   /* of each byte; -1: does not occur */
} rnn_text;

/* Reads the files below `folder` in the order of their names. On failure returns 0 and writes a
 * message with the file to `error`. */
int rnn_text_load(const char *folder, rnn_text *text, char *error, size_t error_bytes);

/* Frees what load allocated. */
void rnn_text_free(rnn_text *text);

/* Letters and those that follow them: of each of `batch` streams `steps` letters from `position`
 * on, step by step: element step * batch + stream. Returns the next position, which is 0 at the
 * end of the streams. */
int64_t rnn_text_batch(const rnn_text *text, int64_t batch, int64_t steps, int64_t position,
                       int32_t *letters, int32_t *next);

#endif

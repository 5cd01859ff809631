/* Handwritten digits in CSV: 64 grey values 0..16, row by row, then the class 0..9. */
#ifndef EXAMPLES_DIGITS_DATA_H
#define EXAMPLES_DIGITS_DATA_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_SIDE 8
#define DIGITS_PIXELS (DIGITS_SIDE * DIGITS_SIDE)
#define DIGITS_CLASSES 10

typedef struct digits_data {
    int64_t count;
    float *pixels;   /* count x 64, 0 to 1 */
    int32_t *labels; /* count */
} digits_data;

/* Reads a file. On failure returns 0 and writes a message with file and line to `error`. */
int digits_data_load(const char *path, digits_data *data, char *error, size_t error_bytes);

/* Frees what load allocated. */
void digits_data_free(digits_data *data);

/* The rows first, first + 1, ... (count of them) of `data`, without a copy. */
digits_data digits_data_rows(const digits_data *data, int64_t first, int64_t count);

#endif

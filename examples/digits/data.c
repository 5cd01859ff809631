/* Reads the digits' CSV files; used by main.c. */
#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREY_MAX 16
#define LINE_BYTES 1024

static int reserve(digits_data *data, int64_t *capacity)
{
    if (data->count < *capacity) {
        return 1;
    }
    int64_t more = *capacity == 0 ? 1024 : *capacity * 2;
    float *pixels = realloc(data->pixels, (size_t)more * DIGITS_PIXELS * sizeof(float));
    if (!pixels) {
        return 0;
    }
    data->pixels = pixels;
    int32_t *labels = realloc(data->labels, (size_t)more * sizeof(int32_t));
    if (!labels) {
        return 0;
    }
    data->labels = labels;
    *capacity = more;
    return 1;
}

/* Reads a number and the comma or end of line after it. In a row that is too short, the position
 * stays at its end. */
static int parse_field(char **cursor, int last, int *value)
{
    char *end;
    errno = 0;
    long number = strtol(*cursor, &end, 10);
    if (end == *cursor || errno != 0 || number < -1000000 || number > 1000000) {
        return 0;
    }
    *value = (int)number;
    int at_end = *end == '\0' || *end == '\n' || *end == '\r';
    if (last ? !at_end : !(at_end || *end == ',')) {
        return 0;
    }
    *cursor = at_end ? end : end + 1;
    return 1;
}

static int parse_row(char *line, float *pixels, int32_t *label, char *error, size_t error_bytes)
{
    char *cursor = line;
    for (int i = 0; i <= DIGITS_PIXELS; i++) {
        int is_label = i == DIGITS_PIXELS;
        int most = is_label ? DIGITS_CLASSES - 1 : GREY_MAX;
        int value = 0;
        if (*cursor == '\0' || *cursor == '\n' || *cursor == '\r') {
            snprintf(error, error_bytes, "the row ends after %d of %d values", i,
                     DIGITS_PIXELS + 1);
            return 0;
        }
        if (!parse_field(&cursor, is_label, &value)) {
            snprintf(error, error_bytes, "value %d is not a whole number%s", i + 1,
                     is_label ? " that ends the row" : "");
            return 0;
        }
        if (value < 0 || value > most) {
            snprintf(error, error_bytes, "value %d is %d, not in 0..%d", i + 1, value, most);
            return 0;
        }
        if (is_label) {
            *label = value;
        } else {
            pixels[i] = (float)value / GREY_MAX;
        }
    }
    return 1;
}

int digits_data_load(const char *path, digits_data *data, char *error, size_t error_bytes)
{
    *data = (digits_data){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(error, error_bytes, "%s: cannot open: %s; --data names the folder", path,
                 strerror(errno));
        return 0;
    }
    char line[LINE_BYTES];
    int64_t number = 0, capacity = 0;
    int good = 1;
    while (good && fgets(line, sizeof(line), file)) {
        char reason[128];
        number++;
        if (!reserve(data, &capacity)) {
            snprintf(error, error_bytes, "%s:%lld: out of memory", path, (long long)number);
            good = 0;
        } else if (!parse_row(line, data->pixels + data->count * DIGITS_PIXELS,
                              data->labels + data->count, reason, sizeof(reason))) {
            snprintf(error, error_bytes, "%s:%lld: %s", path, (long long)number, reason);
            good = 0;
        } else {
            data->count++;
        }
    }
    if (good && ferror(file)) {
        snprintf(error, error_bytes, "%s:%lld: cannot read: %s", path, (long long)number,
                 strerror(errno));
        good = 0;
    } else if (good && data->count == 0) {
        snprintf(error, error_bytes, "%s: the file is empty", path);
        good = 0;
    }
    fclose(file);
    if (!good) {
        digits_data_free(data);
    }
    return good;
}

void digits_data_free(digits_data *data)
{
    free(data->pixels);
    free(data->labels);
    *data = (digits_data){0};
}

digits_data digits_data_rows(const digits_data *data, int64_t first, int64_t count)
{
    return (digits_data){
        .count = count,
        .pixels = data->pixels + first * DIGITS_PIXELS,
        .labels = data->labels + first,
    };
}

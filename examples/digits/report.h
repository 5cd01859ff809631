/* The program's output: a progress bar, a table, misclassified digits, and JSON. */
#ifndef EXAMPLES_DIGITS_REPORT_H
#define EXAMPLES_DIGITS_REPORT_H

#include "data.h"

/* The outcome of a run; with several seeds, the means. */
typedef struct digits_result {
    const char *device;
    double test_accuracy; /* 0 to 1 */
    double loss;          /* of the last batch of the last seed */
    double train_seconds;
    double step_us;
    double images_per_second;
} digits_result;

/* Draws the progress of training on standard error; where that is not a terminal, prints one line
 * at the end. */
void report_progress(const char *what, int64_t done, int64_t all, double loss);

/* Prints the table. */
void report_table(const digits_result *result);

/* Draws up to five misclassified pictures in a row. */
void report_mistakes(const digits_data *data, const int32_t *guesses);

/* Writes the result as JSON. On failure returns 0 and writes a message to `error`. */
int report_json(const char *path, const digits_result *result, char *error, size_t error_bytes);

#endif

/* Output for people and programs; used by main.c. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 32
#define MISTAKES_SHOWN 5

static void write_json_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', file);
        }
        if ((unsigned char)*text >= ' ') {
            fputc(*text, file);
        }
    }
    fputc('"', file);
}

void report_progress(const char *what, int64_t done, int64_t all, double loss)
{
    if (!isatty(STDERR_FILENO)) {
        if (done == all) {
            fprintf(stderr, "%s: %lld steps, loss %.4f\n", what, (long long)all, loss);
        }
        return;
    }
    char bar[BAR_WIDTH + 1];
    int filled = (int)(done * BAR_WIDTH / all);
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3d %%  loss %.4f%s", what, bar, (int)(done * 100 / all), loss,
            done == all ? "\n" : "");
    fflush(stderr);
}

void report_table(const digits_result *result)
{
    printf("\n%-40s  %8s  %12s  %14s\n", "device", "accuracy", "time a step", "images/second");
    printf("%-40.40s  %6.2f %%  %9.1f us  %14.0f\n", result->device, 100 * result->test_accuracy,
           result->step_us, result->images_per_second);
}

void report_mistakes(const digits_data *data, const int32_t *guesses)
{
    static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    int64_t shown[MISTAKES_SHOWN];
    int count = 0;
    for (int64_t i = 0; i < data->count && count < MISTAKES_SHOWN; i++) {
        if (guesses[i] != data->labels[i]) {
            shown[count++] = i;
        }
    }
    if (count == 0) {
        return;
    }
    printf("\nSome it got wrong:\n");
    for (int picture = 0; picture < count; picture++) {
        printf("%d read as %-8d", data->labels[shown[picture]], guesses[shown[picture]]);
    }
    for (int row = 0; row < DIGITS_SIDE; row++) {
        printf("\n");
        for (int picture = 0; picture < count; picture++) {
            const float *pixels = data->pixels + shown[picture] * DIGITS_PIXELS;
            for (int column = 0; column < DIGITS_SIDE; column++) {
                printf("%s", shades[(int)(pixels[row * DIGITS_SIDE + column] * 4 + 0.5f)]);
            }
            printf("  ");
        }
    }
    printf("\n");
}

int report_json(const char *path, const digits_result *result, char *error, size_t error_bytes)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        snprintf(error, error_bytes, "%s: cannot write: %s", path, strerror(errno));
        return 0;
    }
    fprintf(file, "{\"device\":");
    write_json_string(file, result->device);
    fprintf(file, ",\"test_accuracy\":%.6f,\"train_seconds\":%.4f,\"step_us\":%.3f,"
                  "\"images_per_second\":%.1f,\"loss\":%.9g}\n",
            result->test_accuracy, result->train_seconds, result->step_us,
            result->images_per_second, result->loss);
    int failed = ferror(file);
    failed |= fclose(file) != 0;
    if (failed) {
        snprintf(error, error_bytes, "%s: cannot write: %s", path, strerror(errno));
    }
    return !failed;
}

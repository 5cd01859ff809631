/* rnn: a recurrent network that learns to write this project's documentation, letter by letter,
 * with Halyard's arrays. */
#include "text.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *data;
    const char *device;
    const char *json;
    train_settings settings;
} options;

static const char usage[] =
    "usage: rnn [options]\n"
    "  --data DIR       folder of README.md and docs (.)\n"
    "  --device NAME    as in HAL_BACKEND, which it overrides\n"
    "  --steps N        of training (2000)\n"
    "  --every N        steps between two lines (100)\n"
    "  --seed N         of the weights and of what is written (1)\n"
    "  --sample N       letters to write after training (400)\n"
    "  --eager          notes every step anew, instead of launching a graph\n"
    "  --json FILE      writes the result to FILE\n";

static int parse_number(const char *text, long low, long high, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static int parse_option(const char *name, const char *value, options *o)
{
    long number = 0;
    if (strcmp(name, "--data") == 0) {
        o->data = value;
    } else if (strcmp(name, "--device") == 0) {
        o->device = value;
    } else if (strcmp(name, "--json") == 0) {
        o->json = value;
    } else if (strcmp(name, "--steps") == 0 && parse_number(value, 1, 10000000, &number)) {
        o->settings.steps = number;
    } else if (strcmp(name, "--every") == 0 && parse_number(value, 1, 10000000, &number)) {
        o->settings.every = number;
    } else if (strcmp(name, "--seed") == 0 && parse_number(value, 0, 1000000, &number)) {
        o->settings.seed = (uint64_t)number;
    } else if (strcmp(name, "--sample") == 0 && parse_number(value, 0, 1000000, &number)) {
        o->settings.sample = number;
    } else {
        return 0;
    }
    return 1;
}

/* Returns 1 to run, 0 after --help, -1 for wrong usage. */
static int parse_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return 0;
        }
        if (strcmp(argv[i], "--eager") == 0) {
            o->settings.eager = 1;
        } else if (i + 1 == argc) {
            fprintf(stderr, "rnn: %s is no option, or lacks its value\n", argv[i]);
            return -1;
        } else if (!parse_option(argv[i], argv[i + 1], o)) {
            fprintf(stderr, "rnn: %s %s is not understood\n", argv[i], argv[i + 1]);
            return -1;
        } else {
            i++;
        }
    }
    return 1;
}

/* Prints a failure with hal's message. Returns 0. */
static int fail(const char *what)
{
    fprintf(stderr, "rnn: %s failed: %s\n", what, hal_status_message());
    return 0;
}

static int write_json(const options *o, const char *device, const train_outcome *outcome)
{
    FILE *file = fopen(o->json, "w");
    if (!file) {
        fprintf(stderr, "rnn: cannot write %s\n", o->json);
        return 0;
    }
    fprintf(file, "{\"device\": \"");
    for (const char *c = device; *c != 0; c++) {
        fprintf(file, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    }
    fprintf(file,
            "\", \"steps\": %lld, \"seed\": %llu, \"first_loss\": %.6f, \"loss\": %.6f, "
            "\"step_us\": %.1f}\n",
            (long long)o->settings.steps, (unsigned long long)o->settings.seed, outcome->first_loss,
            outcome->loss, outcome->step_us);
    return fclose(file) == 0;
}

static int run(const options *o, ops_context *context, const rnn_text *text)
{
    const char *device = hal_device_get_info(ops_context_get_device(context))->name;
    train_outcome outcome = {0};
    printf("%s: learning from %lld letters, %d different ones.\n", device, (long long)text->count,
           (int)text->letter_count);
    if (train_and_write(context, text, &o->settings, &outcome) != HAL_OK) {
        return fail("training");
    }
    return !o->json || write_json(o, device, &outcome);
}

static int run_on_device(const options *o, const rnn_text *text)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    int good = hal_device_open(o->device, &device) == HAL_OK || fail("opening the device");
    good = good && (hal_queue_create(device, &queue) == HAL_OK || fail("making a queue"));
    good = good && (ops_context_create(queue, &context) == HAL_OK || fail("making a context"));
    good = good && run(o, context, text);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return good;
}

int main(int argc, char **argv)
{
    options o = {.data = ".", .settings = {.steps = 2000, .every = 100, .seed = 1, .sample = 400}};
    rnn_text text;
    char error[5000];
    const int parsed = parse_options(argc, argv, &o);
    if (parsed <= 0) {
        fputs(usage, parsed == 0 ? stdout : stderr);
        return parsed == 0 ? 0 : 2;
    }
    int good = rnn_text_load(o.data, &text, error, sizeof(error));
    if (good && text.count < train_least()) {
        snprintf(error, sizeof(error),
                 "%s: %lld letters are too few to learn from, %lld are needed", o.data,
                 (long long)text.count, (long long)train_least());
        good = 0;
    }
    if (!good) {
        fprintf(stderr, "rnn: %s\n", error);
    }
    good = good && run_on_device(&o, &text);
    rnn_text_free(&text);
    return good ? 0 : 1;
}

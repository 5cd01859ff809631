/* mlp: trains a dense network of a chosen depth, width and precision on handwritten digits, and
 * tests it on digits of other writers. */
#include "network.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 16384

typedef struct options {
    const char *data, *device;
    train_settings settings;
} options;

static const char usage[] =
    "usage: mlp [options]\n"
    "  --data DIR          folder of train.csv and test.csv (examples/digits/data)\n"
    "  --device NAME       as in HAL_BACKEND, which it overrides\n"
    "  --layers N          of the network, 1 to 16, with the one that gives the classes (3)\n"
    "  --width N           of the layers but the last (256)\n"
    "  --precision CLASS   of the matrix products: strict, accurate, fast or normwise (strict)\n"
    "  --epochs N          how often each picture is learned from (10)\n"
    "  --seed N            of the weights and of the order of the pictures (1)\n"
    "  --eager             calls each step anew, instead of launching a graph\n";

static int parse_number(const char *text, long low, long high, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

static int parse_precision(const char *text, uint32_t *precision)
{
    static const struct {
        const char *name;
        uint32_t precision;
    } classes[] = {{"strict", HAL_GEMM_STRICT},
                   {"accurate", HAL_GEMM_ACCURATE},
                   {"fast", HAL_GEMM_FAST},
                   {"normwise", HAL_GEMM_NORMWISE}};
    for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
        if (strcmp(text, classes[i].name) == 0) {
            *precision = classes[i].precision;
            return 1;
        }
    }
    return 0;
}

static int parse_option(const char *name, const char *value, options *o)
{
    long number = 0;
    if (strcmp(name, "--data") == 0) {
        o->data = value;
    } else if (strcmp(name, "--device") == 0) {
        o->device = value;
    } else if (strcmp(name, "--layers") == 0 &&
               parse_number(value, 1, NETWORK_MAX_LAYERS, &number)) {
        o->settings.layers = (int)number;
    } else if (strcmp(name, "--width") == 0 && parse_number(value, 1, MAX_WIDTH, &number)) {
        o->settings.width = number;
    } else if (strcmp(name, "--epochs") == 0 && parse_number(value, 1, 1000000, &number)) {
        o->settings.epochs = (int)number;
    } else if (strcmp(name, "--seed") == 0 && parse_number(value, 0, 1000000, &number)) {
        o->settings.seed = (uint64_t)number;
    } else {
        return strcmp(name, "--precision") == 0 && parse_precision(value, &o->settings.precision);
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
            fprintf(stderr, "mlp: %s is no option, or lacks its value\n", argv[i]);
            return -1;
        } else if (!parse_option(argv[i], argv[i + 1], o)) {
            fprintf(stderr, "mlp: %s %s is not understood\n", argv[i], argv[i + 1]);
            return -1;
        } else {
            i++;
        }
    }
    return 1;
}

/* Reads one of the files, of at least `least` pictures. Returns 0 after a message. */
static int load(const char *folder, const char *name, int64_t least, digits_data *data)
{
    char path[4096], error[4400];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int good = digits_data_load(path, data, error, sizeof(error));
    if (good && data->count < least) {
        snprintf(error, sizeof(error), "%s: at least %lld rows are needed", path, (long long)least);
        good = 0;
    }
    if (!good) {
        fprintf(stderr, "mlp: %s\n", error);
    }
    return good;
}

/* Prints a failure with hal's message. Returns 0. */
static int fail(const char *what)
{
    fprintf(stderr, "mlp: %s failed: %s\n", what, hal_status_message());
    return 0;
}

static int run(const options *o, ops_context *context, const digits_data *training,
               const digits_data *test)
{
    train_outcome outcome;
    printf("%s: learning from %lld pictures, testing on %lld.\n",
           hal_device_get_info(ops_context_get_device(context))->name, (long long)training->count,
           (long long)test->count);
    if (train_and_test(context, &o->settings, training, test, &outcome) != HAL_OK) {
        return fail("training");
    }
    printf("accuracy %.2f %%, loss %.6f, %.1f us a step\n", 100 * outcome.accuracy, outcome.loss,
           outcome.step_us);
    return 1;
}

static int run_on_device(const options *o, const digits_data *training, const digits_data *test)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    int good = hal_device_open(o->device, &device) == HAL_OK || fail("opening the device");
    good = good && (hal_queue_create(device, &queue) == HAL_OK || fail("making a queue"));
    good = good && (ops_context_create(queue, &context) == HAL_OK || fail("making a context"));
    good = good && run(o, context, training, test);
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return good;
}

int main(int argc, char **argv)
{
    options o = {.data = "examples/digits/data",
                 .settings = {.layers = 3, .width = 256, .epochs = 10, .seed = 1}};
    const int parsed = parse_options(argc, argv, &o);
    if (parsed <= 0) {
        fputs(usage, parsed == 0 ? stdout : stderr);
        return parsed == 0 ? 0 : 2;
    }
    digits_data training = {0}, test = {0};
    const int good = load(o.data, "train.csv", TRAIN_BATCH, &training) &&
                     load(o.data, "test.csv", 1, &test) && run_on_device(&o, &training, &test);
    digits_data_free(&training);
    digits_data_free(&test);
    return good ? 0 : 1;
}

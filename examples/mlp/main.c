/* mlp: trains a dense network of a chosen depth, width and precision on handwritten digits, and
 * tests it on digits of other writers. */
#include "../digits/ranks.h"
#include "network.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WIDTH 16384

typedef struct options {
    const char *data, *device;
    int ranks; /* within the process; 0: those of a launcher */
    train_settings settings;
} options;

/* All ranks use the same, and only read it. */
typedef struct mlp_run {
    const options *o;
    ranks_program ranks;
    digits_data training, test;
} mlp_run;

static const char usage[] =
    "usage: mlp [options]\n"
    "  --data DIR          folder of train.csv and test.csv (examples/digits/data)\n"
    "  --device NAME       as in HAL_BACKEND, which it overrides\n"
    "  --layers N          of the network, 1 to 16, with the one that gives the classes (3)\n"
    "  --width N           of the layers but the last (256)\n"
    "  --precision CLASS   of the matrix products: strict, accurate, fast or normwise (strict)\n"
    "  --levels N          of Strassen's algorithm in all products, 1 or 2 (class normwise)\n"
    "  --epochs N          how often each picture is learned from (10)\n"
    "  --seed N            of the weights and of the order of the pictures (1)\n"
    "  --ranks N           divides the work among N devices of the plugin, if it has as many\n"
    "                      of one name, else uses one N times; without it among the processes\n"
    "                      that mpirun, torchrun or srun started\n"
    "  --divide WHAT       among the ranks: batch, or layers, whose hidden units are divided "
    "(batch)\n"
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
    } else if (strcmp(name, "--levels") == 0 &&
               parse_number(value, 1, HAL_GEMM_MAX_LEVELS, &number)) {
        o->settings.precision = HAL_GEMM_NORMWISE;
        o->settings.levels = (uint32_t)number;
    } else if (strcmp(name, "--epochs") == 0 && parse_number(value, 1, 1000000, &number)) {
        o->settings.epochs = (int)number;
    } else if (strcmp(name, "--seed") == 0 && parse_number(value, 0, 1000000, &number)) {
        o->settings.seed = (uint64_t)number;
    } else if (strcmp(name, "--ranks") == 0 && parse_number(value, 1, RANKS_MAX, &number)) {
        o->ranks = (int)number;
    } else if (strcmp(name, "--divide") == 0 && strcmp(value, "batch") == 0) {
        o->settings.divides = NETWORK_DIVIDES_BATCH;
    } else if (strcmp(name, "--divide") == 0 && strcmp(value, "layers") == 0) {
        o->settings.divides = NETWORK_DIVIDES_LAYERS;
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

static int rank_run(void *user, ops_context *context, hal_comm *comm)
{
    const mlp_run *all = user;
    train_outcome outcome;
    hal_comm_status rank = {0};
    if (hal_comm_get_status(comm, &rank) != HAL_OK) {
        return ranks_fail(&all->ranks, "asking the communicator");
    }
    const int is_first = rank.rank == 0; /* prints for all */
    if (is_first) {
        printf("%s: learning from %lld pictures, testing on %lld, ranks: %u.\n",
               hal_device_get_info(ops_context_get_device(context))->name,
               (long long)all->training.count, (long long)all->test.count, rank.count);
        fflush(stdout);
    }
    train_settings settings = all->o->settings;
    settings.quiet = !is_first;
    if (train_and_test(context, comm, &settings, &all->training, &all->test, &outcome) != HAL_OK) {
        return ranks_fail(&all->ranks, "training");
    }
    if (is_first) {
        printf("accuracy %.2f %%, loss %.9g, %.1f us a step\n", 100 * outcome.accuracy,
               outcome.loss, outcome.step_us);
    }
    return 1;
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
    mlp_run all = {.o = &o};
    all.ranks = (ranks_program){"mlp", o.device, o.ranks, rank_run, &all};
    const int good = load(o.data, "train.csv", TRAIN_BATCH, &all.training) &&
                     load(o.data, "test.csv", 1, &all.test) && ranks_run(&all.ranks);
    digits_data_free(&all.training);
    digits_data_free(&all.test);
    return good ? 0 : 1;
}

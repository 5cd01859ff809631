/* digits: trains a dense network on handwritten digits with Halyard's op library, and tests it on
 * digits of other writers. */
#include "data.h"
#include "ranks.h"
#include "report.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *data;
    const char *device;
    const char *json;
    uint64_t seed;
    int seeds;
    int ranks; /* within the process; 0: those of a launcher */
    int validate;
} options;

static const char usage[] =
    "usage: digits [options]\n"
    "  --data DIR       folder of train.csv and test.csv (examples/digits/data)\n"
    "  --device NAME    as in HAL_BACKEND, which it overrides\n"
    "  --seed N         of weights, order, noise and distortions (1)\n"
    "  --seeds N        runs N seeds, the first being --seed, and gives the mean (1)\n"
    "  --ranks N        divides each batch among N devices of the plugin, if it has as many of "
    "one\n"
    "                   name, else uses one N times; without it among the processes that mpirun,\n"
    "                   torchrun or srun started\n"
    "  --validate       trains on part of the training data and tests on the rest\n"
    "  --json FILE      writes the result to FILE\n";

static int parse_number(const char *text, long low, long high, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text && *end == '\0' && *value >= low && *value <= high;
}

/* Returns 1 to run, 0 after --help, -1 for wrong usage. */
static int parse_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        long number = 0;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return 0;
        } else if (strcmp(argv[i], "--validate") == 0) {
            o->validate = 1;
            continue;
        } else if (!value) {
            fprintf(stderr, "digits: %s is no option, or lacks its value\n", argv[i]);
            return -1;
        } else if (strcmp(argv[i], "--data") == 0) {
            o->data = value;
        } else if (strcmp(argv[i], "--device") == 0) {
            o->device = value;
        } else if (strcmp(argv[i], "--json") == 0) {
            o->json = value;
        } else if (strcmp(argv[i], "--seed") == 0 && parse_number(value, 0, 1000000, &number)) {
            o->seed = (uint64_t)number;
        } else if (strcmp(argv[i], "--seeds") == 0 && parse_number(value, 1, 1000, &number)) {
            o->seeds = (int)number;
        } else if (strcmp(argv[i], "--ranks") == 0 && parse_number(value, 1, RANKS_MAX, &number)) {
            o->ranks = (int)number;
        } else {
            fprintf(stderr, "digits: %s %s is not understood\n", argv[i], value);
            return -1;
        }
        i++;
    }
    return 1;
}

static int load(const options *o, digits_data *training, digits_data *test)
{
    char path[4096], error[4400];
    *training = *test = (digits_data){0};
    snprintf(path, sizeof(path), "%s/train.csv", o->data);
    if (digits_data_load(path, training, error, sizeof(error))) {
        snprintf(path, sizeof(path), "%s/test.csv", o->data);
        if (digits_data_load(path, test, error, sizeof(error))) {
            if (training->count >= TRAIN_LEAST && test->count >= TRAIN_LEAST) {
                return 1;
            }
            snprintf(error, sizeof(error), "%s: train.csv and test.csv need at least %d rows each",
                     o->data, TRAIN_LEAST);
        }
    }
    fprintf(stderr, "digits: %s\n", error);
    digits_data_free(training);
    digits_data_free(test);
    return 0;
}

/* All ranks use the same, and only read it. */
typedef struct digits_run {
    const options *o;
    ranks_program ranks;
    digits_data training, test;
} digits_run;

static int fail(const digits_run *all, const char *what)
{
    return ranks_fail(&all->ranks, what);
}

static int rank_run(void *user, ops_context *context, hal_comm *comm)
{
    const digits_run *all = user;
    const options *o = all->o;
    const digits_data *training = &all->training, *test = &all->test;
    hal_comm_status rank = {0};
    digits_result result = {.device = hal_device_get_info(ops_context_get_device(context))->name};
    int32_t *guesses = calloc((size_t)test->count, sizeof(*guesses));
    char error[512];
    double loss = 0, accuracy = 0, seconds = 0, steps = 0, images = 0;
    int good = guesses || fail(all, "allocating memory");
    good = good &&
           (hal_comm_get_status(comm, &rank) == HAL_OK || fail(all, "asking the communicator"));

    if (good && rank.rank == 0) {
        printf("%s: learning from %lld pictures, testing on %lld, ranks: %u.\n", result.device,
               (long long)training->count, (long long)test->count, rank.count);
        fflush(stdout);
    }
    for (int i = 0; good && i < o->seeds; i++) {
        train_outcome outcome;
        good = train_and_test(context, comm, training, test, o->seed + (uint64_t)i, guesses,
                              &outcome) == HAL_OK ||
               fail(all, "training");
        if (good) {
            loss = outcome.loss;
            accuracy += outcome.accuracy;
            seconds += outcome.seconds;
            steps += (double)outcome.steps;
            images += (double)outcome.images;
            if (rank.rank == 0 && o->seeds > 1) {
                printf("seed %llu: accuracy %.2f %%\n", (unsigned long long)o->seed + (unsigned)i,
                       100 * outcome.accuracy);
            }
        }
    }
    if (good && rank.rank == 0) {
        result.loss = loss;
        result.test_accuracy = accuracy / o->seeds;
        result.train_seconds = seconds / o->seeds;
        result.step_us = 1e6 * seconds / steps;
        result.images_per_second = images / seconds;
        report_mistakes(test, guesses);
        report_table(&result);
        if (o->json && !report_json(o->json, &result, error, sizeof(error))) {
            fprintf(stderr, "digits: %s\n", error);
            good = 0;
        }
    }
    free(guesses);
    return good;
}

int main(int argc, char **argv)
{
    options o = {.data = "examples/digits/data", .seed = 1, .seeds = 1};
    int parsed = parse_options(argc, argv, &o);
    if (parsed <= 0) {
        fputs(usage, parsed == 0 ? stdout : stderr);
        return parsed == 0 ? 0 : 2;
    }
    digits_data training, test;
    if (!load(&o, &training, &test)) {
        return 1;
    }
    digits_run all = {.o = &o, .training = training, .test = test};
    all.ranks = (ranks_program){"digits", o.device, o.ranks, rank_run, &all};
    if (o.validate) {
        int64_t kept = training.count / 5 * 4;
        all.training = digits_data_rows(&training, 0, kept);
        all.test = digits_data_rows(&training, kept, training.count - kept);
    }
    int good = ranks_run(&all.ranks);
    digits_data_free(&training);
    digits_data_free(&test);
    return good ? 0 : 1;
}

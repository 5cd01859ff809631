/* digits: trains a dense network on handwritten digits with Halyard's op library, and tests it on
 * digits of other writers. */
#include "data.h"
#include "report.h"
#include "train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 64

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
    "  --ranks N        divides each batch among N devices of this process, which may be the same\n"
    "                   device N times; without it among the processes that mpirun, torchrun or\n"
    "                   srun started\n"
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
        } else if (value == NULL) {
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
        } else if (strcmp(argv[i], "--ranks") == 0 && parse_number(value, 1, MAX_RANKS, &number)) {
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

/* Prints a failure with hal's message. Returns 0. */
static int fail(const char *what)
{
    fprintf(stderr, "digits: %s failed: %s\n", what, hal_status_message());
    return 0;
}

static int run(const options *o, ops_context *context, hal_group *group,
               const digits_data *training, const digits_data *test)
{
    hal_group_status rank = {0};
    digits_result result = {.device = hal_device_get_info(ops_context_get_device(context))->name};
    int32_t *guesses = calloc((size_t)test->count, sizeof(*guesses));
    char error[512];
    double loss = 0, accuracy = 0, seconds = 0, steps = 0, images = 0;
    int good = guesses != NULL || fail("allocating memory");
    good = good && (hal_group_get_status(group, &rank) == HAL_OK || fail("asking the group"));

    if (good && rank.rank == 0) {
        printf("%s: learning from %lld pictures, testing on %lld, ranks: %u.\n", result.device,
               (long long)training->count, (long long)test->count, rank.count);
        fflush(stdout);
    }
    for (int i = 0; good && i < o->seeds; i++) {
        train_outcome outcome;
        good = train_and_test(context, group, training, test, o->seed + (uint64_t)i, guesses,
                              &outcome) == HAL_OK || fail("training");
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
        if (o->json != NULL && !report_json(o->json, &result, error, sizeof(error))) {
            fprintf(stderr, "digits: %s\n", error);
            good = 0;
        }
    }
    free(guesses);
    return good;
}

/* A rank of the run: its device, and its group once it is created. */
typedef struct rank_job {
    const options *o;
    const digits_data *training, *test;
    hal_device *device;
    hal_group *group;
    pthread_t thread;
    int good;
} rank_job;

static void *run_rank(void *argument)
{
    rank_job *job = argument;
    hal_queue *queue = NULL;
    ops_context *context = NULL;
    int good = hal_queue_create(job->device, &queue) == HAL_OK || fail("making a queue");
    good = good && (ops_context_create(queue, &context) == HAL_OK || fail("making a context"));
    job->good = good && run(job->o, context, job->group, job->training, job->test);
    if (!job->good) {
        hal_group_abort(job->group, hal_status_message());
    }
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    return NULL;
}

/* One rank, on this thread; of the group of the launcher's processes. */
static int run_process(rank_job *job)
{
    if (hal_device_open(job->o->device, &job->device) != HAL_OK) {
        return fail("opening the device");
    }
    int good = hal_group_create_from_environment(job->device, 0, &job->group) == HAL_OK ||
               fail("joining the group");
    if (good) {
        run_rank(job);
    }
    hal_group_destroy(job->group);
    hal_device_release(job->device);
    return good && job->good;
}

/* All ranks in this process, with a thread each. */
static int run_threads(const rank_job *like)
{
    rank_job jobs[MAX_RANKS];
    hal_device *devices[MAX_RANKS] = {0};
    hal_group *groups[MAX_RANKS] = {0};
    const int ranks = like->o->ranks;
    int good = 1, started = 0;
    for (int i = 0; good && i < ranks; i++) {
        good = hal_device_open(like->o->device, &devices[i]) == HAL_OK ||
               fail("opening the device");
    }
    good = good && (hal_group_create_local(devices, (uint32_t)ranks, 0, groups) == HAL_OK ||
                    fail("creating the group"));
    for (; good && started < ranks; started++) {
        jobs[started] = *like;
        jobs[started].device = devices[started];
        jobs[started].group = groups[started];
        if (pthread_create(&jobs[started].thread, NULL, run_rank, &jobs[started]) != 0) {
            fprintf(stderr, "digits: no thread for rank %d\n", started);
            hal_group_abort(groups[started], "no thread");
            good = 0;
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(jobs[i].thread, NULL);
        good = good && jobs[i].good;
    }
    for (int i = 0; i < ranks; i++) {
        hal_group_destroy(groups[i]);
        hal_device_release(devices[i]);
    }
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
    digits_data learned = training, tested = test;
    if (o.validate) {
        int64_t kept = training.count / 5 * 4;
        learned = digits_data_rows(&training, 0, kept);
        tested = digits_data_rows(&training, kept, training.count - kept);
    }
    rank_job job = {.o = &o, .training = &learned, .test = &tested};
    int good = o.ranks > 0 ? run_threads(&job) : run_process(&job);
    digits_data_free(&training);
    digits_data_free(&test);
    return good ? 0 : 1;
}

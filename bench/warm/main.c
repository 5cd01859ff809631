/* hal-warm: makes the general kernels of common programs for a device, so that the compile caches
 * of hal and of the driver have them before the first program runs: at install time, or in an
 * image. */
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "harness/bench.h"
#include "suites/kernels/kernels.h"

#define LARGEST 65536
#define SHAPES 200

typedef struct warm_options {
    const char *device, *filter;
    unsigned shapes;
    uint64_t seed;
} warm_options;

#define OF(field) offsetof(warm_options, field)

static const command_option rows[] = {
    {.name = "device",
     .argument = "SELECTION",
     .help = "as in HAL_BACKEND, which is the default",
     .kind = COMMAND_TEXT,
     .offset = OF(device)},
    {.name = "filter",
     .argument = "LIST",
     .help = "programs whose names hold one of the words, with commas (all)",
     .kind = COMMAND_TEXT,
     .offset = OF(filter)},
    {.name = "shapes",
     .argument = "N",
     .help = "random shapes of each program (200)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(shapes),
     .least = 1,
     .most = 10000},
    {.name = "seed",
     .argument = "N",
     .help = "of the shapes (1)",
     .kind = COMMAND_U64,
     .offset = OF(seed),
     .least = 1,
     .most = UINT64_MAX},
};

static const command_line line = {
    .program = "hal-warm",
    .usage = "[options]",
    .about = "Computes random shapes of common programs once, so that the compile caches have the "
             "kernels of new shapes.",
    .exit_status = "Exit status: 0: done, 1: no device, or a program failed, 2: wrong usage.",
    .options = rows,
    .option_count = sizeof rows / sizeof rows[0],
};

typedef struct warm_count {
    uint64_t compiled, recalled;
} warm_count;

/* Reads the lines of ops/src/tensor/kernel_log.c. */
static void log_read(void *user, hal_log_level level, const char *message)
{
    warm_count *count = user;
    (void)level;
    const char *start = strstr(message, "new kernel ");
    if (start) {
        const bool is_recalled = strstr(start, ": recalled,") != NULL;
        count->recalled += is_recalled;
        count->compiled += !is_recalled;
    }
}

static bool run_shape(hal_queue *queue, const kernels_case *what, kernels_draw *draw)
{
    draw->input_count = draw->result_count = 0;
    if (ops_scope_begin(draw->ops) != HAL_OK) {
        return false;
    }
    const bool well = what->prepare(draw) && what->compute(draw) &&
                      ops_array_evaluate(draw->results, draw->result_count) == HAL_OK &&
                      hal_queue_wait(queue, HAL_WAIT_FOREVER) == HAL_OK;
    for (uint32_t i = 0; i < draw->result_count; i++) {
        ops_array_release(draw->results[i]);
    }
    return ops_scope_end(draw->ops) == HAL_OK && well;
}

/* In a context of its own: one that has compiled much runs new plans in single kernels. */
static bool run_case(hal_queue *queue, const kernels_case *what, const warm_options *options)
{
    uint64_t random = bench_seed(options->seed);
    kernels_draw draw = {.random = &random, .largest = LARGEST};
    warm_count count = {.compiled = 0};
    hal_log_set_callback(log_read, &count, HAL_LOG_DEBUG);
    const double start = measure_now();
    bool well = ops_context_create(queue, &draw.ops) == HAL_OK;
    for (unsigned i = 0; i < options->shapes && well; i++) {
        well = run_shape(queue, what, &draw);
    }
    ops_context_destroy(draw.ops);
    hal_log_set_callback(NULL, NULL, 0);
    if (!well) {
        fprintf(stderr, "hal-warm: %s: %s\n", what->name, hal_status_message());
        return false;
    }
    printf("%-16s %3llu compiled, %3llu from the cache, %.1f s\n", what->name,
           (unsigned long long)count.compiled, (unsigned long long)count.recalled,
           measure_now() - start);
    fflush(stdout);
    return true;
}

static bool warm(const warm_options *options)
{
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    bool well = hal_device_open(options->device, &device) == HAL_OK &&
                hal_queue_create(device, &queue) == HAL_OK;
    if (!well) {
        fprintf(stderr, "hal-warm: %s\n", hal_status_message());
    }
    for (uint32_t i = 0; i < kernels_case_count && well; i++) {
        if (bench_name_passes(kernels_cases[i].name, options->filter)) {
            well = run_case(queue, &kernels_cases[i], options);
        }
    }
    hal_queue_destroy(queue);
    hal_device_release(device);
    return well;
}

int main(int count, char **arguments)
{
    warm_options options = {.shapes = SHAPES, .seed = 1};
    switch (command_line_read(&line, count, arguments, &options)) {
    case COMMAND_HELP_PRINTED:
        return 0;
    case COMMAND_WRONG_USAGE:
        return 2;
    default:
        return warm(&options) ? 0 : 1;
    }
}

/* chunk after chunk of inputs: hal-math-exhaustive's device computes a chunk, then the host's
 * threads judge it. Plain C computes where it is judged. */
#include "math/exhaustive_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* One chunk's results, null where plain C is to compute them, and one thread's share of it. */
typedef struct check_work {
    const check_options *options;
    const check_result *check;
    const void *results;
    uint64_t chunk_first;
    uint64_t first, end;
    math_worst worst;
} check_work;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void judge_block_f64(check_work *work, uint64_t first, size_t count)
{
    const math_case *function = work->check->function;
    double x[MATH_BLOCK], y[MATH_BLOCK], computed[MATH_BLOCK];
    const double *results = computed;
    math_sample_f64(function, work->options->seed, first, count, x, y);
    if (work->results) {
        results = (const double *)work->results + (first - work->chunk_first);
    } else {
        math_run_f64(function->function, x, y, computed, count);
    }
    math_judge_f64(function, &work->check->demand, x, y, results, count, &work->worst);
}

static void judge_block_f32(check_work *work, uint64_t first, size_t count)
{
    const math_case *function = work->check->function;
    float x[MATH_BLOCK], y[MATH_BLOCK], computed[MATH_BLOCK];
    const float *results = computed;
    if (function->is_sampled) {
        math_sample_f32(work->options->seed, first, count, x, y);
    } else {
        math_enumerate_f32(first, work->options->step, count, x);
    }
    if (work->results) {
        results = (const float *)work->results + (first - work->chunk_first);
    } else {
        math_run_f32(function->function, x, y, computed, count);
    }
    math_judge_f32(function, &work->check->demand, x, y, results, count, &work->worst);
}

static void *judge_share(void *argument)
{
    check_work *work = argument;
    for (uint64_t first = work->first; first < work->end; first += MATH_BLOCK) {
        const uint64_t left = work->end - first;
        const size_t count = (size_t)(left < MATH_BLOCK ? left : MATH_BLOCK);
        if (work->check->function->is_double) {
            judge_block_f64(work, first, count);
        } else {
            judge_block_f32(work, first, count);
        }
    }
    return NULL;
}

/* Splits the inputs over the threads, in blocks; the caller's thread takes the first share. */
static void judge(const check_options *options, const void *results, uint64_t first, uint64_t end,
                  check_result *result)
{
    check_work works[MATH_MAX_THREADS];
    pthread_t threads[MATH_MAX_THREADS];
    unsigned started = 1;
    const uint64_t blocks = (end - first + MATH_BLOCK - 1) / MATH_BLOCK;
    for (unsigned i = 0; i < options->threads; i++) {
        uint64_t share_first = first + blocks * i / options->threads * MATH_BLOCK;
        uint64_t share_end = first + blocks * (i + 1) / options->threads * MATH_BLOCK;
        works[i] = (check_work){options,      result,      results,
                                first,        share_first, share_end < end ? share_end : end,
                                MATH_NO_WORST};
    }
    for (; started < options->threads; started++) {
        if (pthread_create(&threads[started], NULL, judge_share, &works[started]) != 0) {
            break;
        }
    }
    for (unsigned i = started; i < options->threads; i++) {
        judge_share(&works[i]);
    }
    judge_share(&works[0]);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < options->threads; i++) {
        if (works[i].worst.distance > result->worst.distance) {
            result->worst = works[i].worst;
        }
    }
}

static size_t size_of(const math_case *function)
{
    return function->is_double ? sizeof(double) : sizeof(float);
}

/* Results go to the start of the memory, samples after them. */
static hal_status compute(const check_options *options, math_device *device, uint64_t first,
                          size_t count, char *memory)
{
    const math_case *function = device->function;
    char *x = memory + device->chunk * size_of(function);
    char *y = x + device->chunk * size_of(function);
    if (!function->is_sampled) {
        return math_device_run_all(device, first, options->step, count, memory);
    }
    if (function->is_double) {
        math_sample_f64(function, options->seed, first, count, (void *)x, (void *)y);
    } else {
        math_sample_f32(options->seed, first, count, (void *)x, (void *)y);
    }
    return math_device_run_samples(device, x, y, count, memory);
}

static hal_status check_chunks(const check_options *options, math_device *device, void *memory,
                               check_result *result)
{
    if (!memory) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "the host has no memory for %zu results of %s", device->chunk,
                              device->function->name);
    }
    for (uint64_t first = 0; first < result->inputs; first += device->chunk) {
        const uint64_t left = result->inputs - first;
        const size_t count = left < device->chunk ? (size_t)left : device->chunk;
        HAL_TRY(compute(options, device, first, count, memory));
        judge(options, memory, first, first + count, result);
    }
    return HAL_OK;
}

hal_status check_function(const math_case *function, const check_options *options,
                          math_device *device, check_result *result)
{
    const double start = now();
    *result = (check_result){.function = function, .worst = MATH_NO_WORST};
    result->demand = math_demand_of(function, device ? device->info->exactness : MATH_EXACT);
    result->inputs = function->is_sampled
                         ? options->samples
                         : ((UINT64_C(1) << 32) + options->step - 1) / options->step;
    hal_status status = HAL_OK;
    if (!device) {
        judge(options, NULL, 0, result->inputs, result);
    } else {
        status = math_device_prepare(device, function);
        if (status == HAL_OK) {
            void *memory = malloc(device->chunk * size_of(function) * 3);
            status = check_chunks(options, device, memory, result);
            free(memory);
        }
    }
    result->seconds = now() - start;
    return status;
}
